"""What the network is: nodes, directed links, and the many ways to say them."""

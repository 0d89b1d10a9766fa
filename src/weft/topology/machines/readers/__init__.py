"""One module per kind of file; each adds its `Reader` when it is imported."""

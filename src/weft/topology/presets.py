"""The networks of real machines, each direction of a cable as its own link.

NPUs are numbered box by box; switches after them: first one per box, then NICs box by box, then
those between boxes. To add a machine, write a function and a row in a table of
`weft.topology.vendors`.
"""

from weft.topology.vendors.amd import AMD
from weft.topology.vendors.nvidia import NVIDIA
from weft.topology.vendors.others import OTHERS
from weft.topology.vendors.tpu import TPUS

MACHINES = (*NVIDIA, *AMD, *TPUS, *OTHERS)

"""Machines and fabrics as the files of a cluster describe them, made into networks.

Each kind of file has a module in `readers`; `join` makes one cluster of hosts and a fabric.
"""

from weft.topology.machines.machine import Cable, Machine, Part
from weft.topology.machines.network import network_of
from weft.topology.machines.reader import READERS, Reader, reader_of

__all__ = ["READERS", "Cable", "Machine", "Part", "Reader", "network_of", "reader_of"]

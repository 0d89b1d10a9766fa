"""Algorithms on real processes: programs for ranks, ways for bytes, and who starts them.

`Communicator` runs an algorithm on arrays, one rank a process; `local` starts ranks on this
machine. `Programs` are what each rank does. `probe` finds out what network the ranks are on.
"""

from weft.runtime.addresses import addresses_of
from weft.runtime.communicator import Communicator, Times
from weft.runtime.errors import DisagreementError, LostError, RunError, StalledError
from weft.runtime.launch import Ranks, local
from weft.runtime.probing import Probed, Wanted, probe
from weft.runtime.program import Program, Programs
from weft.runtime.transports import Route

__all__ = [
    "Communicator",
    "DisagreementError",
    "LostError",
    "Probed",
    "Program",
    "Programs",
    "Ranks",
    "Route",
    "RunError",
    "StalledError",
    "Times",
    "Wanted",
    "addresses_of",
    "local",
    "probe",
]

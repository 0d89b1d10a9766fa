"""A lab: a network of real links on one machine, for programs of all kinds.

Each NPU and each switch is a network namespace, each link a virtual cable whose rate is shaped. See
``docs/lab.md`` for what is emulated and what is not.
"""

from weft.lab.counters import Traffic
from weft.lab.plan import LabPlan, lab_plan
from weft.lab.session import Lab, Start, check_command, starts_ranks_itself
from weft.lab.space import in_own_space
from weft.lab.ways import ways_of_algorithm

__all__ = [
    "Lab",
    "LabPlan",
    "Start",
    "Traffic",
    "check_command",
    "in_own_space",
    "lab_plan",
    "starts_ranks_itself",
    "ways_of_algorithm",
]

"""Runs a command in a lab, and counts what the links carried meanwhile."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from weft.errors import InputError
from weft.lab.building import build
from weft.lab.counters import Traffic, read_counters
from weft.lab.environment import environment, rank_environment, search_path, write_files
from weft.lab.plan import LabPlan
from weft.lab.ranks import Running, run_together
from weft.quoting import quoted

_STARTERS = ("mpiexec", "mpirun", "mpiexec.hydra")


@dataclass(frozen=True)
class Start:
    """How a command is started.

    Attributes
    ----------
    words
        The command.
    once
        Whether it runs on the first host only, since it starts the others itself.
    order
        The NPUs in order of rank.
    env
        Variables beside those of the lab.
    """

    words: Sequence[str]
    once: bool = False
    order: Sequence[int] | None = None
    env: Mapping[str, str] = field(default_factory=dict)


class Lab:
    """A lab that is there: make it in a space of its own (`weft.lab.space`), which ends it."""

    def __init__(self, plan: LabPlan) -> None:
        self.plan = plan
        self.delays = build(plan)
        write_files(plan)

    def run(
        self, start: Start, output: IO[bytes] | None = None, errors: IO[bytes] | None = None
    ) -> tuple[int, Traffic]:
        """Run a command; its exit code and the traffic.

        What it prints goes to `output` and `errors` instead of this process's, if given.
        """
        before = read_counters(self.plan)
        code = self.run_uncounted(start, output, errors)
        return code, Traffic.between(self.plan, before, read_counters(self.plan))

    def run_uncounted(
        self,
        start: Start,
        output: IO[bytes] | None = None,
        errors: IO[bytes] | None = None,
        limit_s: float = math.inf,
    ) -> int:
        """Run a command; its exit code, 124 if it was ended because it took too long."""
        order = start.order or self.plan.topology.members.tolist()
        shared = environment(self.plan, order) | dict(start.env)
        commands = []
        for rank, npu in enumerate(order[:1] if start.once else order):
            own = {} if start.once else rank_environment(self.plan, rank)
            commands.append(Running(rank, self.plan.host(npu), start.words, shared | own))
        streams = output or sys.stdout.buffer, errors or sys.stderr.buffer
        return run_together(commands, *streams, limit_s)


def starts_ranks_itself(words: Sequence[str]) -> bool:
    """Whether a command is known to start the others, as mpiexec does."""
    return os.path.basename(words[0]) in _STARTERS


def check_command(words: Sequence[str]) -> None:
    """Raise if there is no such command."""
    if shutil.which(words[0], path=search_path()) is None:
        raise InputError(f"there is no command {quoted(words[0])} to run in the lab")

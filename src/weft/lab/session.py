"""Runs a command in a lab, and counts what the links carried meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import BinaryIO

from weft.errors import InputError
from weft.lab.building import build
from weft.lab.counters import Traffic, read_counters
from weft.lab.environment import ENTER, environment, rank_environment, write_files
from weft.lab.plan import LabPlan
from weft.lab.ranks import Running, run_together
from weft.quoting import quoted

_STARTERS = ("mpiexec", "mpirun", "mpiexec.hydra")


class Lab:
    """A lab that is there: make it in a space of its own (`weft.lab.space`), which ends it."""

    def __init__(self, plan: LabPlan) -> None:
        self.plan = plan
        self.delays = build(plan)
        write_files(plan)

    def run(
        self, words: Sequence[str], *, once: bool = False, output: BinaryIO | None = None
    ) -> tuple[int, Traffic]:
        """Run a command on every NPU, or once, on the first; its exit code and the traffic.

        Its standard output goes to `output` instead of this process's, if given.
        """
        before = read_counters(self.plan)
        code = self._run_once(words, output) if once else self._run_on_all(words, output)
        return code, Traffic.between(self.plan, before, read_counters(self.plan))

    def _run_once(self, words: Sequence[str], output: BinaryIO | None) -> int:
        host = self.plan.host(int(self.plan.topology.members[0]))
        started = subprocess.Popen(
            [str(ENTER), host, *words], env=environment(self.plan), stdout=output
        )
        code = started.wait()
        return code if code >= 0 else 128 - code

    def _run_on_all(self, words: Sequence[str], output: BinaryIO | None) -> int:
        shared = environment(self.plan)
        started: list[Running] = []
        for rank, npu in enumerate(self.plan.topology.members.tolist()):
            env = shared | rank_environment(self.plan, rank)
            started.append(Running(rank, self.plan.host(npu), words, env))
        return run_together(started, output or sys.stdout.buffer)


def starts_ranks_itself(words: Sequence[str]) -> bool:
    """Whether a command is known to start the others, as mpiexec does."""
    return os.path.basename(words[0]) in _STARTERS


def check_command(plan: LabPlan, words: Sequence[str]) -> None:
    """Raise if there is no such command."""
    if shutil.which(words[0], path=environment(plan)["PATH"]) is None:
        raise InputError(f"there is no command {quoted(words[0])} to run in the lab")

"""What ranks do in tests of faults: a module of its own, since every rank loads it."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np

from weft.algorithm import Algorithm
from weft.errors import WeftError
from weft.runtime import Communicator, RunError

Said = tuple[str, str, int, bool]


def endless(
    communicator: Communicator, plan: Algorithm, victim: int, after_s: float, number: int
) -> Said:
    """Run until something is wrong; one rank sends itself a signal meanwhile."""
    if communicator.rank == victim:

        def end() -> None:
            time.sleep(after_s)
            os.kill(os.getpid(), number)

        threading.Thread(target=end, daemon=True).start()
    array = np.full(1 << 16, communicator.rank + 1, dtype=np.float32)
    while True:
        out = np.zeros_like(array)
        try:
            communicator.run(plan, array, out)
        except RunError as error:
            return type(error).__name__, str(error), error.peer, communicator.usable
        assert (out == 10).all()


def odd_one(communicator: Communicator, odd: int, plans: list[Algorithm], how: Any) -> Said:
    mine = how if communicator.rank == odd else {}
    plan = plans[mine.get("plan", 0)]
    array = np.ones(mine.get("count", 64), dtype=mine.get("dtype", "float32"))
    try:
        communicator.run(plan, array, op=mine.get("op", "sum"))
    except RunError as error:
        return type(error).__name__, str(error), error.peer, communicator.usable
    return "", "", -1, True


def two_ways(communicator: Communicator, plan: Algorithm, other: Algorithm) -> str:
    """Both plans have been agreed on; then one rank takes the other."""
    array = np.ones(64, dtype=np.float32)
    for one in (plan, other):
        communicator.run(one, array)
    try:
        communicator.run(plan if communicator.rank else other, array)
    except RunError as error:
        return type(error).__name__
    return ""


def wrong_buffer(communicator: Communicator, plan: Algorithm) -> str:
    size = 63 if communicator.rank == 1 else 64
    try:
        communicator.run(plan, np.ones(64, dtype=np.float32), np.ones(size, dtype=np.float32))
    except WeftError as error:
        return str(error)
    return ""

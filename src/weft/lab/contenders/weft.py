"""An algorithm of Weft, by its own runtime."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from weft.api import load
from weft.lab.contenders.data import given, wanted
from weft.lab.contenders.gate import arguments, pass_gate
from weft.runtime import Communicator, Programs

_SEND_BUFFER = 1 << 16  # what waits in the system can no longer be overtaken by what is due


def main() -> None:
    """Run the algorithm in a file as often as the lab asks."""
    collective, size = arguments()
    programs = Programs(load(sys.argv[3]))
    told = json.loads(Path(os.environ["WEFT_ADDRESSES"]).read_text())
    rank, ranks = int(os.environ["WEFT_RANK"]), int(os.environ["WEFT_SIZE"])
    ways = {int(peer): (way["local"], way["remote"]) for peer, (way, *_) in told["peers"].items()}
    source = given(collective, rank, ranks, size)
    right = wanted(collective, rank, ranks, size)
    target = np.empty_like(right)
    with Communicator.tcp(
        rank,
        ranks,
        os.environ["WEFT_RENDEZVOUS"],
        addresses=ways,
        address=told["host"],
        send_buffer=_SEND_BUFFER,
    ) as communicator:
        pass_gate(
            lambda: communicator.run(programs, source, target),
            lambda: target.fill(-1),
            lambda: int(np.count_nonzero(target != right)),
        )


if __name__ == "__main__":
    main()

"""An algorithm of Weft, by its own runtime."""

from __future__ import annotations

import os
import sys

import numpy as np

from weft.api import load
from weft.lab.contenders.data import given, wanted
from weft.lab.contenders.gate import arguments, pass_gate
from weft.runtime import Communicator, Programs, addresses_of


def main() -> None:
    """Run the algorithm in a file as often as the lab asks."""
    collective, size = arguments()
    programs = Programs(load(sys.argv[3]))
    rank, ranks = int(os.environ["WEFT_RANK"]), int(os.environ["WEFT_RANKS"])
    source = given(collective, rank, ranks, size)
    right = wanted(collective, rank, ranks, size)
    target = np.empty_like(right)
    addresses = addresses_of(os.environ["WEFT_ADDRESSES"])
    with Communicator.tcp(rank, ranks, os.environ["WEFT_RENDEZVOUS"], **addresses) as communicator:
        pass_gate(
            lambda: communicator.run(programs, source, target),
            lambda: target.fill(-1),
            lambda: int(np.count_nonzero(target != right)),
        )


if __name__ == "__main__":
    main()

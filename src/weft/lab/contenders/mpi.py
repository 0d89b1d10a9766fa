"""The collectives of MPI, by mpi4py."""

from __future__ import annotations

import numpy as np

from weft.lab.contenders.data import given, wanted
from weft.lab.contenders.gate import arguments, pass_gate


def main() -> None:
    """Run one collective as often as the lab asks."""
    from mpi4py import MPI  # which starts MPI

    collective, size = arguments()
    world = MPI.COMM_WORLD
    source = given(collective, world.rank, world.size, size)
    right = wanted(collective, world.rank, world.size, size)
    target = np.empty_like(right)
    calls = {
        "all-reduce": world.Allreduce,
        "all-gather": world.Allgather,
        "all-to-all": world.Alltoall,
    }
    call = calls[collective]
    pass_gate(
        lambda: call(source, target),
        lambda: target.fill(-1),
        lambda: int(np.count_nonzero(target != right)),
    )


if __name__ == "__main__":
    main()

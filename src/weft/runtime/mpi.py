"""MPI as the way between ranks."""

from __future__ import annotations

import os

_SIGNS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")


def under_mpiexec() -> bool:
    """Whether this process was started as a rank of MPI."""
    return any(name in os.environ for name in _SIGNS)

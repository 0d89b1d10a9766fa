"""MPI as the way between ranks, by mpi4py."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.errors import InputError
from weft.runtime.rendezvous import Rendezvous, free_address
from weft.runtime.transports import Transport

_SIGNS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID")
_PIECE = 1 << 18  # bytes of a message at most
_ROOM = 4 * _PIECE
_WINDOW = 4  # messages to a peer that are under way at once
_LONGEST_S = 0.001  # to sleep while nothing comes


def under_mpiexec() -> bool:
    """Whether this process was started as a rank of MPI."""
    return any(name in os.environ for name in _SIGNS)


def library() -> Any:
    """The module of mpi4py; raises InputError where there is none."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise InputError(f"MPI is not there: {error}; install weft[mpi]") from None
    return MPI


def meet(communicator: Any, timeout_s: float) -> Rendezvous:
    """The ranks of an MPI communicator, also connected beside it, which faults need."""
    mpi = library()
    rank, size = communicator.Get_rank(), communicator.Get_size()
    together = communicator.Split_type(mpi.COMM_TYPE_SHARED)
    one_host = communicator.allreduce(together.Get_size() == size, op=mpi.LAND)
    together.Free()
    name, listener = "", None
    if rank == 0 and one_host:
        name = f"unix:@weft-{uuid.uuid4().hex}"
    elif rank == 0:
        name, listener = free_address(mpi.Get_processor_name())
    name = communicator.bcast(name, root=0)
    return Rendezvous(rank, size, name, timeout_s=timeout_s, listener=listener)


class Mpi(Transport):
    """Streams of bytes in messages of MPI, many under way at once."""

    words = "MPI"

    def __init__(self, rendezvous: Rendezvous, communicator: Any) -> None:
        self._mpi = library()
        self._communicator = communicator.Dup()
        self._pipes = _core.Pipes(rendezvous.size, _ROOM)
        self._peers: list[int] = []
        self._receives: dict[int, tuple[Any, NDArray[np.uint8]]] = {}
        self._held: dict[int, NDArray[np.uint8]] = {}  # came, and had no room yet
        self._sends: list[tuple[int, Any, NDArray[np.uint8]]] = []
        self._idle_s = 0.0

    def ready(self, lanes: Iterable[int]) -> _core.Transport:
        for peer in sorted(set(lanes) - set(self._peers)):
            self._peers.append(peer)
            self._post(peer, np.empty(_PIECE, dtype=np.uint8))
        return self._pipes

    def carry(self) -> None:
        """Pass on what waits either way; sleep a little if that is nothing."""
        moved = [self._collect(), self._deliver(), self._send()]
        if any(moved):
            self._idle_s = 0.0
            return
        self._idle_s = min(self._idle_s * 2 + 1e-6, _LONGEST_S)
        time.sleep(self._idle_s if self._idle_s > 2e-5 else 0)

    def finish(self) -> None:
        """Wait until all that was sent has left."""
        while self._send() or self._sends:
            self._collect()
            self._deliver()

    def close(self) -> None:
        if self._mpi.Is_finalized():
            return
        for request, _ in self._receives.values():
            request.Cancel()
            request.Wait()
        self._receives.clear()
        self._communicator.Free()

    def _post(self, peer: int, memory: NDArray[np.uint8]) -> None:
        request = self._communicator.Irecv([memory, self._mpi.BYTE], source=peer)
        self._receives[peer] = request, memory

    def _collect(self) -> bool:
        """Take what has come."""
        peers = list(self._receives)
        if not peers:
            return False
        statuses: list[Any] = []
        statuses = [self._mpi.Status() for _ in peers]
        done = self._mpi.Request.Testsome([self._receives[p][0] for p in peers], statuses)
        for place, at in enumerate(done or ()):
            peer = peers[at]
            _, memory = self._receives.pop(peer)
            self._held[peer] = memory[: statuses[place].Get_count(self._mpi.BYTE)]
        return bool(done)

    def _deliver(self) -> bool:
        """Give what has come to the run, as far as it has room."""
        moved = False
        for peer, held in list(self._held.items()):
            taken = self._pipes.put(peer, held)
            moved |= taken > 0
            if taken == len(held):
                del self._held[peer]
                base = held.base
                self._post(peer, base if isinstance(base, np.ndarray) else held)
            else:
                self._held[peer] = held[taken:]
        return moved

    def _send(self) -> bool:
        """Send what waits, as long as not too much is under way."""
        if self._sends:
            done = self._mpi.Request.Testsome([request for _, request, _ in self._sends]) or ()
            self._sends = [one for at, one in enumerate(self._sends) if at not in set(done)]
        under_way = [peer for peer, _, _ in self._sends]
        moved = False
        for peer in self._peers:
            while under_way.count(peer) < _WINDOW:
                memory = np.empty(_PIECE, dtype=np.uint8)
                taken = self._pipes.take(peer, memory)
                if taken == 0:
                    break
                piece = memory[:taken]
                request = self._communicator.Isend([piece, self._mpi.BYTE], dest=peer)
                self._sends.append((peer, request, piece))
                under_way.append(peer)
                moved = True
        return moved

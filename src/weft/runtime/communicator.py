"""Ranks that run algorithms together."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.errors import unknown_name
from weft.runtime import buffers, mpi
from weft.runtime.agreement import Offer, agreed_counts, agreed_type
from weft.runtime.calls import KEPT, Call, Plan, Planned
from weft.runtime.cutting import Fitted
from weft.runtime.errors import DisagreementError, LostError, RunError, StalledError
from weft.runtime.layout import held
from weft.runtime.program import Program, What
from weft.runtime.rendezvous import Rendezvous
from weft.runtime.transports import Routes, SharedMemory, Tcp, Transport

_SLICE_S = 0.1  # between two looks at signals
_MOST_AGREED = 1024


@dataclass(frozen=True, eq=False)
class Times:
    """When a rank began and ended each row of its program, in nanoseconds of its own clock."""

    program: Program
    begin: NDArray[np.int64]
    end: NDArray[np.int64]


class Communicator:
    """One rank among several, each a process: NPU r of an algorithm is rank r.

    Every rank makes the same calls in the same order. Once a run has failed the communicator is of
    no more use: `usable` says so.

    Attributes
    ----------
    rank, size
        Which rank this is, and how many there are.
    usable
        Whether it can run anything more.
    """

    def __init__(self, rendezvous: Rendezvous, transport: Transport, timeout_s: float) -> None:
        self.rank, self.size = rendezvous.rank, rendezvous.size
        self.usable = True
        self._rendezvous, self._transport, self._timeout_s = rendezvous, transport, timeout_s
        self._turn = 0
        self._plans: dict[tuple[int, bool], Planned] = {}
        self._agreed: dict[bytes, tuple[str, list[int]]] = {}
        self._scratch = np.zeros(0, dtype=np.uint8)

    @classmethod
    def shared_memory(
        cls, rank: int, size: int, rendezvous: str, *, timeout_s: float = 60.0
    ) -> Communicator:
        """Ranks on one machine, through memory that they share.

        Parameters
        ----------
        rendezvous
            Where rank 0 listens: ``host:port``, or ``unix:@name`` on one machine.
        timeout_s
            For how long nothing may move before a run fails.
        """
        meeting = Rendezvous(rank, size, rendezvous, timeout_s=timeout_s)
        return cls._made(meeting, lambda: SharedMemory(meeting), timeout_s)

    @classmethod
    def tcp(
        cls,
        rank: int,
        size: int,
        rendezvous: str,
        *,
        addresses: Mapping[int, Routes] | None = None,
        address: str = "127.0.0.1",
        send_buffer: int | None = None,
        early_buffer: int | None = None,
        timeout_s: float = 60.0,
    ) -> Communicator:
        """Ranks on any hosts, over one TCP connection a pair.

        Parameters
        ----------
        rendezvous, timeout_s
            As for `shared_memory`.
        addresses
            For each peer the address here, and the peer's, between which the connection goes;
            or several `Route`, if each leads over other links: bytes go as the plan has them.
            Where there is none, it is `address` here and the peer's own `address` there.
        send_buffer
            Bytes that the system may hold of a connection before they leave (SO_SNDBUF). By default
            256 KiB between ranks of one machine, and elsewhere what the system chooses.
        early_buffer
            Bytes that it may hold that have come and are not due yet (SO_RCVBUF), where several
            routes end in the same link: there they would hold up what is due.
        """
        meeting = Rendezvous(rank, size, rendezvous, timeout_s=timeout_s)
        return cls._made(
            meeting,
            lambda: Tcp(
                meeting,
                addresses,
                address=address,
                send_buffer=send_buffer,
                early_buffer=early_buffer,
            ),
            timeout_s,
        )

    @classmethod
    def mpi(cls, communicator: Any = None, *, timeout_s: float = 60.0) -> Communicator:
        """The ranks of an MPI communicator of mpi4py; by default all there are."""
        given = mpi.library().COMM_WORLD if communicator is None else communicator
        meeting = mpi.meet(given, timeout_s)
        return cls._made(meeting, lambda: mpi.Mpi(meeting, given), timeout_s)

    @classmethod
    def _made(cls, meeting: Rendezvous, make: Any, timeout_s: float) -> Communicator:
        try:
            return cls(meeting, make(), timeout_s)
        except BaseException as error:
            meeting.abort(_known(error, meeting.rank))
            meeting.close()
            raise

    def run(
        self,
        algorithm: Plan,
        send: object,
        recv: object = None,
        op: str = "sum",
        *,
        dtype: str | None = None,
        count: int | Sequence[int] | None = None,
        reproducible: bool = False,
        trace: bool = False,
    ) -> Times | None:
        """Run an algorithm on arrays; all ranks of its network call this together.

        Parameters
        ----------
        algorithm
            A `weft.Result`, a `weft.Algorithm`, or `Programs` of one. It is not judged.
        send, recv
            Arrays that lie in one piece: what this rank has at the start, and where it gets what it
            must have. Without `recv` all happens in `send`, which is then as long as the longer of
            both. For several collectives a list with an array for each, None where this rank takes
            no part. Relays give None.
        op
            For sums: sum, product, min, max or average.
        dtype
            Type of the elements, if not that of the arrays: ``bf16`` for words of 16 bits.
        count
            Elements of the largest buffer on a rank (of each collective, if a sequence), where the
            arrays do not say it. Ranks that know no better are told by the others.
        reproducible
            Add in the plan's order, so that the last bits are the same every time.
        trace
            Note when each row of the program began and ended, and give that.

        Raises
        ------
        RunError
            Something went wrong on some rank, and nothing that was received counts.
        """
        if op not in buffers.OPS:
            raise unknown_name("op", op, buffers.OPS)
        self._check_usable()
        try:
            plan = self._plan(algorithm, reproducible=reproducible)
            call = plan.call(self.rank, send, recv, dtype, count)
            self._turn += 1
            key = self._agree(plan, call, op)
            fitted = plan.fitted(self.rank, call.counts, self._transport)
            return self._execute(plan, call, fitted, op, key, trace=trace)
        except BaseException as error:
            self.failed(error)
            raise

    def barrier(self) -> None:
        """Wait until all ranks have come here."""
        self._check_usable()
        try:
            self._turn += 1
            offer = Offer(self._turn, b"barrier", "", "", [])
            agreed_counts(self._exchange(msgspec.msgpack.encode(offer)))
        except BaseException as error:
            self.failed(error)
            raise

    def exchange(self, said: bytes) -> list[bytes]:
        """Tell all others a few bytes, and hear theirs, by rank."""
        self._check_usable()
        try:
            return self._rendezvous.exchange(said)
        except BaseException as error:
            self.failed(error)
            raise

    @property
    def transport(self) -> str:
        """How bytes get from rank to rank, in words."""
        return self._transport.words

    @property
    def ways(self) -> dict[int, list[tuple[int, ...]]]:
        """The links of the network over which bytes go to each peer, as far as it is known.

        For each way there are; what names no way takes the first.
        """
        return self._transport.ways()

    def close(self) -> None:
        """Leave; others may end what they have begun."""
        self.usable = False
        self._rendezvous.close()
        self._transport.close()

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self.usable:
            self.failed(error)
        self.close()

    def _check_usable(self) -> None:
        if not self.usable:
            raise RunError("this communicator was closed, or a run on it failed; make a new one")

    def failed(self, error: BaseException) -> None:
        """Say that this rank cannot go on; the others raise, and nothing more can be run."""
        if not self.usable:
            return
        self.usable = False
        known = _known(error, self.rank)
        if not known.told:
            self._rendezvous.abort(known)

    def _plan(self, algorithm: Plan, *, reproducible: bool) -> Planned:
        key = id(algorithm), reproducible
        if key not in self._plans:
            while len(self._plans) >= KEPT:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = Planned(algorithm, self.size, reproducible=reproducible)
        return self._plans[key]

    def _exchange(self, said: bytes) -> list[Offer]:
        decoder = msgspec.msgpack.Decoder(Offer)
        return [decoder.decode(text) for text in self._rendezvous.exchange(said)]

    def _agree(self, plan: Planned, call: Call, op: str) -> bytes:
        """Make sure that all were asked for the same; gives a key for this run."""
        offer = Offer(0, plan.programs.digest, call.type, op, call.counts)
        key = hashlib.sha256(msgspec.msgpack.encode(offer)).digest()
        if key in self._agreed:
            call.type, call.counts = self._agreed[key]
        else:
            offer.turn = self._turn
            offers = self._exchange(msgspec.msgpack.encode(offer))
            call.type, call.counts = agreed_type(offers), agreed_counts(offers)
            # All ranks ask again, or none: so only what each of them knew by itself is kept.
            if all(one.type and -1 not in one.counts for one in offers):
                if len(self._agreed) >= _MOST_AGREED:
                    self._agreed.clear()
                self._agreed[key] = call.type, call.counts
        call.check(plan)
        offer = Offer(self._turn, plan.programs.digest, call.type, op, call.counts)
        return hashlib.sha256(msgspec.msgpack.encode(offer)).digest()

    def _execute(
        self, plan: Planned, call: Call, fitted: Fitted, op: str, key: bytes, *, trace: bool
    ) -> Times | None:
        program = fitted.program
        moved = program.what != What.LOCAL
        channels = self._transport.ready(np.unique(fitted.lanes[moved]).tolist())
        kind, dtype = buffers.TYPES[call.type]
        scratch = self._room(fitted.scratch * dtype.itemsize)
        pairs = call.views(plan)
        arrays = [one.view(np.uint8) for pair in pairs for one in pair]
        core_op = getattr(_core.ElementOp, "sum" if op == "average" else op)
        execution = _core.Execution(
            fitted.core, [*arrays, scratch], kind, core_op, channels, key, trace
        )
        self._finish(execution, program)
        if op == "average":
            _divide(plan, fitted, pairs, kind)
        return Times(program, *execution.times()) if trace else None

    def _finish(self, execution: _core.Execution, program: Program) -> None:
        moved, deadline, looked = -1, 0.0, 0.0
        while True:
            state = execution.advance(_SLICE_S)
            if state == _core.RunState.done:
                self._transport.finish()
                return
            self._transport.carry()
            if time.monotonic() > looked + _SLICE_S or state != _core.RunState.running:
                looked = time.monotonic()
                self._look_around(execution, program)
            if state == _core.RunState.closed:
                raise self._stopped(execution, program, LostError, "is gone")
            if state == _core.RunState.disagreeing:
                raise self._stopped(
                    execution, program, DisagreementError, "runs another plan, size, type or op"
                )
            if execution.moved != moved:
                moved, deadline = execution.moved, time.monotonic() + self._timeout_s
            elif time.monotonic() > deadline:
                why = f"moved nothing for {self._timeout_s:g} s"
                stalled = self._stopped(execution, program, StalledError, why)
                raise self._rendezvous.settled(stalled)

    def _look_around(self, execution: _core.Execution, program: Program) -> None:
        """Raise if another rank is in trouble."""
        try:
            self._rendezvous.check()
        except LostError as error:
            if error.told or error.row >= 0:
                raise
            raise self._stopped(execution, program, LostError, "ended", error.peer) from None

    def _stopped(
        self,
        execution: _core.Execution,
        program: Program,
        kind: type[RunError],
        why: str,
        peer: int = -1,
    ) -> RunError:
        """An error that names the peer, the row and the chunk."""
        waiting = list(execution.waiting)
        if peer < 0 <= execution.peer:
            peer = execution.peer % self.size
        mine = [row for row in waiting if peer < 0 or program.peer[row] == peer]
        receives = [row for row in mine if program.what[row] == What.RECEIVE]
        row = next(iter([*receives, *mine]), -1)
        waits = [
            (int(program.peer[at]), int(program.number[at]), int(program.chunk[at]))
            for at in waiting
        ]
        if row < 0:
            behind = (
                f" while rank {waits[0][0]} is waited for, at row {waits[0][1]}" if waits else ""
            )
            return kind(f"rank {self.rank}: rank {peer} {why}{behind}", peer=peer, waits=waits)
        peer = int(program.peer[row]) if peer < 0 else peer
        number, chunk = int(program.number[row]), int(program.chunk[row])
        what = "receive" if program.what[row] == What.RECEIVE else "send"
        return kind(
            f"rank {self.rank}: rank {peer} {why}, at row {number}: {what} chunk {chunk}",
            peer=peer,
            row=number,
            chunk=chunk,
            waits=waits,
        )

    def _room(self, size: int) -> NDArray[np.uint8]:
        if len(self._scratch) < size:
            self._scratch = np.empty(size, dtype=np.uint8)
        return self._scratch


def _known(error: BaseException, rank: int) -> RunError:
    """An error as the other ranks hear of it."""
    if isinstance(error, RunError):
        return error
    return RunError(f"rank {rank} failed: {error or type(error).__name__}", peer=rank)


def _divide(
    plan: Planned,
    fitted: Fitted,
    pairs: list[tuple[buffers.Array, buffers.Array]],
    kind: _core.ElementType,
) -> None:
    """Divide sums by how many have a part in them."""
    chunks, sides = plan.algorithm.chunks, fitted.sides
    parts = chunks.set_sizes[chunks.pre]
    _, wants = held(chunks, fitted.program.npu)
    for chunk in np.flatnonzero(wants & chunks.reduce).tolist():
        output = pairs[int(sides.demand[chunk])][1]
        first = int(sides.output_start[chunk])
        piece = output[first : first + int(sides.lengths[chunk])]
        _core.divide(kind, piece.view(np.uint8), int(parts[chunk]))

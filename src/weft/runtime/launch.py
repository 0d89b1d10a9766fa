"""Ranks as processes of this machine, for scripts and tests."""

from __future__ import annotations

import multiprocessing
import os
import traceback
import uuid
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

from weft.errors import InputError, WeftError, unknown_name
from weft.runtime.communicator import Communicator
from weft.runtime.errors import LostError, RunError

LOCAL = ("shm", "tcp")
_PATIENCE_S = 5.0
_BEAT_S = 0.2


class Ranks:
    """So many processes, each with a communicator, that wait to be told what to do.

    Use it with ``with``: at its end the processes are gone.
    """

    def __init__(self, size: int, transport: str = "shm", *, timeout_s: float = 60.0) -> None:
        if size < 1:
            raise InputError(f"there are {size} ranks; expected 1 or more")
        if transport not in LOCAL:
            raise unknown_name("transport", transport, LOCAL)
        address = f"unix:@weft-{uuid.uuid4().hex}"
        # Ranks are copies of a server that has imported everything once.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self.processes, self._pipes = [], []
        try:
            for rank in range(size):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve,
                    args=(theirs, rank, size, address, transport, timeout_s),
                    daemon=True,
                    name=f"weft rank {rank}",
                )
                process.start()
                theirs.close()
                self.processes.append(process)
                self._pipes.append(ours)
            self._collect()
        except BaseException:
            self.close()
            raise

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call ``function(communicator, *args)`` on every rank; gives what each returns, by rank.

        The function must be one that can be pickled. What a rank raises is raised here: where
        several do, an error that is not the others' reaction to it.
        """
        return self.run_each(function, [args] * len(self.processes))

    def run_each(self, function: Callable[..., Any], args: Sequence[Sequence[Any]]) -> list[Any]:
        """The same with arguments of its own for each rank."""
        for rank, (pipe, own) in enumerate(zip(self._pipes, args, strict=True)):
            try:
                pipe.send((function, tuple(own)))
            except OSError:
                raise LostError(f"rank {rank} ended", peer=rank) from None
        return self._collect()

    def _collect(self) -> list[Any]:
        found: list[Any] = [None] * len(self._pipes)
        failures: list[tuple[int, BaseException]] = []
        open_pipes: dict[Connection, int] = {pipe: rank for rank, pipe in enumerate(self._pipes)}
        while open_pipes:
            for pipe in wait(list(open_pipes), _BEAT_S):  # interrupts come in between
                assert isinstance(pipe, Connection)
                rank = open_pipes.pop(pipe)
                try:
                    right, value = pipe.recv()
                except (EOFError, OSError):
                    code = self.processes[rank].exitcode
                    failures.append((rank, LostError(f"rank {rank} ended ({code})", peer=rank)))
                    continue
                if right:
                    found[rank] = value
                else:
                    failures.append((rank, value))
        if failures:
            raise min(failures, key=lambda one: (isinstance(one[1], RunError), one[0]))[1]
        return found

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self.processes:
            process.join(_PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for process in self.processes:
                process.kill()
        self.close()


def local(size: int, transport: str = "shm", *, timeout_s: float = 60.0) -> Ranks:
    """So many ranks on this machine, as processes that share memory (shm) or speak TCP (tcp).

    Examples
    --------
    >>> with weft.runtime.local(4) as ranks:  # doctest: +SKIP
    ...     ranks.run(my_function, algorithm)
    """
    return Ranks(size, transport, timeout_s=timeout_s)


def _serve(
    pipe: Connection, rank: int, size: int, address: str, transport: str, timeout_s: float
) -> None:
    """A rank's process: call what comes through the pipe until it is closed."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started it ends it
    make = Communicator.shared_memory if transport == "shm" else Communicator.tcp
    try:
        communicator = make(rank, size, address, timeout_s=timeout_s)
    except BaseException as error:
        _answer(pipe, right=False, value=error)
        os._exit(1)
    _answer(pipe, right=True, value=None)
    while True:
        try:
            function, args = pipe.recv()
        except (EOFError, OSError):
            break
        try:
            value = function(communicator, *args)
        except BaseException as error:
            communicator.failed(error)
            _answer(pipe, right=False, value=error)
        else:
            _answer(pipe, right=True, value=value)
    communicator.close()


def _answer(pipe: Connection, *, right: bool, value: Any) -> None:
    try:
        if not right and not isinstance(value, WeftError):
            lines = "".join(traceback.format_exception(value))
            value.add_note(f"on a rank:\n{lines}")
        pipe.send((right, value))
    except OSError:
        pass  # nobody listens any more
    except Exception as error:  # a value that cannot be pickled
        pipe.send((False, RunError(f"a rank gave what cannot be passed on: {error}")))

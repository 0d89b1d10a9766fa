"""A gate at which all ranks of a program wait for each other: a socket beside the network.

The lab's side opens it once all are there, at one moment for all, and hears when each began and
ended. Clocks are those of one machine.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIABLE = "WEFT_LAB_GATE"
_AHEAD_S = 0.1  # all must have heard when to start


class Gate:
    """The side of the lab."""

    def __init__(self, path: Path, ranks: int, warm_ups: int, rounds: int) -> None:
        path.unlink(missing_ok=True)
        self.warm_ups, self.rounds = warm_ups, rounds
        self.spans: list[list[tuple[float, float]]] = []  # by round, of each rank
        self.wrong = 0
        self.on_start: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None
        self._ranks = ranks
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(ranks)
        self._lines: list[socket.socket] = []
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send all away who still wait."""
        for one in (self._server, *self._lines):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for one in (self._server, *self._lines):
            one.close()

    def _keep(self) -> None:
        with suppress(OSError, EOFError, ValueError):
            while len(self._lines) < self._ranks:
                line = self._server.accept()[0]
                self._lines.append(line)
                _say(line, [self.warm_ups + self.rounds])
            for number in range(self.warm_ups + self.rounds):
                self._open(timed=number >= self.warm_ups)

    def _open(self, *, timed: bool) -> None:
        for line in self._lines:
            _heard(line)
        if timed and not self.spans:
            self.on_start()
        moment = time.monotonic() + _AHEAD_S
        for line in self._lines:
            _say(line, [moment])
        said = [_heard(line) for line in self._lines]
        if timed:
            self.spans.append([(start, end) for start, end, _ in said])
            if len(self.spans) == self.rounds:
                self.on_end()
        for line in self._lines:
            _say(line, [])
        self.wrong += sum(wrong for _, _, wrong in said)


def pass_gate(
    work: Callable[[], object], prepare: Callable[[], object], wrong: Callable[[], int]
) -> None:
    """A rank's side: prepare and work as often as the lab says, and count wrong elements."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ[VARIABLE])
    (rounds,) = _heard(line)
    for _ in range(int(rounds)):
        prepare()
        _say(line, [])
        (moment,) = _heard(line)
        time.sleep(max(0.0, moment - time.monotonic()))
        start = time.monotonic()
        work()
        end = time.monotonic()
        _say(line, [start, end, wrong()])
        _heard(line)


def _say(line: socket.socket, numbers: list[Any]) -> None:
    line.sendall(json.dumps(numbers).encode() + b"\n")


def _heard(line: socket.socket) -> list[Any]:
    """The next line; what is said is answered, so there is never more than one."""
    said = b""
    while not said.endswith(b"\n"):
        piece = line.recv(4096)
        if not piece:
            raise EOFError
        said += piece
    found: list[Any] = json.loads(said)
    return found


def arguments() -> tuple[str, int]:
    """The collective and the size that a program was started with."""
    return sys.argv[1], int(sys.argv[2])

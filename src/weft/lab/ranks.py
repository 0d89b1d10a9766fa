"""Commands on the hosts of a lab: started together, heard line by line, ended together."""

from __future__ import annotations

import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from weft.lab.environment import ENTER

_GRACE_S = 3  # from being asked to end to being killed
_LAST_WORDS_S = 0.5  # for what children of a command that ended have still to say
_MOST_AT_ONCE = 1 << 16
_TOO_LATE = 124  # as timeout(1) has it


class Running:
    """One command on one host."""

    def __init__(self, rank: int, host: str, words: Sequence[str], env: Mapping[str, str]) -> None:
        self.rank = rank
        self.process = subprocess.Popen(
            [str(ENTER), host, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that all it starts can be ended with it
        )
        self.ended = os.pidfd_open(self.process.pid)

    def close(self) -> None:
        """Give back what listened to it."""
        os.close(self.ended)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class _Lines:
    """One output of a command, cut into lines that are passed on with the rank before them."""

    def __init__(self, source: IO[bytes], target: IO[bytes], prefix: bytes) -> None:
        self.source, self.target, self.prefix = source, target, prefix
        self.rest = b""

    def pass_on(self) -> bool:
        """What is there now; False at its end."""
        data = os.read(self.source.fileno(), _MOST_AT_ONCE)
        *lines, self.rest = (self.rest + data).split(b"\n")
        if self.rest and (not data or len(self.rest) > _MOST_AT_ONCE):
            lines.append(self.rest)
            self.rest = b""
        for line in lines:
            self.target.write(self.prefix + line + b"\n")
        self.target.flush()
        return bool(data)


class _Group:
    """Commands that run together: the first that fails ends the others."""

    def __init__(self, commands: Sequence[Running], output: IO[bytes], errors: IO[bytes]) -> None:
        self.left, self.errors = set(commands), errors
        self.code, self.stopped_at = 0, 0.0
        self.selector = selectors.DefaultSelector()
        for one in commands:
            assert one.process.stdout is not None
            assert one.process.stderr is not None
            prefix = f"[{one.rank}] ".encode() if len(commands) > 1 else b""
            out = _Lines(one.process.stdout, output, prefix if one.rank else b"")
            for lines in (out, _Lines(one.process.stderr, errors, prefix)):
                self.selector.register(lines.source, selectors.EVENT_READ, lines)
            self.selector.register(one.ended, selectors.EVENT_READ, one)

    def wait(self, end: float) -> None:
        """Until none is left."""
        while self.left:
            patience = _GRACE_S if self.stopped_at else end - time.monotonic()
            for key, _ in self.selector.select(None if patience == math.inf else patience):
                if isinstance(key.data, _Lines):
                    self._pass_on(key.data)
                else:
                    self._over(key.data)
            now = time.monotonic()
            if not self.stopped_at and now >= end:
                self._stop(_TOO_LATE, "it took longer than it may")
            if self.stopped_at and now > self.stopped_at + _GRACE_S:
                _signal(self.left, signal.SIGKILL)

    def hear_out(self) -> None:
        """Pass on what is still in the pipes, which a process in the background may hold open."""
        end = time.monotonic() + _LAST_WORDS_S
        while self.selector.get_map() and time.monotonic() < end:
            for key, _ in self.selector.select(end - time.monotonic()):
                self._pass_on(key.data)

    def _pass_on(self, lines: _Lines) -> None:
        if not lines.pass_on():
            self.selector.unregister(lines.source)

    def _over(self, one: Running) -> None:
        self.selector.unregister(one.ended)
        self.left.discard(one)
        failed = one.process.wait()
        if failed and not self.stopped_at:
            code = failed if failed > 0 else 128 - failed
            self._stop(code, f"rank {one.rank} ended with exit code {code}")

    def _stop(self, code: int, why: str) -> None:
        self.code, self.stopped_at = code, time.monotonic()
        self.errors.write(f"weft: {why}\n".encode())
        _signal(self.left, signal.SIGTERM)


def run_together(
    commands: Sequence[Running],
    output: IO[bytes],
    errors: IO[bytes],
    limit_s: float = math.inf,
) -> int:
    """Wait for all; gives the exit code, that of ``timeout`` if they take longer than they may.

    The standard output of rank 0 is passed on as it is, lines of all others with their rank.
    """
    group = _Group(commands, output, errors)
    try:
        group.wait(time.monotonic() + limit_s)
    finally:
        _end(commands)
    group.hear_out()
    for one in commands:
        one.close()
    return group.code


def _signal(commands: Iterable[Running], number: int) -> None:
    for one in commands:
        one.signal(number)


def _end(commands: Sequence[Running]) -> None:
    """Leave none running, whatever happened."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = {one for one in commands if one.process.poll() is None}
        _signal(left, number)
        end = time.monotonic() + _GRACE_S
        while left and time.monotonic() < end:
            left = {one for one in left if one.process.poll() is None}
            time.sleep(0.01)
    _signal(commands, signal.SIGKILL)  # what they left in the background

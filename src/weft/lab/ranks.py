"""Commands on the hosts of a lab: started together, heard line by line, ended together."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from weft.lab.environment import ENTER

_GRACE_S = 3  # from being asked to end to being killed
_LAST_WORDS_S = 0.5  # for what children of a command that ended have still to say
_MOST_AT_ONCE = 1 << 16


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


def run_together(commands: Sequence[Running], output: IO[bytes] | None = None) -> int:
    """Wait for all; the first that fails ends the others. Gives the exit code.

    The standard output of rank 0 is passed on as it is, lines of all others with their rank.
    """
    code, stopped_at = 0, 0.0
    with selectors.DefaultSelector() as selector:
        for one in commands:
            _listen(selector, one, output or sys.stdout.buffer)
        left = set(commands)
        try:
            while left:
                for key, _ in selector.select(_GRACE_S if stopped_at else None):
                    if isinstance(key.data, _Lines):
                        if not key.data.pass_on():
                            selector.unregister(key.fileobj)
                        continue
                    one = key.data
                    selector.unregister(key.fileobj)
                    left.discard(one)
                    failed = one.process.wait()
                    if failed and not code:
                        code = failed if failed > 0 else 128 - failed
                        sys.stderr.write(f"weft: rank {one.rank} ended with exit code {code}\n")
                        stopped_at = time.monotonic()
                        _signal(left, signal.SIGTERM)
                if left and stopped_at and time.monotonic() > stopped_at + _GRACE_S:
                    _signal(left, signal.SIGKILL)
        finally:
            _end(commands)
        _hear_out(selector)
    return code


def _listen(selector: selectors.BaseSelector, one: Running, output: IO[bytes]) -> None:
    process = one.process
    assert process.stdout is not None
    assert process.stderr is not None
    prefix = f"[{one.rank}] ".encode()
    out = _Lines(process.stdout, output, prefix if one.rank else b"")
    errors = _Lines(process.stderr, sys.stderr.buffer, prefix)
    for lines in (out, errors):
        selector.register(lines.source, selectors.EVENT_READ, lines)
    selector.register(one.ended, selectors.EVENT_READ, one)


def _hear_out(selector: selectors.BaseSelector) -> None:
    """Pass on what is still in the pipes, which a process in the background may hold open."""
    end = time.monotonic() + _LAST_WORDS_S
    while selector.get_map() and time.monotonic() < end:
        for key, _ in selector.select(end - time.monotonic()):
            if not key.data.pass_on():
                selector.unregister(key.fileobj)


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

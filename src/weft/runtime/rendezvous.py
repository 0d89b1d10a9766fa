"""Where ranks meet: every rank is connected to rank 0, which passes on what they have to say.

Only small things go here: who is where, whether all agree on what comes next, and that something
went wrong. Data takes other ways.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import deque
from contextlib import suppress

import msgspec

from weft.errors import InputError
from weft.quoting import quoted
from weft.runtime.errors import DisagreementError, LostError, RunError, StalledError, heard

_HEAD = struct.Struct("<BI")  # kind and length of a message
_SAY, _ABORT, _BYE = range(3)
_MOST = 1 << 26
_RETRY_S = 0.02


def parse_address(text: str) -> tuple[int, str | tuple[str, int]]:
    """A family and an address: ``host:port``, or a socket of this machine, ``unix:@name``."""
    if text.startswith("unix:"):
        name = text.removeprefix("unix:")
        return socket.AF_UNIX, "\0" + name[1:] if name.startswith("@") else name
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{quoted(text)} is no rendezvous; write it like host:29500")
    host = host.strip("[]")
    return socket.AF_INET6 if ":" in host else socket.AF_INET, (host, int(port))


def free_address(host: str) -> tuple[str, socket.socket]:
    """An address of this host where nobody listens, and a socket that now does."""
    listener = socket.create_server((host, 0), backlog=128)
    return f"{host}:{listener.getsockname()[1]}", listener


class _Line:
    """A connection over which messages go, with those that have come."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.said: deque[bytes] = deque()
        self.over = False  # the other end left, and said so
        self._rest = bytearray()

    def send(self, kind: int, text: bytes, timeout_s: float) -> None:
        self.socket.settimeout(max(timeout_s, 0.001))
        self.socket.sendall(_HEAD.pack(kind, len(text)) + text)

    def take(self) -> bytes | None:
        """Read all that is there; gives the words of an abort. EOFError: the other end is gone."""
        self.socket.setblocking(False)
        gone = False
        while not gone:
            try:
                piece = self.socket.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            gone = not piece
            self._rest += piece
        reason = self._sort()
        if reason is None and gone and not self.over:
            raise EOFError
        return reason

    def _sort(self) -> bytes | None:
        """Take whole messages apart; gives the words of an abort."""
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            if length > _MOST:
                return b""
            end = _HEAD.size + length
            if len(self._rest) < end:
                break
            text = bytes(self._rest[_HEAD.size : end])
            del self._rest[:end]
            if kind == _ABORT:
                return text
            if kind == _BYE:
                self.over = True
            else:
                self.said.append(text)
        return None


class Rendezvous:
    """The star of connections around rank 0.

    Parameters
    ----------
    address
        Where rank 0 listens: see `parse_address`.
    listener
        A socket that listens there already, for rank 0.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        address: str,
        *,
        timeout_s: float = 60.0,
        listener: socket.socket | None = None,
    ) -> None:
        if not 0 <= rank < size:
            raise InputError(f"rank is {rank}; expected 0 to {size - 1}")
        self.rank, self.size, self.timeout_s = rank, size, timeout_s
        self._lines: dict[int, _Line] = {}
        if size == 1:
            return
        deadline = time.monotonic() + timeout_s
        try:
            if rank == 0:
                self._gather_all(address, listener, deadline)
            else:
                self._lines[0] = _Line(_connected(address, deadline))
                self._lines[0].send(_SAY, msgspec.json.encode([rank, size]), timeout_s)
        except OSError as error:
            self.close()
            raise RunError(f"rank {rank} cannot meet the others at {address}: {error}") from None

    def _gather_all(self, address: str, listener: socket.socket | None, deadline: float) -> None:
        family, place = parse_address(address)
        with listener or socket.socket(family, socket.SOCK_STREAM) as server:
            if listener is None:
                if family != socket.AF_UNIX:
                    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(place)
                server.listen(self.size)
            while len(self._lines) < self.size - 1:
                server.settimeout(max(deadline - time.monotonic(), 0.001))
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    missing = sorted(set(range(1, self.size)) - set(self._lines))
                    raise StalledError(
                        f"rank {missing[0]} did not come to {address} within {self.timeout_s:g} s",
                        peer=missing[0],
                    ) from None
                self._greet(_Line(connection), deadline)

    def _greet(self, line: _Line, deadline: float) -> None:
        """Take in who has come, unless it is somebody else than a rank."""
        with suppress(EOFError, OSError, msgspec.DecodeError, StalledError):
            rank, size = msgspec.json.decode(self._hear(line, -1, deadline), type=tuple[int, int])
            if size != self.size or not 0 < rank < self.size or rank in self._lines:
                word = f"rank {rank} of {size} came where ranks 1 to {self.size - 1} are expected"
                line.send(_ABORT, DisagreementError(word).said(), 1.0)
                raise InputError(word)
            self._lines[rank] = line
            return
        line.socket.close()

    @property
    def descriptors(self) -> list[int]:
        """What is readable when something was said."""
        return [line.socket.fileno() for line in self._lines.values() if not line.over]

    def exchange(self, said: bytes) -> list[bytes]:
        """Tell all others something, and hear what each of them says, by rank.

        Raises
        ------
        RunError
            A rank says that something went wrong, ends, or says nothing in time.
        """
        if self.size == 1:
            return [said]
        deadline = time.monotonic() + self.timeout_s
        if self.rank > 0:
            self._tell(0, _SAY, said)
            # Rank 0 knows who is missing, and is given the time to say so.
            answer = self._hear(self._lines[0], 0, deadline + 2 * self._grace_s)
            return msgspec.msgpack.decode(answer, type=list[bytes])
        all_said = [said] + [b""] * (self.size - 1)
        for rank in range(1, self.size):
            all_said[rank] = self._hear(self._lines[rank], rank, deadline)
        answer = msgspec.msgpack.encode(all_said)
        for rank in range(1, self.size):
            self._tell(rank, _SAY, answer)
        return all_said

    def check(self) -> None:
        """Raise if a rank said that something went wrong, or is gone."""
        for rank, line in self._lines.items():
            if not line.over:
                self._take(line, rank)

    @property
    def _grace_s(self) -> float:
        """How long others may take to say what they know of a fault."""
        return min(1.0, self.timeout_s / 2)

    def abort(self, error: RunError) -> None:
        """Tell all others what went wrong; they raise."""
        self._tell_all(error, but=-1)

    def _tell_all(self, error: RunError, but: int) -> None:
        for rank, line in self._lines.items():
            if rank != but and not line.over:
                with suppress(OSError):
                    line.send(_ABORT, error.said(), 1.0)
        error.told = True

    def settled(self, mine: RunError) -> RunError:
        """Who is to blame that nothing moves: not a rank that says so itself.

        Every rank that waits tells rank 0 for whom, and rank 0 tells all what it found.
        """
        if self.rank == 0:
            return self._judged({0: mine})
        self.abort(mine)
        with suppress(StalledError):
            try:
                self._hear(self._lines[0], 0, time.monotonic() + 2 * self._grace_s)
            except RunError as error:
                if error.told:  # by rank 0
                    return error
        return _blamed(0, [mine])

    def _judged(self, reports: dict[int, RunError]) -> RunError:
        """Hear for a while who waits for whom, and tell all."""
        deadline = time.monotonic() + self._grace_s
        while (left := deadline - time.monotonic()) > 0 and len(reports) < self.size:
            with selectors.DefaultSelector() as selector:
                for rank, line in self._lines.items():
                    if not line.over and rank not in reports:
                        selector.register(line.socket, selectors.EVENT_READ, rank)
                ready = selector.select(left)
            for key, _ in ready:
                try:
                    said = self._lines[key.data].take()
                except EOFError:
                    reports[key.data] = LostError(f"rank {key.data} ended", peer=key.data)
                    continue
                if said is not None:
                    reports[key.data] = heard(said)
        known = [error for error in reports.values() if not isinstance(error, StalledError)]
        found = known[0] if known else self._root_of(reports)
        self._tell_all(found, but=-1)
        return found

    def _root_of(self, reports: dict[int, RunError]) -> RunError:
        """Who waits for whom leads to a rank that says nothing, or around in a circle."""
        answering = {self.rank, *reports}
        first = next(iter(reports.values()))
        for _ in reports:
            if first.peer not in reports:
                break
            first = reports[first.peer]
        asked = [wait[0] for error in reports.values() for wait in error.waits]
        silent = [peer for peer in (first.peer, *asked) if peer not in answering and peer >= 0]
        return _blamed(silent[0], [*reports.values()]) if silent else first

    def close(self) -> None:
        """Leave; others may go on with what they have."""
        for line in self._lines.values():
            with suppress(OSError):
                line.send(_BYE, b"", 0.1)
            line.socket.close()
        self._lines.clear()

    def _tell(self, rank: int, kind: int, text: bytes) -> None:
        try:
            self._lines[rank].send(kind, text, self.timeout_s)
        except OSError:
            self._take(self._lines[rank], rank)  # it may have said why
            raise LostError(f"rank {rank} is gone", peer=rank) from None

    def _hear(self, line: _Line, rank: int, deadline: float) -> bytes:
        """The next that this rank says; meanwhile any other may say that something is wrong."""
        lines = dict(self._lines) | {rank: line}
        while not line.said:
            with selectors.DefaultSelector() as selector:
                for number, other in lines.items():
                    if not other.over:
                        selector.register(other.socket, selectors.EVENT_READ, number)
                ready = selector.select(max(deadline - time.monotonic(), 0))
            for key, _ in ready:
                self._take(lines[key.data], key.data)
            if line.over and not line.said:
                raise LostError(f"rank {rank} has left", peer=rank)
            if not ready and time.monotonic() >= deadline:
                raise StalledError(
                    f"rank {rank} did not answer within {self.timeout_s:g} s", peer=rank
                )
        return line.said.popleft()

    def _take(self, line: _Line, rank: int) -> None:
        try:
            said = line.take()
        except EOFError:
            raise LostError(f"rank {rank} ended", peer=rank) from None
        if said is None:
            return
        error = heard(said)
        if self.rank == 0:
            if isinstance(error, StalledError):
                error = self._judged({rank: error})
            else:
                self._tell_all(error, but=rank)
        raise error


def _blamed(culprit: int, reports: list[RunError]) -> StalledError:
    """An error that names the rank that says nothing, and what others waited for."""
    waits = [wait for error in reports for wait in error.waits]
    peer, row, chunk = next((w for w in waits if w[0] == culprit), (-1, -1, -1))
    at = f", asked for row {row}, chunk {chunk}," if peer >= 0 else ""
    words = f"rank {culprit}{at} does not answer; {reports[0]}"
    return StalledError(words, peer=culprit, row=row, chunk=chunk)


def _connected(address: str, deadline: float) -> socket.socket:
    """Connect as soon as somebody listens."""
    family, place = parse_address(address)
    while True:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            connection.connect(place)
            return connection
        except OSError as error:
            connection.close()
            if time.monotonic() + _RETRY_S >= deadline:
                raise StalledError(f"nobody listens at {address}: {error}", peer=0) from None
            time.sleep(_RETRY_S)

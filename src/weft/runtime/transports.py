"""How bytes get from rank to rank: through shared memory, or over TCP."""

from __future__ import annotations

import mmap
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from weft import _core
from weft.errors import InputError
from weft.runtime.errors import LostError, StalledError
from weft.runtime.rendezvous import Rendezvous

RING_BYTES = 1 << 18
_RETRY_S = 0.02
_HELLO = b"weft"
_LOCAL_SEND_BUFFER = 1 << 18


class Transport(ABC):
    """The ways of one rank to all others."""

    @abstractmethod
    def ready(self, peers: Iterable[int]) -> _core.Transport:
        """Channels to at least these peers."""

    def carry(self) -> None:  # noqa: B027 - most need not
        """Do what the core cannot; called when a run can do nothing."""

    def finish(self) -> None:  # noqa: B027
        """Called when a run is over."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds."""


class SharedMemory(Transport):
    """Rings in memory that all ranks of a machine share; it has no name, so none can be left."""

    def __init__(self, rendezvous: Rendezvous, ring_bytes: int = RING_BYTES) -> None:
        rank, size = rendezvous.rank, rendezvous.size
        length = _core.Rings.bytes(size, ring_bytes)
        descriptor = os.memfd_create("weft") if rank == 0 else -1
        try:
            if rank == 0:
                os.truncate(descriptor, length)
            said = rendezvous.exchange(msgspec.json.encode([os.getpid(), descriptor]))
            if rank > 0:
                pid, number = msgspec.json.decode(said[0], type=tuple[int, int])
                try:
                    descriptor = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR)
                except OSError as error:
                    raise LostError(
                        f"rank {rank} cannot share memory with rank 0: {error}", peer=0
                    ) from None
            self._map = mmap.mmap(descriptor, length)
            rendezvous.exchange(b"mapped")  # rank 0 may close it now
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        memory = np.frombuffer(self._map, dtype=np.uint8)
        self._rings = _core.Rings(memory, rank, size, ring_bytes, rendezvous.descriptors)

    def ready(self, peers: Iterable[int]) -> _core.Transport:  # noqa: ARG002 - all are there
        return self._rings

    def close(self) -> None:
        del self._rings  # the memory goes with the last who looks at it


@dataclass(frozen=True)
class Route:
    """How a rank reaches a peer.

    Attributes
    ----------
    local
        The address here from which the connection goes out, or at which it comes in; any if empty.
    remote
        The peer's address for it; what the peer says of itself if empty.
    """

    local: str = ""
    remote: str = ""


class Tcp(Transport):
    """One connection a pair of ranks, made when it is first needed."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        addresses: Mapping[int, Route | tuple[str, str]] | None = None,
        *,
        address: str = "127.0.0.1",
        send_buffer: int | None = None,
    ) -> None:
        self._rendezvous, self._send_buffer = rendezvous, send_buffer
        routes = {
            peer: _route(peer, given, rendezvous) for peer, given in (addresses or {}).items()
        }
        self._routes = routes
        hosts = {address} | {route.local for route in routes.values() if route.local}
        self._listeners = {host: _listening(host) for host in sorted(hosts)}
        ports = {host: server.getsockname()[1] for host, server in self._listeners.items()}
        own = {"address": address, "ports": ports, "of": {}}
        for peer in range(rendezvous.size):
            local = routes.get(peer, Route()).local or address
            own["of"][str(peer)] = local  # type: ignore[index]
        said = rendezvous.exchange(msgspec.json.encode(own))
        self._peers = [msgspec.json.decode(text) for text in said]
        self._sockets: dict[int, socket.socket] = {}
        self._added: set[int] = set()
        self._channels = _core.Sockets(rendezvous.descriptors)

    def ready(self, peers: Iterable[int]) -> _core.Transport:
        self._connect(sorted(set(peers) - set(self._sockets)))
        for peer in self._sockets.keys() - self._added:
            self._channels.add(peer, self._sockets[peer].fileno())
            self._added.add(peer)
        return self._channels

    def _connect(self, peers: list[int]) -> None:
        """Connect to those of higher rank; those of lower rank connect to here."""
        me = self._rendezvous.rank
        deadline = time.monotonic() + self._rendezvous.timeout_s
        for peer in (peer for peer in peers if peer > me):
            self._sockets[peer] = self._dialled(peer, deadline)
        awaited = {peer for peer in peers if peer < me}
        for server in self._listeners.values():
            server.settimeout(_RETRY_S)
        while awaited:
            self._rendezvous.check()
            if time.monotonic() > deadline:
                peer = min(awaited)
                raise StalledError(f"rank {peer} did not connect to rank {me} in time", peer=peer)
            for server in self._listeners.values():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                peer = self._greeted(connection)
                if peer in awaited:
                    awaited.remove(peer)
                    self._sockets[peer] = connection
                elif peer >= 0 and peer not in self._sockets:
                    self._sockets[peer] = connection  # it needs the way first
                else:
                    connection.close()

    def _dialled(self, peer: int, deadline: float) -> socket.socket:
        me, there = self._rendezvous.rank, self._peers[peer]
        route = self._routes.get(peer, Route())
        heard = there["of"][str(me)]  # the peer's own address for this pair
        place = (route.remote or heard, there["ports"][heard])
        while True:
            connection = _socket(place[0])
            try:
                self._tuned(connection)
                if route.local:
                    connection.bind((route.local, 0))
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                connection.connect(place)
                self._kept_small(connection)
                connection.sendall(_HELLO + me.to_bytes(4, "little"))
                return connection
            except OSError as error:
                connection.close()
                self._rendezvous.check()
                if time.monotonic() + _RETRY_S >= deadline:
                    raise LostError(
                        f"rank {me} cannot reach rank {peer} at {place[0]}:{place[1]}: {error}",
                        peer=peer,
                    ) from None
                time.sleep(_RETRY_S)

    def _greeted(self, connection: socket.socket) -> int:
        """Who connected; -1 if it is nobody who should."""
        try:
            connection.settimeout(5.0)
            self._tuned(connection)
            self._kept_small(connection)
            hello = connection.recv(len(_HELLO) + 4, socket.MSG_WAITALL)
        except OSError:
            return -1
        peer = int.from_bytes(hello[len(_HELLO) :], "little")
        right = hello[: len(_HELLO)] == _HELLO and len(hello) == len(_HELLO) + 4
        return peer if right and peer < self._rendezvous.rank else -1

    def _tuned(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._send_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)

    def _kept_small(self, connection: socket.socket) -> None:
        """On one machine what is under way should stay in the cache."""
        here = connection.getsockname()[0] == connection.getpeername()[0]
        if here and self._send_buffer is None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LOCAL_SEND_BUFFER)

    def close(self) -> None:
        for one in (*self._sockets.values(), *self._listeners.values()):
            one.close()
        self._sockets.clear()
        self._listeners.clear()


def _route(peer: int, given: Route | tuple[str, str], rendezvous: Rendezvous) -> Route:
    if not 0 <= peer < rendezvous.size or peer == rendezvous.rank:
        raise InputError(f"addresses name rank {peer}, which is no peer of {rendezvous.rank}")
    return given if isinstance(given, Route) else Route(*given)


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)


def _listening(host: str) -> socket.socket:
    server = _socket(host)
    try:
        server.bind((host, 0))
        server.listen(128)
    except OSError as error:
        server.close()
        raise InputError(f"cannot listen at {host}: {error}") from None
    return server

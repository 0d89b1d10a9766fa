"""How bytes get from rank to rank: through shared memory, or over TCP."""

from __future__ import annotations

import mmap
import os
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import msgspec
import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Algorithm
from weft.algorithm.transfers import Routes as RouteTable
from weft.errors import InputError
from weft.runtime.errors import LostError, StalledError
from weft.runtime.program import Program, What
from weft.runtime.rendezvous import Rendezvous

RING_BYTES = 1 << 18
_RETRY_S = 0.02
_HELLO = b"weft"
_LOCAL_SEND_BUFFER = 1 << 18
_MOST_LANES = 1 << 10  # to one peer

Steps = tuple[int, ...]  # links of a route


class Transport(ABC):
    """The ways of one rank to all others."""

    words: str

    def lanes(self, program: Program, algorithm: Algorithm) -> NDArray[np.int32]:  # noqa: ARG002
        """The channel of each row: the peer, where there is one a peer."""
        return program.peer

    def ways(self) -> dict[int, list[Steps]]:
        """The links of each way to each peer, where they are known."""
        return {}

    @abstractmethod
    def ready(self, lanes: Iterable[int]) -> _core.Transport:
        """At least these channels."""

    def carry(self) -> None:  # noqa: B027 - most need not
        """Do what the core cannot; called when a run can do nothing."""

    def finish(self) -> None:  # noqa: B027
        """Called when a run is over."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds."""


class SharedMemory(Transport):
    """Rings in memory that all ranks of a machine share; it has no name, so none can be left."""

    words = "shared memory"

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

    def ready(self, lanes: Iterable[int]) -> _core.Transport:  # noqa: ARG002 - all are there
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
    there, back
        The links of the network that bytes take between these addresses, if that is known.
    """

    local: str = ""
    remote: str = ""
    there: tuple[int, ...] = ()
    back: tuple[int, ...] = ()


Routes = Route | tuple[str, str] | Sequence[Route]


class Tcp(Transport):
    """One connection a pair of ranks, or one a route between them; made when it is first needed.

    A lane is a connection: the number of the peer, plus so many times the number of ranks as there
    are other lanes to this peer before it.
    """

    words = "TCP"

    def __init__(
        self,
        rendezvous: Rendezvous,
        addresses: Mapping[int, Routes] | None = None,
        *,
        address: str = "127.0.0.1",
        send_buffer: int | None = None,
        early_buffer: int | None = None,
    ) -> None:
        self._rendezvous, self._send_buffer = rendezvous, send_buffer
        self._early_buffer = early_buffer
        self._crowded: set[int] = set()  # lanes that share their last link with others
        self._known = {
            peer: _routes(peer, given, rendezvous) for peer, given in (addresses or {}).items()
        }
        self._routes = {peer: known[0] for peer, known in self._known.items()}  # by lane
        self._numbers: dict[int, list[tuple[Steps, Steps]]] = {}
        locals_ = {route.local for known in self._known.values() for route in known}
        self._listeners = {host: _listening(host) for host in sorted({address, *locals_} - {""})}
        ports = {host: server.getsockname()[1] for host, server in self._listeners.items()}
        own = {"address": address, "ports": ports, "of": {}}
        for peer in range(rendezvous.size):
            local = self._routes.get(peer, Route()).local or address
            own["of"][str(peer)] = local  # type: ignore[index]
        said = rendezvous.exchange(msgspec.json.encode(own))
        self._peers = [msgspec.json.decode(text) for text in said]
        self._sockets: dict[int, socket.socket] = {}
        self._added: set[int] = set()
        self._channels = _core.Sockets(rendezvous.descriptors)

    def lanes(self, program: Program, algorithm: Algorithm) -> NDArray[np.int32]:
        if not any(route.there or route.back for known in self._known.values() for route in known):
            return program.peer
        lanes, routes = program.peer.copy(), algorithm.routes
        last: dict[int, Steps] = {}
        for peer in self._known.keys() & set(program.peer.tolist()):
            mine = (program.peer == peer) & (program.route >= 0)
            sides = [mine & (program.what == what) for what in (What.SEND, What.RECEIVE)]
            used = [np.unique(program.route[side]).tolist() for side in sides]
            for there, back in zip_longest(*used):
                pair = _links(routes, there), _links(routes, back)
                lane = self._lane(peer, pair)
                last[lane] = pair[1][-1:]
                for side, route in zip(sides, (there, back), strict=True):
                    lanes[side & (program.route == route)] = lane
        crowds = Counter(last.values())
        self._crowded |= {lane for lane, link in last.items() if link and crowds[link] > 1}
        return lanes

    def ways(self) -> dict[int, list[Steps]]:
        return {
            peer: [route.there for route in known if route.there]
            for peer, known in self._known.items()
            if known[0].there
        }

    def _lane(self, peer: int, links: tuple[Steps, Steps]) -> int:
        """The lane over these links; both ends ask in the same order, and find the same."""
        numbers = self._numbers.setdefault(peer, [])
        if links not in numbers:
            numbers.append(links)
        lane = peer + self._rendezvous.size * numbers.index(links)
        self._routes[lane] = self._found(peer, *links)
        return lane

    def _found(self, peer: int, there: Steps, back: Steps) -> Route:
        """The address here to which these links lead back, and the one there to which they lead."""
        known = self._known[peer]
        out = next((route for route in known if there and route.there == there), None)
        home = next((route for route in known if back and route.back == back), None)
        if (there and out is None) or (back and home is None):
            raise InputError(
                f"no address of rank {peer} is known to be reached from rank "
                f"{self._rendezvous.rank} over the links of the plan, {list(there or back)}"
            )
        home, out = home or out, out or home
        assert home is not None
        assert out is not None
        return Route(home.local, out.remote, there, back)

    def ready(self, lanes: Iterable[int]) -> _core.Transport:
        self._connect(sorted(set(lanes) - set(self._sockets)))
        for lane in self._sockets.keys() - self._added:
            self._channels.add(lane, self._sockets[lane].fileno())
            self._added.add(lane)
        return self._channels

    def _connect(self, lanes: list[int]) -> None:
        """Connect to those of higher rank; those of lower rank connect to here."""
        me, size = self._rendezvous.rank, self._rendezvous.size
        deadline = time.monotonic() + self._rendezvous.timeout_s
        for lane in (lane for lane in lanes if lane % size > me):
            self._sockets[lane] = self._dialled(lane, deadline)
        # What needs the way first connects first.
        awaited = {lane for lane in lanes if lane % size < me} - self._sockets.keys()
        for server in self._listeners.values():
            server.settimeout(_RETRY_S)
        while awaited:
            self._rendezvous.check()
            if time.monotonic() > deadline:
                peer = min(awaited) % size
                raise StalledError(f"rank {peer} did not connect to rank {me} in time", peer=peer)
            for server in self._listeners.values():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                lane = self._greeted(connection)
                self._narrow(lane, connection)
                if lane in awaited or (lane >= 0 and lane not in self._sockets):
                    awaited.discard(lane)
                    self._sockets[lane] = connection
                else:
                    connection.close()

    def _dialled(self, lane: int, deadline: float) -> socket.socket:
        me, size = self._rendezvous.rank, self._rendezvous.size
        number, peer = divmod(lane, size)
        there, route = self._peers[peer], self._routes.get(lane, Route())
        heard = there["of"][str(me)]  # the peer's own address for this pair
        host = route.remote or heard
        place = (host, there["ports"][host if host in there["ports"] else heard])
        while True:
            connection = _socket(place[0])
            try:
                self._tuned(connection)
                self._narrow(lane, connection)
                if route.local:
                    connection.bind((route.local, 0))
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                connection.connect(place)
                self._kept_small(connection)
                connection.sendall(_HELLO + (me + size * number).to_bytes(4, "little"))
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
        """The lane that somebody connected; -1 if it is nobody who should."""
        try:
            connection.settimeout(5.0)
            self._tuned(connection)
            self._kept_small(connection)
            hello = connection.recv(len(_HELLO) + 4, socket.MSG_WAITALL)
        except OSError:
            return -1
        lane = int.from_bytes(hello[len(_HELLO) :], "little")
        right = hello[: len(_HELLO)] == _HELLO and len(hello) == len(_HELLO) + 4
        known = right and lane < _MOST_LANES * self._rendezvous.size
        return lane if known and lane % self._rendezvous.size < self._rendezvous.rank else -1

    def _tuned(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._send_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)

    def _kept_small(self, connection: socket.socket) -> None:
        """On one machine what is under way should stay in the cache."""
        here = connection.getsockname()[0] == connection.getpeername()[0]
        if here and self._send_buffer is None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LOCAL_SEND_BUFFER)

    def _narrow(self, lane: int, connection: socket.socket) -> None:
        """Let little in that is not due yet where it would hold up others on the last link."""
        if lane in self._crowded and self._early_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._early_buffer)

    def close(self) -> None:
        for one in (*self._sockets.values(), *self._listeners.values()):
            one.close()
        self._sockets.clear()
        self._listeners.clear()


def _routes(peer: int, given: Routes, rendezvous: Rendezvous) -> list[Route]:
    if not 0 <= peer < rendezvous.size or peer == rendezvous.rank:
        raise InputError(f"addresses name rank {peer}, which is no peer of {rendezvous.rank}")
    if isinstance(given, Route):
        return [given]
    if isinstance(given, tuple):
        return [Route(*given)]
    if not given:
        raise InputError(f"addresses name rank {peer}, but no address of it")
    return list(given)


def _links(routes: RouteTable, route: int | None) -> Steps:
    """The links of a route by its number."""
    if route is None:
        return ()
    return tuple(routes.links[routes.offsets[route] : routes.offsets[route + 1]].tolist())


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

"""A file that says between which addresses the connections of a rank go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from weft.errors import FormatError
from weft.runtime.transports import Route

_SEND_BUFFER = 1 << 16  # what the system holds can no longer be overtaken by what is due first


class _Way(msgspec.Struct):
    local: str
    remote: str
    links_there: tuple[int, ...] = ()
    links_back: tuple[int, ...] = ()


class _Told(msgspec.Struct):
    host: str
    peers: dict[int, list[_Way]]


def addresses_of(path: str) -> dict[str, Any]:
    """What `Communicator.tcp` takes of a file that ``weft lab`` wrote.

    Peers that it does not name are reached at their own addresses.
    """
    try:
        told = msgspec.json.decode(Path(path).read_bytes(), type=_Told)
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise FormatError(f"{path} has no addresses of a rank: {error}") from None
    routes = {
        peer: [Route(way.local, way.remote, way.links_there, way.links_back) for way in ways]
        for peer, ways in told.peers.items()
    }
    return {"address": told.host, "addresses": routes, "send_buffer": _SEND_BUFFER}

"""What a network joined of several files was made of, as its file keeps it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.units import MAX_BANDWIDTH, MAX_LATENCY_PS

Rate = Annotated[int, Meta(ge=0, le=MAX_BANDWIDTH)]


class Wiring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts and cables that a network was joined of, as columns.

    A link tells less: it may stand for several cables, and for all on a way where nothing else
    hangs.

    Attributes
    ----------
    kinds, names, hosts, ports
        What each part is, is called and is in; B/s of an adapter's own ports, 0 if not said.
    adding
        Numbers of the parts that copy and add what passes.
    cables, src, dst
        The kind of each cable, and numbers of parts.
    rates, counts, delays
        B/s of all cables side by side, 0 if not known; how many there are; ps, -1 if not said.
    """

    kinds: tuple[str, ...]
    names: tuple[str, ...]
    hosts: tuple[str, ...]
    ports: tuple[Rate, ...]
    adding: tuple[int, ...]
    cables: tuple[str, ...]
    src: tuple[int, ...]
    dst: tuple[int, ...]
    rates: tuple[Rate, ...]
    counts: tuple[Annotated[int, Meta(ge=1, le=1 << 20)], ...]
    delays: tuple[Annotated[int, Meta(ge=-1, le=MAX_LATENCY_PS)], ...]

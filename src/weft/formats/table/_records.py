"""The records of a JSON table, as they stand in the file."""

from __future__ import annotations

import msgspec

VERSION = 1
COLUMNS = ("chunk", "src", "dst", "reduce")  # those every table has


class Record(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A record of the file; a key that is not known is a mistake."""


class Parts(Record):
    """What moves in a collective whose name does not say it; sets are named by number."""

    bytes: list[int]
    offset: list[int]
    pre: list[int]
    post: list[int]
    reduce: list[bool]
    sets: list[list[int]]


class CollectiveRecord(Record):
    kind: str
    group: list[int]
    size: int
    chunks: int = 1
    root: int | None = None
    alignment: int = 16
    relay: bool = True
    parts: Parts | None = None


class TransferColumns(Record):
    """One entry a row; `deps` has those of all rows, `dep_count` of them each."""

    chunk: list[int]
    src: list[int]
    dst: list[int]
    reduce: list[bool]
    route: list[int] | None = None
    start_ps: list[int] | None = None
    end_ps: list[int] | None = None
    src_place: list[int] | None = None
    dst_place: list[int] | None = None
    dep_count: list[int] | None = None
    deps: list[int] | None = None


class Links(Record):
    src: list[int]
    dst: list[int]
    bandwidth: list[int]
    latency_ps: list[int]


class TopologyRecord(Record):
    name: str
    npus: int
    links: Links
    switches: int = 0
    removed: list[int] = []
    buffers: list[tuple[int, int]] = []
    copying: list[int] = []
    dimensions: list[int] = []
    changes: list[str] = []


class RouteColumns(Record):
    """The links of all routes, one route's after the other's."""

    length: list[int]
    links: list[int]


class CostRecord(Record):
    latency_model: str
    switching: str


class TableRecord(Record):
    weft_table: int
    collectives: list[CollectiveRecord]
    transfers: TransferColumns
    topology: TopologyRecord | None = None
    routes: RouteColumns | None = None
    cost: CostRecord | None = None
    provenance: dict[str, str | int | float | bool] = {}

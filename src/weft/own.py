"""Algorithms of one's own: from a file onto a network, beside what Weft makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm
from weft.collective import Collective, format_group
from weft.cost import CostModel
from weft.engine import simulate
from weft.errors import InputError
from weft.formats import FORMATS, NO_HINTS, Hints, Imported, read, recognise
from weft.topology.model import Topology


def own_algorithm(
    path: str | Path,
    topology: Topology,
    demands: Sequence[Collective],
    *,
    choose_chunks: Sequence[bool] | None = None,
    cost: CostModel | None = None,
) -> Algorithm:
    """The algorithm in a file, for these collectives on this network, with times.

    It keeps its chunks and its rows; the size is that of the demands. Made for this very network,
    it keeps the order on each link; on any other its rows are routed over shortest paths and
    links serve first come first.

    Parameters
    ----------
    choose_chunks
        For each demand: whether it may have as many chunks as the file says; by default none.

    Raises
    ------
    InputError
        If it is of another collective, among others, or in other chunks.
    FormatError
        If it cannot be read, or is not right.
    """
    cost = cost or CostModel()
    free = choose_chunks or [False] * len(demands)
    found = _read(Path(path), demands, free).verified()
    if len(found.demands) != len(demands):
        raise InputError(
            f"{path} is of {len(found.demands)} collectives, but {len(demands)} are asked for"
        )
    pairs = zip(found.demands, demands, free, strict=True)
    fitted = tuple(_fitted(path, *pair) for pair in pairs)
    made = replace(found, demands=fitted, provenance={**found.provenance, "method": str(path)})
    if found.timed and _is_same(found.require_timing().topology, topology) and found.cost == cost:
        if fitted == found.demands:
            return made.on(topology)
        return simulate(made, order="plan").timed()
    return simulate(made, topology, cost).timed()


def _read(path: Path, demands: Sequence[Collective], free: Sequence[bool]) -> Imported:
    """The algorithm, not judged; what the file does not say are the demands'."""
    kind = recognise(path)
    unsaid = FORMATS[kind].hints
    if not unsaid or len(demands) > 1:
        return read(path, NO_HINTS, kind=kind)
    if "collective" in unsaid:
        try:
            return read(path, NO_HINTS, kind=kind)
        except InputError:  # traces of others: Weft's own say what they are of
            pass
    asked = demands[0]
    said = {
        "collective": asked.kind,
        "size": asked.size,
        "chunks": asked.chunks_per_share,
        "group": asked.group,
        "root": asked.root,
    }
    hints = Hints(**{name: said[name] for name in unsaid})  # type: ignore[arg-type]
    found = read(path, hints, kind=kind)
    if "chunks" not in unsaid:
        return found
    named = 1 + int(found.algorithm.transfers.chunk.max(initial=0))
    if free[0] and named > asked.chunk_count:  # chunks are numbered, and so many there are
        hints = replace(hints, chunks=-(-named // asked.part_count))
        return read(path, hints, kind=kind)
    return found


def _fitted(path: str | Path, there: Collective, asked: Collective, free: bool) -> Collective:
    """The file's collective with the size that is asked for."""
    if (there.kind, there.group, there.root) != (asked.kind, asked.group, asked.root):
        raise InputError(f"{path} is of {_named(there)}, but {_named(asked)} is asked for")
    if not free and there.chunks_per_share != asked.chunks_per_share:
        raise InputError(
            f"{path} cuts a share in {there.chunks_per_share} chunks, not {asked.chunks_per_share}"
        )
    if there.parts is not None:
        if there.size != asked.size:
            raise InputError(f"{path} is of {there.size} B, not of {asked.size} B")
        return replace(there, relay=asked.relay)
    fitted = replace(there, size=asked.size, relay=asked.relay)
    if len(fitted.chunks) != len(there.chunks):
        raise InputError(f"{path} has more chunks than {asked.size} B can be cut in")
    return fitted


def _named(demand: Collective) -> str:
    root = "" if demand.root is None else f" with root {demand.root}"
    return f"{demand.kind} among NPUs {format_group(demand.group)}{root}"


def _is_same(one: Topology, other: Topology) -> bool:
    """Whether two networks are the same but for their names."""
    plain = ("npus", "switches", "removed", "copying", "adding")
    columns = ("src", "dst", "bandwidth", "latency")
    return (
        all(getattr(one, name) == getattr(other, name) for name in plain)
        and dict(one.buffers) == dict(other.buffers)
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)
    )

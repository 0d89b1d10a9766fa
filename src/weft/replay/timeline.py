"""A run as a timeline: what each NPU sends and adds, and what each link carries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.engine.algorithms import Simulation
from weft.formats.perfetto import Timeline
from weft.replay.lanes import lanes
from weft.units import format_bandwidth

MOST_ARROWS = 100_000
"""Rows above which arrows would only be a blur, and most of the file."""


def timeline_of(run: Simulation) -> Timeline:
    """The run as a timeline; rows that take no time are left out.

    Sends that an NPU has under way at the same time lie in several lanes, each a track. Arrows
    lead from the send of a chunk to the sends that pass it on.
    """
    rows, sizes = run.transfers, run.algorithm.chunks.bytes
    sent = np.flatnonzero(run.occupied.duration > 0)
    added, added_from = _additions(run)
    held = run.occupied
    lane = lanes(rows.src[sent], run.start[sent], run.start[sent] + held.duration[sent])
    names, first_lane, adder = _npu_tracks(run, rows.src[sent], lane, rows.dst[added])
    first_link = len(names)
    network = run.topology
    names += [
        ("links", f"{network.link_name(link)} {format_bandwidth(float(network.bandwidth[link]))}")
        for link in range(network.links)
    ]
    chunk, src, dst = rows.chunk.tolist(), rows.src.tolist(), rows.dst.tolist()
    labels = [f"chunk {chunk[row]} > {dst[row]}" for row in sent.tolist()]
    labels += [f"add chunk {chunk[row]} from {src[row]}" for row in added.tolist()]
    labels += [f"chunk {chunk[row]}, {src[row]} > {dst[row]}" for row in held.row.tolist()]
    return Timeline(
        names,
        np.concatenate(
            [first_lane[rows.src[sent]] + lane, adder[rows.dst[added]], first_link + held.link]
        ).astype(np.int32),
        np.concatenate([run.start[sent], added_from, held.begin]),
        np.concatenate([held.duration[sent], run.end[added] - added_from, held.length]),
        labels,
        sizes[rows.chunk[np.concatenate([sent, added, held.row])]],
        _arrows(run, sent),
    )


def _additions(run: Simulation) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The rows whose adding took time, and when it began: an NPU adds one after the other."""
    rows = run.transfers
    added = np.flatnonzero(rows.reduce & (run.reducer is not None))
    added = added[np.lexsort((run.end[added], rows.dst[added]))]
    began = run.start[added] + run.occupied.duration[added]
    after = np.flatnonzero(rows.dst[added][1:] == rows.dst[added][:-1]) + 1
    began[after] = np.maximum(began[after], run.end[added[after - 1]])
    return added, began


def _npu_tracks(
    run: Simulation, src: NDArray[np.int32], lane: NDArray[np.int64], adds: NDArray[np.int32]
) -> tuple[list[tuple[str, str]], NDArray[np.int64], NDArray[np.int64]]:
    """The tracks of NPUs, the first of each NPU, and the one on which it adds."""
    count = np.ones(run.topology.npus, dtype=np.int64)
    np.maximum.at(count, src, lane + 1)
    adding = np.zeros(run.topology.npus, dtype=np.bool_)
    adding[adds] = True
    first, adder = np.zeros_like(count), np.zeros_like(count)
    names: list[tuple[str, str]] = []
    for npu in run.topology.members.tolist():
        first[npu] = len(names)
        names.append(("NPUs", f"NPU {npu}"))
        names += [("NPUs", f"NPU {npu} ({more})") for more in range(2, int(count[npu]) + 1)]
        if adding[npu]:
            adder[npu] = len(names)
            names.append(("NPUs", f"NPU {npu} adding"))
    return names, first, adder


def _arrows(run: Simulation, sent: NDArray[np.intp]) -> NDArray[np.int64]:
    """From each send to those that pass on what it brought, as pairs of places in `sent`."""
    rows = run.transfers
    if not 0 < len(rows) <= MOST_ARROWS:
        return np.empty((0, 2), dtype=np.int64)
    reads = rows.chunk if rows.src_place is None else rows.src_place
    writes = rows.chunk if rows.dst_place is None else rows.dst_place
    places = np.concatenate([_place(rows.dst, writes), _place(rows.src, reads)])
    times = np.concatenate([run.end, run.start])
    _, place = np.unique(places, return_inverse=True)
    _, time = np.unique(times, return_inverse=True)
    written, read = np.split(place * len(times) + time, 2)
    writers = np.argsort(written, kind="stable")
    before = np.searchsorted(written[writers], read, side="right") - 1  # the last by the start
    writer = writers[np.maximum(before, 0)]
    taken = (before >= 0) & (written[writer] // len(times) == read // len(times))
    index = np.full(len(rows), -1)
    index[sent] = np.arange(len(sent))
    pairs = np.stack([index[writer[taken]], index[taken]], axis=1)
    return pairs[(pairs >= 0).all(axis=1)]


def _place(npu: NDArray[np.int32], place: NDArray[np.int32]) -> NDArray[np.int64]:
    return npu.astype(np.int64) << 32 | place

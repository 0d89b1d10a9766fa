"""A run of traces as a timeline: what each rank computes and sends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.formats.perfetto import Timeline
from weft.replay.lanes import lanes
from weft.replay.trace_run import KINDS, TraceRun

_SHOWN = {"compute": "compute", "host": "CPU", "send": "sends"}


def trace_timeline_of(run: TraceRun) -> Timeline:
    """The run as a timeline; nodes that take no time or never ended are left out.

    A rank has tracks for its compute unit, its CPU and what it sends, each with further lanes for
    what is under way at the same time. COMM_RECVs have no slices: they only wait.
    """
    nodes = np.flatnonzero(run.end > run.start)
    nodes = nodes[np.isin(run.kind[nodes], [KINDS.index(name) for name in _SHOWN])]
    nodes = nodes[np.lexsort((run.kind[nodes], run.rank[nodes]))]
    unit = run.rank[nodes] * len(KINDS) + run.kind[nodes]
    lane = lanes(unit, run.start[nodes], run.end[nodes])
    width = int(lane.max(initial=0)) + 1
    tracks, track = np.unique(unit * width + lane, return_inverse=True)
    labels, sizes = _labels(run, nodes)
    return Timeline(
        [("ranks", _title(*divmod(track, width))) for track in tracks.tolist()],
        track.astype(np.int32),
        run.start[nodes],
        run.end[nodes] - run.start[nodes],
        labels,
        sizes,
        np.empty((0, 2), dtype=np.int64),
    )


def _title(unit: int, lane: int) -> str:
    rank, kind = divmod(unit, len(KINDS))
    return f"rank {rank} {_SHOWN[KINDS[kind]]}" + (f" ({lane + 1})" if lane else "")


def _labels(run: TraceRun, nodes: NDArray[np.intp]) -> tuple[list[str], NDArray[np.int64]]:
    """What each slice is called, and the bytes that it moves."""
    labels, sizes = [], np.full(len(nodes), -1, dtype=np.int64)
    ids, sends = run.id[nodes].tolist(), run.kind[nodes] == KINDS.index("send")
    for at, (node, number, send) in enumerate(
        zip(nodes.tolist(), ids, sends.tolist(), strict=True)
    ):
        if not send:
            labels.append(f"node {number}")
            continue
        _, taker, _, sizes[at] = run.message(node)
        labels.append(f"node {number} > {taker}")
    return labels, sizes

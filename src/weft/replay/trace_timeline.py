"""A run of traces as a timeline: what each rank computes and sends."""

from __future__ import annotations

from collections.abc import Iterator

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
    names: list[tuple[str, str]] = []
    parts: list[NDArray[np.intp]] = []
    tracks: list[NDArray[np.int64]] = []
    for nodes, lane, title in _kinds(run):
        tracks.append(len(names) + lane)
        parts.append(nodes)
        more = int(lane.max(initial=0)) + 1
        names += [
            ("ranks", title if one == 1 else f"{title} ({one})") for one in range(1, more + 1)
        ]
    shown = np.concatenate([np.empty(0, dtype=np.intp), *parts])
    labels, sizes = _labels(run, shown)
    return Timeline(
        names,
        np.concatenate([np.empty(0, dtype=np.int64), *tracks]).astype(np.int32),
        run.start[shown],
        run.end[shown] - run.start[shown],
        labels,
        sizes,
        np.empty((0, 2), dtype=np.int64),
    )


def _kinds(run: TraceRun) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64], str]]:
    """By rank and kind: the nodes to show, their lanes and what to call them."""
    ran = np.flatnonzero(run.end > run.start)
    kind = run.kind[ran].astype(np.int32)
    ran = ran[np.isin(kind, [KINDS.index(name) for name in _SHOWN])]
    group = run.rank[ran] * len(KINDS) + run.kind[ran]
    lane = lanes(group, run.start[ran], run.end[ran])
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order])) + 1
    for part in np.split(order, ends) if len(order) else []:
        rank, what = divmod(int(group[part[0]]), len(KINDS))
        yield ran[part], lane[part], f"rank {rank} {_SHOWN[KINDS[what]]}"


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

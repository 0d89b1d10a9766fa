"""Judges periodic rows by those of each tree's first chunk, and by the period."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft import _core
from weft.algorithm import Algorithm, PeriodicRows, Routes, Transfers
from weft.collective import Collective, all_reduce_of
from weft.judge.kinds import Progress, judges
from weft.judge.sizes import judge_sizes
from weft.judge.table import LISTED, judge_table
from weft.judge.verdict import Verdict
from weft.topology.durations import over_links
from weft.topology.model import Topology
from weft.units import format_time


@judges(PeriodicRows)
def judge_periodic(algorithm: Algorithm, rows: PeriodicRows, _progress: Progress = None) -> Verdict:
    """Judge the first chunk of every tree, and that none meets another, whatever its turn.

    The rows of the first chunks are judged as an algorithm of their own, in which every chunk is
    as long as the longest. Those of the k-th chunk after it are the same, k periods later, so they
    are right as well, unless two rows hold a link at the same time. If they did, with k and m
    periods, the same two rows of the first chunks would hold it at the same time of the period:
    that none do is checked. A shorter chunk only ends sooner, which `judge_sizes` finds to be
    harmless.
    """
    demand, topology = algorithm.demands[0], algorithm.require_timing().topology
    wrong = _malformed(rows, demand, topology)
    if wrong is not None:
        return Verdict(False, wrong, "structure")
    first = _first_chunks(algorithm, rows, demand, topology)
    verdict = judge_table(first)
    if verdict and len(rows) > LISTED:
        verdict = judge_sizes(first.transfers, demand, topology.npus)
    if not verdict:
        return Verdict(
            False, f"of the first chunks of all trees: {verdict.violation}", verdict.kind
        )
    met = _meeting(algorithm, rows, demand, topology)
    if met is not None:
        return Verdict(False, met, "link")
    return judge_table(algorithm) if len(rows) <= LISTED else verdict


def _malformed(rows: PeriodicRows, demand: Collective, topology: Topology) -> str | None:
    """What is wrong with the shapes and ranges, if anything."""
    if demand.kind != "all-reduce" or topology.switches:
        return "periodic rows are of an all-reduce on a network without switches"
    columns = (rows.link, rows.reduce, rows.start)
    if any(len(column) != len(rows.link) for column in columns):
        return "the columns of the trees differ in length"
    for name, marks, end in (
        ("rows", rows.offsets, len(rows.link)),
        ("chunks", rows.first, len(demand.chunks)),
    ):
        if len(marks) != len(rows.offsets) or len(marks) == 0:
            return f"the trees' {name} are not counted for every tree"
        if marks[0] != 0 or marks[-1] != end or (np.diff(marks) < 0).any():
            return f"the trees' {name} do not go from 0 to {end}"
    if len(rows.link) and not 0 <= rows.link.min() <= rows.link.max() < topology.links:
        return "a row names a link that is not there"
    if rows.period <= 0 or (len(rows.start) and int(rows.start.min()) < 0):
        return "the period or a start is negative"
    return None


def _first_chunks(
    algorithm: Algorithm, rows: PeriodicRows, demand: Collective, topology: Topology
) -> Algorithm:
    """An All-Reduce with a chunk for each tree, in the rows of the trees."""
    largest, link = demand.largest_chunk, rows.link
    tree = np.repeat(np.arange(rows.trees, dtype=np.int32), np.diff(rows.offsets))
    end = rows.start + over_links(topology, largest)[link]
    listed = Transfers.over_links(topology, tree, link, rows.reduce, rows.start, end)
    pieces = all_reduce_of(demand.group, largest * rows.trees, rows.trees, alignment=largest)
    return Algorithm(
        (replace(pieces, relay=demand.relay),),
        listed,
        replace(algorithm.require_timing(), routes=Routes.of_links(topology.links)),
    )


def _meeting(
    algorithm: Algorithm, rows: PeriodicRows, demand: Collective, topology: Topology
) -> str | None:
    """Two rows that hold a link at the same time of the period, in words."""
    held = _core.serialization(demand.largest_chunk, topology.bandwidth)
    if algorithm.require_timing().cost.latency_model == "blocking":
        held = held + topology.latency
    phase = rows.start % rows.period
    order = np.lexsort((phase, rows.link))
    link, phase = rows.link[order], phase[order]
    last = np.append(link[1:] != link[:-1], True)
    opened = np.flatnonzero(np.append(True, last[:-1]))
    # After the last of a link comes its first again, in the next period.
    after = np.append(phase[1:], 0)
    after[last] = phase[opened] + rows.period
    for at in np.flatnonzero(phase + held[link] > after)[:1]:
        return (
            f"two rows hold link {topology.link_name(int(link[at]))} at the same time of the "
            f"period, for {format_time(int(held[link[at]]))} each from "
            f"{format_time(int(phase[at]))} and {format_time(int(after[at]))} of it on"
        )
    return None

"""Whether a critical path is what it says: a chain from the start of a run to its end."""

from __future__ import annotations

from weft.engine import CAUSES, Simulation
from weft.engine.path_times import PathTimes


def check_path(run: Simulation) -> None:
    """Each step explains the next to the picosecond, and the parts of the time add up."""
    path, parts = run.critical_path, PathTimes.of(run)
    assert parts.moving + parts.latency + parts.waiting + parts.adding == run.time
    if not len(run.transfers):
        assert len(path) == 0
        return
    assert run.end[path.row[-1]] == run.time
    assert run.start[path.row[0]] == 0
    assert [CAUSES[cause] == "start" for cause in path.cause] == [True] + [False] * (len(path) - 1)
    for k in range(1, len(path)):
        before, row, cause = int(path.row[k - 1]), int(path.row[k]), CAUSES[path.cause[k]]
        arrived = int(run.start[row] + run.occupied.duration[row])
        if cause == "data":  # a row may have to wait only with what it writes
            assert run.end[before] in (run.start[row], arrived)
        elif cause == "adding":
            assert arrived < run.end[before] < run.end[row]
            assert run.transfers.dst[before] == run.transfers.dst[row]
        else:
            assert int(path.link[k]) in links_of(run, before)
            # Behind switches it may have started later, and still held the link first.
            assert run.start[before] <= run.end[row]


def links_of(run: Simulation, row: int) -> list[int]:
    first, last = run.routes.offsets[run.route[row] : run.route[row] + 2]
    links: list[int] = run.routes.links[first:last].tolist()
    return links

"""A kind of rows that nobody but this file knows: a class, a judge and a place in the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import _core
from weft.algorithm import Activity, Algorithm, CompactRows, Routes, Timing, Transfers, described
from weft.collective import Collective
from weft.cost import CostModel
from weft.engine import simulate
from weft.errors import FormatError, InputError
from weft.formats import write
from weft.formats.store._layout import Arrays
from weft.formats.store.kinds import KINDS, StoredKind, Taken, context
from weft.judge import verify
from weft.judge.kinds import JUDGES, Progress, judges
from weft.judge.table import judge_table
from weft.judge.verdict import Verdict
from weft.topology import load_topology

NPUS, SIZE = 5, 1 << 20


@dataclass(frozen=True, eq=False)
class RelayRows(CompactRows):
    """A Broadcast from NPU 0 along a line: hop i goes from NPU i to the next, `step` later each."""

    kind = "relay"

    hops: int
    step: int

    def __len__(self) -> int:
        return self.hops

    def time(self, _algorithm: Algorithm) -> int:
        return self.hops * self.step

    def of_npu(self, algorithm: Algorithm, npu: int) -> Transfers:
        table, _ = self.table(algorithm)
        return table.selected(np.flatnonzero((table.src == npu) | (table.dst == npu)))

    def table(self, algorithm: Algorithm) -> tuple[Transfers, Routes]:
        topology = algorithm.require_timing().topology
        hop = np.arange(self.hops, dtype=np.int32)
        link = np.array(
            [np.flatnonzero((topology.src == i) & (topology.dst == i + 1))[0] for i in hop],
            dtype=np.int32,
        )
        start = hop.astype(np.int64) * self.step
        rows = Transfers(0 * hop, hop, hop + 1, hop < 0, link, start, start + self.step)
        return rows, Routes.of_links(topology.links)

    def described(self) -> dict[str, Any]:
        return {"form": "relay", "hops": self.hops}


def judge_relay(algorithm: Algorithm, rows: RelayRows, _progress: Progress = None) -> Verdict:
    if rows.hops != algorithm.demands[0].ranks - 1:
        return Verdict(False, f"{rows.hops} hops do not reach everybody", "structure")
    return judge_table(algorithm)


def taken(rows: RelayRows, _algorithm: Algorithm) -> Taken:
    return {}, {"hops": rows.hops, "step": rows.step}


def made(frame: Algorithm, arrays: Arrays) -> RelayRows:
    network, _ = context(frame, ("broadcast",))
    return RelayRows(arrays.number("hops", 0, network.npus), arrays.number("step", 1, 1 << 40))


@pytest.fixture
def relay() -> Iterator[Algorithm]:
    """An algorithm of that kind, as long as the kind is known."""
    judges(RelayRows)(judge_relay)
    KINDS.add(RelayRows.kind, StoredKind(taken, made))
    yield algorithm_of()
    JUDGES.remove(RelayRows.kind)
    KINDS.remove(RelayRows.kind)


def algorithm_of() -> Algorithm:
    network = load_topology(f"line:{NPUS}")
    step = int(_core.serialization(SIZE, network.bandwidth)[0] + network.latency[0])
    demand = Collective.of("broadcast", range(NPUS), SIZE, root=0)
    return Algorithm((demand,), RelayRows(NPUS - 1, step), Timing(network, CostModel()))


def test_it_has_a_time_and_a_table(relay: Algorithm) -> None:
    assert relay.time == relay.transfers.require_times().end[-1] == simulate(relay).time
    assert len(relay) == len(relay.transfers) == NPUS - 1
    assert len(Activity.of(relay, 1)) == 2
    assert described(relay)["rows"] == {"form": "relay", "hops": NPUS - 1}


def test_it_is_judged(relay: Algorithm) -> None:
    rows = relay.rows
    assert isinstance(rows, RelayRows)
    assert verify(relay)
    assert verify(replace(relay, rows=replace(rows, hops=1))).kind == "structure"
    assert verify(replace(relay, rows=replace(rows, step=rows.step - 1))).kind == "time"


def test_what_only_says_it_is_of_the_kind_is_refused(relay: Algorithm) -> None:
    class Impostor(RelayRows):
        """Says that it is what it is not."""

    verdict = verify(replace(relay, rows=Impostor(NPUS - 1, 1)))
    assert verdict.kind == "structure"
    assert "Impostor" in str(verdict.violation)


def test_it_is_stored(relay: Algorithm, tmp_path: Path) -> None:
    write(relay, tmp_path / "a.weft")
    loaded = weft.load(tmp_path / "a.weft")
    assert vars(loaded.rows) == vars(relay.rows)
    assert type(loaded.rows) is RelayRows
    assert loaded.time == relay.time
    assert verify(loaded)
    write(relay, tmp_path / "traces")
    listed = weft.load(tmp_path / "traces")
    assert np.array_equal(listed.transfers.dst, relay.transfers.dst)
    assert verify(listed)


def test_without_judge_and_store_it_is_refused(tmp_path: Path) -> None:
    algorithm = algorithm_of()
    with pytest.raises(InputError, match="unknown kind of rows 'relay'"):
        verify(algorithm)
    with pytest.raises(InputError, match="unknown kind of rows 'relay'"):
        write(algorithm, tmp_path / "a.weft")


def test_a_store_of_a_kind_that_is_not_known_is_refused(relay: Algorithm, tmp_path: Path) -> None:
    write(relay, tmp_path / "a.weft")
    entry = KINDS[RelayRows.kind]
    KINDS.remove(RelayRows.kind)
    try:
        with pytest.raises(FormatError, match="rows of the kind relay"):
            weft.load(tmp_path / "a.weft")
    finally:
        KINDS.add(RelayRows.kind, entry)


def test_every_kind_has_a_judge_and_a_place_in_the_store() -> None:
    kinds = {"table", "rounds", "symmetric", "repaired", "repaired-exchange", "periodic"}
    kinds |= {"levels", "spread"}
    assert set(JUDGES) == set(KINDS) == kinds

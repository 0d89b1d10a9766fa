"""The model of ASTRA-sim gives the times that ASTRA-sim itself printed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from astra_model import Network, Simulator, Table, read_trace

DATA = Path(__file__).parent.parent / "data" / "astra"
EXPECTED = list(csv.DictReader((DATA / "expected.csv").read_text().splitlines()))
ORDER = list(csv.DictReader((DATA / "order" / "expected.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: "-".join(row.values()))
def test_expected_times(row):
    network = Network.read(DATA / "net" / f"{row['network']}.yml")
    folder = DATA / row["algorithm"]
    traces = {int(path.suffixes[0][1:]): read_trace(path) for path in folder.iterdir()}
    finish = Simulator(network, traces, aware=row["backend"] == "aware").run()
    assert len(finish) == network.ranks
    assert max(finish.values()) == int(row["finish_ns"])


@pytest.mark.parametrize("row", ORDER, ids=lambda row: row["folder"])
def test_expected_times_with_ties(row):
    folder = DATA / "order" / row["folder"]
    (file,) = folder.glob("*.yml")
    traces = {int(path.suffixes[0][1:]): read_trace(path) for path in folder.glob("*.et")}
    finish = Simulator(Network.read(file), traces).run()
    if row["makespan_ns"]:
        assert max(finish.values()) == int(row["makespan_ns"])
    expected = dict(map(int, one.split(":")) for one in row["finish_ns"].split(";"))
    assert expected.items() <= finish.items()


def test_tables_of_ids():
    """As ASTRA-sim starts twenty nodes that wait for nothing."""
    started = Table(Table(range(20)))
    assert list(started)[:11] == [12, 11, 10, 9, 8, 7, 6, 19, 18, 5, 17]

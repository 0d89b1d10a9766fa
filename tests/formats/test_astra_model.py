"""The model of ASTRA-sim gives the times that ASTRA-sim itself printed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from astra_model import Network, Simulator, read_trace

DATA = Path(__file__).parent.parent / "data" / "astra"
EXPECTED = list(csv.DictReader((DATA / "expected.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: "-".join(row.values()))
def test_expected_times(row):
    network = Network.read(DATA / "net" / f"{row['network']}.yml")
    folder = DATA / row["algorithm"]
    traces = {int(path.suffixes[0][1:]): read_trace(path) for path in folder.iterdir()}
    finish = Simulator(network, traces, aware=row["backend"] == "aware").run()
    assert len(finish) == network.ranks
    assert max(finish.values()) == int(row["finish_ns"])

"""``weft workload`` and ``weft lower`` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import refused, weft


def test_from_a_transformer_to_lowered_traces(tmp_path: Path):
    made = weft(
        *("workload", "transformer", "-o", "step", "--npus", "8", "--tp", "2", "--pp", "2"),
        *("--layers", "2", "--hidden", "64", "--seq", "16", "--flops", "1TFLOPS"),
        cwd=tmp_path,
    )
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("step: 8 traces, ")
    args = ("lower", "step", "-o", "out", "--topology", "mesh:4x2", "--only", "all-reduce")
    done = weft(*args, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    assert figures["lowered_count"] == figures["collective_count"] > 0
    assert all(algorithm["verified"] for algorithm in figures["algorithms"])
    names = {path.name for path in (tmp_path / "step").iterdir()}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    table = weft(*args, cwd=tmp_path)  # replaces what it wrote
    assert "each synthesized once and verified" in table.stdout
    assert weft("lower", "step/transformer", "-o", "out", "--topology", "fc:8", cwd=tmp_path).stdout


def test_refusals(tmp_path: Path):
    def sentence(*args: str) -> str:
        return refused(*args, cwd=tmp_path)

    make = ("workload", "transformer", "-o", "step")
    assert "NPUs do not divide" in sentence(*make, "--npus", "10", "--tp", "4")
    assert "rate '9' has no unit" in sentence(*make, "--flops", "9")
    assert weft(*make, "--tp", "2", cwd=tmp_path).returncode == 0
    lower = ("lower", "step", "--topology", "ring:2")
    assert "the workload itself is there" in sentence(*lower, "-o", "step")
    assert "--output is empty" in sentence(*lower, "-o", "")
    assert "chunks is 'many'" in sentence(*lower, "-o", "out", "--chunks", "many")
    assert "no such file" in sentence(*lower, "-o", "out", "--comm-group", "none.json")
    assert not (tmp_path / "out").exists()

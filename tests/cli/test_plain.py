"""What lets no switch copy or add is planned without, and says what that costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import refused, weft
from weft.errors import InputError
from weft.export.astra_sim import export
from weft.judge import verify
from weft.synthesis import synthesize
from weft.workload import lower

NVLS = "switch:4,adding,multicast"


def test_msccl_xml(tmp_path: Path) -> None:
    args = ("synth", NVLS, "all-reduce", "--size", "64MiB", "--chunks", "2", "-o", "plan.xml")
    done = weft(*args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "let no switch copy or add" in done.stdout
    assert "at most x1.50 of what any algorithm takes with them" in done.stdout
    said = json.loads(weft(*args[:-1], "again.xml", "--json", cwd=tmp_path).stdout)
    assert said["changes"] == ["with plain switches"]
    assert len(said["notes"]) == 1
    assert "notes" not in json.loads(weft(*args[:-2], "--json", cwd=tmp_path).stdout)


def test_lowered_workloads(tmp_path: Path) -> None:
    step = tmp_path / "step"
    made = weft("workload", "transformer", "-o", str(step), "--tp", "4", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    lowering = lower(step, NVLS, only=["all-reduce"], threads=1)
    assert "runs by sends and receives let no switch copy or add" in lowering.notes[0]
    assert lowering.to_dict()["changes"] == ["with plain switches"]
    assert lower(step, "switch:4", only=["all-reduce"], threads=1).notes == ()


def test_astra_sim(tmp_path: Path) -> None:
    algorithm = synthesize(NVLS, "all-reduce", "1MiB", method="in-switch", threads=1).algorithm
    with pytest.raises(InputError, match="switches of switch:4,adding,multicast add"):
        export(algorithm, tmp_path / "sums")
    ring = synthesize(NVLS, "all-reduce", "1MiB", method="ring", threads=1).algorithm
    plain = synthesize("switch:4", "all-reduce", "1MiB", method="ring", threads=1).algorithm
    assert verify(ring)
    exported = (export(one, tmp_path / str(n)) for n, one in enumerate((ring, plain)))
    assert len({bundle.predicted_ns for bundle in exported}) == 1


def test_specs() -> None:
    shown = weft("topo", "show", "h100:2").stdout
    assert "adding" in shown
    assert "2 of 11 switches" in shown
    assert "adding" not in weft("topo", "show", "h100:2,plain").stdout
    assert "nothing a switch can do" in refused("topo", "show", "h100:2,plainly")

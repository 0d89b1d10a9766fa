"""``--json``: one object, the same names in all commands, and errors too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import weft

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
NAMES = {
    name
    for line in PAGE.read_text().splitlines()
    if line.startswith("| `")
    for name in re.findall(r"`(\w+)`", line.split("|")[1])
}
FREE = {"runs", "kept"}  # keys below are names of algorithms, and reasons
UNITS = ("_us", "_ns", "_s", "_bytes", "_Bps", "_GBps")
PLAIN = {"bandwidth", "latency", "time", "size", "seconds", "ok", "name", "group", "network"}

COMMANDS = [
    ["synth", "h100:2", "all-reduce", "--size", "1MiB", "-o", "traces"],
    ["synth", "torus:4x4", "all-gather", "--size", "1MiB", "--group", "0-3", "--group", "4-7"],
    ["synth", "torus:8x8", "all-gather", "--size", "1MiB", "-o", "own.weft"],
    ["verify", "traces"],
    ["show", "traces", "--npu", "0", "--limit", "2"],
    ["show", "own.weft"],
    ["simulate", "traces"],
    ["simulate", "traces", "--topology", "switch:16"],
    ["convert", "traces", "table.json"],
    ["synth", "mesh:2x2", "all-gather", "--size", "1MiB", "-o", "mesh"],
    ["export", "astra-sim", "mesh", "-o", "bundle"],
    ["simulate", "bundle/algorithm", "--astra-sim", "bundle/network.yml"],
    ["compare", "ring:4", "all-gather", "--sizes", "1KiB", "--group", "0,1", "--group", "2,3"],
    ["topo", "show", "h100:2,multicast,buffer=1MiB", "--without-npu", "3"],
    ["workload", "transformer", "-o", "step", "--tp", "2", "--dp", "2"],
    ["lower", "step", "-o", "lowered", "--topology", "mesh:2x2", "--chunks", "1"],
    ["simulate", "step", "--topology", "mesh:2x2"],
    ["run", "mesh", "--iterations", "1"],
    ["show", "mesh", "--npu", "1", "--program"],
]


def keys(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from keys(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name, one
            free = name in FREE and isinstance(one, dict)
            yield from keys(list(one.values()) if free else one)


def test_names_are_the_documented_ones_in_every_command(tmp_path: Path) -> None:
    kinds: dict[str, set[type]] = {}
    for args in COMMANDS:
        done = weft(*args, "--json", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), (args, done.stdout, done.stderr)
        for name, value in keys(json.loads(done.stdout)):
            assert name in NAMES, (args, name)
            assert name not in PLAIN
            if value is not None:
                kinds.setdefault(name, set()).add(float if type(value) is int else type(value))
    mixed = {name: found for name, found in kinds.items() if len(found) > 1}
    # Nodes are numbers, or names where a switch may be meant.
    assert set(mixed) <= {"src", "dst"}
    measured = {name for name, found in kinds.items() if name.endswith(UNITS) and found != {float}}
    assert measured <= {"finish_us", "finish_ns"}  # one of each rank
    assert len(kinds) > 100


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["synth", "mash:8x8", "all-reduce", "--size", "1MiB"], "unknown topology"),
        (["synth", "mesh:8x8", "all-reduce", "--size", "1MiB", "--seed", "x"], "'--seed'"),
        (["verify", "gone"], "gone"),
        (["topo", "show"], "SPEC"),
    ],
)
def test_errors(args: list[str], message: str, tmp_path: Path) -> None:
    done = weft(*args, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    found = json.loads(done.stdout)
    assert set(found) == {"error", "exit_code"}
    assert message in found["error"]
    assert found["exit_code"] == 2


@pytest.mark.parametrize("command", ["verify", "simulate"])
def test_a_wrong_algorithm_is_no_error(command: str, tmp_path: Path) -> None:
    made = weft("synth", "ring:4", "all-gather", "--size", "1KiB", "-o", "a.weft", cwd=tmp_path)
    assert made.returncode == 0
    assert weft("convert", "a.weft", "a.json", cwd=tmp_path).returncode == 0
    table = json.loads((tmp_path / "a.json").read_text())
    table["transfers"] = {name: column[1:] for name, column in table["transfers"].items()}
    (tmp_path / "a.json").write_text(json.dumps(table))
    done = weft(command, "a.json", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["verified"], found["path"]) == (1, False, "a.json")
    assert found["violation"]

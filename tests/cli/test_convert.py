"""``weft convert`` and ``weft verify`` on files of all formats."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from tests.cli.command import refused, weft
from weft.cli.convert import convert
from weft.formats import FORMATS

RING = Path(__file__).parents[1] / "data" / "astra" / "ar_ring_8"


@pytest.fixture(scope="module")
def traces(tmp_path_factory) -> Path:
    """A small algorithm as Weft saves it."""
    folder = tmp_path_factory.mktemp("traces") / "out"
    done = weft(
        "synth", "ring:4", "all-reduce", "--size", "64KiB", "--chunks", "1", "-o", str(folder)
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_round_trips_between_all_formats(traces, tmp_path):
    for source, target, more in (
        (str(traces), "a.json", []),
        ("a.json", "again", []),
        ("again", "b.json", []),
        ("a.json", "a.csv", []),
        ("a.csv", "from-csv", ["--collective", "all-reduce", "--size", "64KiB"]),
        ("from-csv", "c.json", ["--from", "chakra", "--to", "table"]),
    ):
        done = weft("convert", source, target, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "verified" in done.stdout
    same = [json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json")]
    assert same[0] == same[1]
    rows = json.loads((tmp_path / "c.json").read_text())["transfers"]
    assert rows["chunk"] == same[0]["transfers"]["chunk"]
    for file in (traces / "weft.0.et", traces / "weft.3.et"):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_traces_of_others_with_figures_as_json(tmp_path):
    done = weft("convert", str(RING), "out", "--collective", "all-reduce", "--json", cwd=tmp_path)
    facts = json.loads(done.stdout)
    size = sum(file.stat().st_size for file in (tmp_path / "out").iterdir())
    assert facts["conversion_s"] > 0
    assert [group["collective"] for group in facts["groups"]] == ["all-reduce"]
    told = ("path", "output", "from", "to", "ranks", "transfers", "verified", "stored_bytes")
    shown = (str(RING), "out", "chakra", "chakra", 8, 112, True, size)
    assert tuple(facts[name] for name in told) == shown
    assert weft("verify", "out", cwd=tmp_path).stdout == "out: verified\n"
    prefix = weft("verify", str(RING / "ar_ring"), "--collective", "all-reduce")
    assert prefix.returncode == 0


def test_wrong_algorithms_are_refused_by_convert_and_judged_by_verify(tmp_path):
    (tmp_path / "bad.csv").write_text("chunk,src,dst,reduce\n0,0,1,0\n0,2,1,0\n")
    hints = ("--collective", "broadcast", "--size", "1KiB")
    sentence = refused("convert", "bad.csv", "out", *hints, cwd=tmp_path)
    assert sentence == "weft: bad.csv: line 3: NPU 2 sends chunk 0 (row 1) but never has it"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.csv"]
    done = weft("verify", "bad.csv", *hints, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "bad.csv: line 3: NPU 2 sends chunk 0 (row 1) but never has it\n"
    facts = json.loads(weft("verify", "bad.csv", *hints, "--json", cwd=tmp_path).stdout)
    assert facts["path"] == "bad.csv"
    assert facts["violation_kind"] == "precondition"
    assert facts["row"] == 1


def test_patterns_and_groups_may_be_told(tmp_path):
    (tmp_path / "moves.yaml").write_text("- {size: 64, from: 0, to: [1, 2]}\n")
    (tmp_path / "rows.csv").write_text("chunk,src,dst,reduce\n0,4,5,0\n0,5,6,0\n")
    told = ("--collective", "custom", "--pattern", "moves.yaml", "--group", "4-6")
    assert weft("verify", "rows.csv", *told, cwd=tmp_path).returncode == 0
    told = ("--collective", "broadcast", "--size", "64", "--group", "6,5,4", "--root", "4")
    assert weft("verify", "rows.csv", *told, cwd=tmp_path).returncode == 0


def test_every_option_of_a_format_has_a_flag():
    flags = {parameter.name for parameter in convert.get_params(click.Context(convert))}
    assert {option for kind in FORMATS.values() for option in kind.options} <= flags


def test_plans_for_several_nodes(traces, tmp_path):
    options = ("--to", "mscclpp", "--gpus-per-node", "2", "--max-size", "1MiB")
    done = weft("convert", str(traces), "plan.json", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["max_message_size"] == 1 << 20
    kinds = {channel["channel_type"] for gpu in plan["gpus"] for channel in gpu["channels"]}
    assert kinds == {"memory", "port"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["out", "out"], "out is, or holds, what is read"),
        (["out/weft", "out"], "is, or holds, what is read"),
        (["a.json", "a.json"], "is, or holds, what is read"),
        (["link.json", "a.json"], "is, or holds, what is read"),
        (["out", "out/weft.0.et", "--to", "csv"], "weft.0.et lies in what is read"),
        (["out/weft", "out/weft.0.et", "--to", "csv"], "weft.0.et lies in what is read"),
        (["out", "out/rows.csv"], "rows.csv lies in what is read"),
        (["out", "pipe", "--to", "csv"], "pipe: cannot be written: it is a device or a pipe"),
        (["no\nsuch", "x"], r"no\nsuch: No such file or directory"),
        (["out", "x.json", "--to", "mscclpp", "--name", " "], "the name is ' '; expected"),
        (["nowhere", "x"], "nowhere: No such file or directory"),
        (["text", "x"], "is in no format Weft knows"),
        (["out", "x.doc"], "files that end in .doc (known: .weft, .xml, .json, .csv, none for"),
        (["out", "x", "--to", "chakar"], "unknown format 'chakar'; did you mean 'chakra'?"),
        (["out", "x", "--from", "msccl3"], "unknown format 'msccl3'"),
        (["out", "x", "--dialect", "rccl"], "chakra takes no --dialect"),
        (["out", "x", "--thread-blocks", "9"], "takes no --thread-blocks (it takes --ranks)"),
        (["out", "x.json", "--to", "mscclpp", "--max-size", "much"], "size 'much'"),
        (["out", "no/such/x.json"], "cannot be written"),
        (["out", "full"], "full: it holds mine.txt, which Weft did not write"),
        (["out", "x", "--chunks", "0"], "--chunks is 0; expected 1 or more"),
        (["out", "x", "--size", "many"], "size 'many'"),
        (["out", "x", "--group", "3-1"], "reversed"),
        (["a.csv", "x"], "a.csv: the table: it does not say which collective it is of"),
        (["ring", "x"], "name it with --collective"),
        (["out", "x", "--collective", "all-gather"], "otherwise by itself than --collective"),
        (["out", "x", "--size", "64KiB", "--group", "0-2"], "otherwise by itself than --group"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, words, traces, tmp_path):
    (tmp_path / "out").mkdir()
    for file in traces.iterdir():
        (tmp_path / "out" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "ring").symlink_to(RING)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "text").write_text("some words")
    (tmp_path / "a.csv").write_text("chunk,src,dst,reduce\n0,0,1,0\n")
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("a.json")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(str(file) for file in tmp_path.rglob("*"))
    assert words in refused("convert", *arguments, cwd=tmp_path)
    assert sorted(str(file) for file in tmp_path.rglob("*")) == before

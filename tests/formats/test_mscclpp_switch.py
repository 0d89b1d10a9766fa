"""Plans that copy and add in a switch, written and read."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import FormatError, InputError
from weft.formats import read, write

Plan = dict[str, Any]


def written(kind: str, tmp_path: Path, spec: str = "switch:4,adding,multicast", **how: Any) -> Plan:
    """The plan of what Weft plans for a switch that copies and adds."""
    how["method"] = "in-switch" if kind == "all-reduce" else "auto"
    algorithm = weft.synthesize(spec, kind, "1MiB", threads=1, **how).algorithm
    path = tmp_path / "plan.json"
    write(algorithm, path, kind="mscclpp")
    plan: Plan = json.loads(path.read_text())
    return plan


def verdict(plan: Plan, tmp_path: Path) -> str:
    """What is wrong with a plan; "" if nothing is."""
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(plan))
    try:
        found = weft.verify(path)
    except (FormatError, InputError) as error:
        return str(error)
    return "" if found.ok else str(found.violation)


def names(plan: Plan, gpu: int = 0) -> list[str]:
    return [op["name"] for block in plan["gpus"][gpu]["threadblocks"] for op in block["ops"]]


@pytest.mark.parametrize(("kind", "operation"), [("all-reduce", "glres"), ("broadcast", "gstore")])
@pytest.mark.parametrize("chunks", [1, 3, None])
def test_in_a_switch(kind: str, operation: str, chunks: int | None, tmp_path: Path) -> None:
    plan = written(kind, tmp_path, chunks=chunks)
    assert verdict(plan, tmp_path) == ""
    assert operation in names(plan)
    assert not {"put", "re", "copy"} & set(names(plan))
    (switch,) = (c for c in plan["gpus"][0]["channels"] if c["channel_type"] == "switch")
    assert switch["rank_groups"] == [{"size": 4, "ranks": [0, 1, 2, 3]}]


def test_chunks_side_by_side_are_one_operation(tmp_path: Path) -> None:
    plan = written("all-reduce", tmp_path, chunks=16)
    assert names(plan).count("glres") == len(plan["gpus"][0]["threadblocks"]) == 8
    assert {op["src_buff"][0]["size"] for op in plan["gpus"][1]["threadblocks"][0]["ops"][3:4]} == {
        2
    }


@pytest.mark.parametrize("kind", ["reduce", "reduce-scatter"])
def test_what_the_executor_cannot_add_goes_row_by_row(kind: str, tmp_path: Path) -> None:
    plan = written(kind, tmp_path, chunks=1)
    assert "re" in names(plan)
    assert "glres" not in names(plan)
    assert verdict(plan, tmp_path) == ""


def test_conversion_says_what_is_lost(tmp_path: Path) -> None:
    sums = weft.synthesize("switch:4,adding", "reduce", "1MiB", chunks=2, threads=1)
    sums.save(tmp_path / "traces")
    for name, kind in (("plan.json", "mscclpp"), ("plan.xml", "msccl")):
        done = weft.convert(tmp_path / "traces", tmp_path / name, write_as=kind)
        assert "row by row" in done.notes[0]
    assert weft.convert(tmp_path / "traces", tmp_path / "table.csv").notes == ()
    weft.synthesize("h100:1", "all-reduce", "1MiB", method="in-switch").save(tmp_path / "nvls")
    assert weft.convert(tmp_path / "nvls", tmp_path / "n.json", write_as="mscclpp").notes == ()
    assert weft.convert(tmp_path / "nvls", tmp_path / "n.xml").notes != ()


def changed(plan: Plan, *path: int | str, to: object) -> Plan:
    result = copy.deepcopy(plan)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return result


def without(plan: Plan, *operations: str, last: bool) -> Plan:
    """Without some operations of every block: those before the sums, or those after."""
    result = copy.deepcopy(plan)
    for gpu in result["gpus"]:
        for block in gpu["threadblocks"]:
            at = [op["name"] for op in block["ops"]].index("glres")
            block["ops"] = [
                op
                for number, op in enumerate(block["ops"])
                if op["name"] not in operations or (number > at) != last
            ]
    return result


def test_mutations_are_caught(tmp_path: Path) -> None:
    plan = written("all-reduce", tmp_path, chunks=1)
    ops = ("gpus", 1, "threadblocks", 0, "ops")
    glres = next(
        n for n, op in enumerate(plan["gpus"][1]["threadblocks"][0]["ops"]) if "src_buff" in op
    )
    assert verdict(plan, tmp_path) == ""
    for wrong in (
        without(plan, "signal", "wait", last=True),  # sums may come after the end
        without(plan, "nop", last=True),
        changed(plan, *ops, glres, "src_buff", 0, "index", to=0),  # another chunk's sum
        changed(plan, *ops, glres, "dst_buff", 0, "index", to=0),
        changed(plan, *ops, glres, "src_buff", 0, "switch_channel_id", to=1),
        changed(plan, "gpus", 1, "channels", 1, "rank_groups", 0, "ranks", to=[0, 1, 2]),
        changed(plan, "gpus", 1, "channels", 1, "rank_groups", 0, "ranks", to=[0, 2, 3]),
        changed(plan, "gpus", 1, "channels", 1, "rank_groups", 0, "ranks", to=[0, 1, 2, 9]),
        changed(plan, "gpus", 1, "channels", 1, "buffer_type", to="o?"),
    ):
        assert verdict(wrong, tmp_path) != ""


def test_a_pipeline_in_a_switch(tmp_path: Path) -> None:
    """As people write it: rounds of sums, with signals that no data waits for."""
    plan = written("all-reduce", tmp_path, chunks=1)
    for gpu in plan["gpus"]:
        for block in gpu["threadblocks"]:
            at = [op["name"] for op in block["ops"]].index("glres")
            inner = block["ops"][at]
            block["ops"][at] = {
                "name": "pipeline",
                "iter_context": {"unit_size": 1 << 20, "num_chunks": 1},
                "ops": [inner, {"name": "nop"}],
            }
            for op in block["ops"]:
                op["name"] = {"signal": "rlxsignal", "wait": "rlxwait"}.get(op["name"], op["name"])
    assert verdict(plan, tmp_path) == ""
    path = tmp_path / "changed.json"
    assert len(read(path).verified().transfers) == 2 * 3 * 4 * 2  # two rounds


def test_packets_through_a_switch(tmp_path: Path) -> None:
    """Each GPU packs its part, stores it in all, and everybody unpacks."""
    ranks = range(3)
    own = [{"type": "o", "index": rank, "size": 1} for rank in ranks]
    packed = [{"type": "s", "index": rank, "size": 1} for rank in ranks]

    def gpu(rank: int) -> Plan:
        through = [{"switch_channel_id": 0, "index": rank, "size": 1}]
        ops = [
            {"name": "cpkt", "src_buff": [own[rank]], "dst_buff": [packed[rank]]},
            {"name": "gstorepkt", "src_buff": [packed[rank]], "dst_buff": through},
        ]
        ops += [
            {"name": "upkt", "src_buff": [packed[peer]], "dst_buff": [own[peer]]}
            for peer in ranks
            if peer != rank
        ]
        channels = [{"channel_type": "switch", "channel_ids": [0]}]
        block = {"id": 0, "ops": ops, "channels": channels, "remote_buffer_refs": []}
        groups = [{"size": 3, "ranks": list(ranks)}]
        return {
            "id": rank,
            "input_chunks": 1,
            "output_chunks": 3,
            "scratch_chunks": 3,
            "threadblocks": [block],
            "channels": [{"channel_type": "switch", "buffer_type": "s", "rank_groups": groups}],
        }

    plan = {
        "name": "packets",
        "collective": "allgather",
        "protocol": "LL",
        "inplace": True,
        "gpus": [gpu(rank) for rank in ranks],
    }
    assert verdict(plan, tmp_path) == ""

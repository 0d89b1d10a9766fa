"""Generated training steps: sizes by the formulas, rules of plain workloads, and they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.formats.chakra_schema import GlobalMetadata, Node, frames
from tests.workload.executor import run
from tests.workload.test_lowering import check
from tests.workload.traces import COLL, COMP, KINDS, RECV, SEND, read, value
from weft import FormatError, InputError
from weft.collective import layout_groups
from weft.workload import Transformer, lower, save_transformer
from weft.workload.transformer import order_of_work
from weft.workload.transformer_model import data_parallel

NAMES = {number: name for name, number in KINDS.items()}
SMALL = {"hidden": 8, "seq": 4, "layers": 3}

MODELS = [
    Transformer(dp=4, batch=4, **SMALL),
    Transformer(tp=4, batch=1, **SMALL),
    Transformer(tp=2, dp=2, pp=2, batch=8, microbatches=4, **SMALL),
    Transformer(dp=2, pp=3, batch=4, microbatches=2, schedule="gpipe", **SMALL),
    Transformer(dp=4, ep=2, experts=4, batch=4, sync="reduce-scatter", **SMALL),
    Transformer(tp=2, dp=4, ep=4, experts=4, top_k=1, batch=8, microbatches=2, **SMALL),
    Transformer(batch=1, **SMALL),
]


def saved(model: Transformer, folder: Path) -> tuple[list[list[Node]], dict[str, list[int]]]:
    save_transformer(model, folder)
    ranks = [read(folder / f"transformer.{rank}.et") for rank in range(model.ranks)]
    return ranks, json.loads((folder / "comm_group.json").read_text())


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_every_model_lowers_and_delivers(model: Transformer, tmp_path: Path):
    ranks, groups = saved(model, tmp_path / "w")
    collectives = {
        (rank, node.id): (
            NAMES[value(node, "comm_type")],
            value(node, "comm_size"),
            groups[value(node, "pg_name")],
        )
        for rank, nodes in enumerate(ranks)
        for node in nodes
        if node.type == COLL
    }
    out = tmp_path / "out"
    lower(tmp_path / "w", f"ring:{max(model.ranks, 2)}", threads=1).save(out)
    check(tmp_path / "w", out, collectives)


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_rules_of_plain_workloads(model: Transformer, tmp_path: Path):
    ranks, groups = saved(model, tmp_path / "w")
    assert all(int(name) > 0 and members == sorted(members) for name, members in groups.items())
    kinds = {
        "is_cpu_op": "bool_val",
        "num_ops": "int64_val",
        "tensor_size": "uint64_val",
        "comm_type": "int64_val",
        "comm_size": "int64_val",
        "comm_src": "int32_val",
        "comm_dst": "int32_val",
        "comm_tag": "int32_val",
        "pg_name": "string_val",
    }
    for rank, nodes in enumerate(ranks):
        first, *messages = frames((tmp_path / "w" / f"transformer.{rank}.et").read_bytes())
        assert GlobalMetadata.FromString(first).version == "0.0.4"
        assert [node.SerializeToString() for node in nodes] == messages
        for node in nodes:
            assert node.type in (COMP, SEND, RECV, COLL)
            assert all(kinds[a.name] == a.WhichOneof("value") for a in node.attr)
            assert value(node, "is_cpu_op") is False
            assert node.type != COMP or node.duration_micros > 0
            assert node.type != COLL or rank in groups[value(node, "pg_name")]
    assert run(ranks).finished == {(r, n.id) for r, mine in enumerate(ranks) for n in mine}


def test_operations_are_those_of_the_whole_model(tmp_path: Path):
    """However it is cut: 72·B·s·h²·(1 + s/6h) operations a layer."""
    b, s, h, n = 8, 64, 32, 6
    expected = n * (72 * b * s * h * h + 12 * b * s * s * h)
    for cut in ({}, {"tp": 2}, {"dp": 4}, {"pp": 3}, {"tp": 2, "dp": 2, "pp": 2}):
        model = Transformer(layers=n, hidden=h, seq=s, batch=b, microbatches=2, **cut)
        ranks, _ = saved(model, tmp_path / "w")
        ops = sum(
            value(node, "num_ops")
            for nodes in ranks
            for node in nodes
            if node.type == COMP and node.name != "optimizer"
        )
        assert ops == expected


def test_sizes_by_hand(tmp_path: Path):
    model = Transformer(
        tp=2, dp=4, pp=2, ep=2, experts=4, layers=2, hidden=64, seq=16, batch=8, microbatches=2
    )
    ranks, groups = saved(model, tmp_path / "w")
    mine = {node.name: node for node in ranks[0]}
    tokens = 16 * 1
    activations = tokens * 64 * 2
    layout = {"tp": 2, "ep": 2, "edp": 2, "pp": 2}

    def group(*along: str) -> list[int]:
        return list(layout_groups(layout, along, range(16))[0])

    def shown(name: str) -> tuple:
        node = mine[name]
        return value(node, "comm_type"), value(node, "comm_size"), groups[value(node, "pg_name")]

    assert shown("forward attention 0 sum") == (0, activations, group("tp"))
    assert shown("forward dispatch 0") == (6, 2 * activations, group("ep"))
    assert shown("gradients attention 0") == (0, 4 * 64 * 64 // 2 * 2, group("ep", "edp"))
    assert shown("gradients mlp 0") == (0, 2 * 8 * 64 * 64 // 2 * 2, group("edp"))
    send = mine["send 0"]
    assert (value(send, "comm_dst"), value(send, "comm_size")) == (8, activations)
    assert value(mine["forward attention 0"], "num_ops") == (
        (8 * tokens * 64**2 + 4 * tokens * 16 * 64) // 2
    )
    assert value(mine["backward mlp 0"], "num_ops") == 2 * 16 * tokens * 2 * 64**2 // 2


def test_scattered_gradients_are_gathered_as_parameters(tmp_path: Path):
    model = Transformer(dp=4, batch=4, hidden=6, layers=1, sync="reduce-scatter")
    ranks, _ = saved(model, tmp_path / "w")
    found = [
        (node.name, value(node, "comm_type"), value(node, "comm_size"))
        for node in ranks[3]
        if node.type == COLL
    ]
    assert found == [
        ("gradients mlp 0", 7, 8 * 36 * 2),
        ("gradients attention 0", 7, 4 * 36 * 2),
        ("parameters mlp 0", 2, 8 * 36 * 2 // 4),
        ("parameters attention 0", 2, 4 * 36 * 2 // 4),
    ]


def test_gradients_overlap_with_the_layers_before(tmp_path: Path):
    """No computing waits for gradients but the optimizer."""
    ranks, _ = saved(Transformer(dp=2, batch=2, **SMALL), tmp_path / "w")
    sums = {node.id for node in ranks[0] if node.name.startswith("gradients")}
    waiting = [node.name for node in ranks[0] if sums & set(node.data_deps)]
    assert waiting == ["optimizer"]


def test_orders_of_work():
    def text(stage: int, **options) -> str:
        model = Transformer(pp=3, layers=3, **options)
        return " ".join(f"{work[0]}{n}" for work, n in order_of_work(model, stage))

    four = {"microbatches": 4, "batch": 4}
    assert text(0, **four) == "f0 f1 f2 b0 f3 b1 b2 b3"
    assert text(2, **four) == "f0 b0 f1 b1 f2 b2 f3 b3"
    assert text(1, schedule="gpipe", **four) == "f0 f1 f2 f3 b0 b1 b2 b3"
    assert text(0, microbatches=1, batch=1) == "f0 b0"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tp": 0}, "tp is 0; expected 1 to"),
        ({"layers": 10**13}, "layers is 10000000000000; expected 1 to"),
        ({"pp": 5, "layers": 4}, "4 layers cannot fill 5 pipeline stages"),
        ({"dp": 3, "batch": 8}, "a batch of 8 does not divide among dp 3 times 1 microbatches"),
        ({"dp": 4, "ep": 3, "experts": 3}, "ep 3 does not divide dp 4"),
        ({"dp": 4, "ep": 2}, "ep 2 shares experts, but there are none"),
        ({"dp": 4, "ep": 2, "experts": 3}, "ep 2 does not divide 3 experts"),
        ({"experts": 1}, "top_k 2 is more than 1 experts"),
        ({"tp": 3}, "tp 3 does not divide hidden 1024"),
        ({"tp": 1 << 20, "hidden": 1 << 20}, "makes 1048576 ranks; expected 65536 at most"),
        ({"schedule": "2f2b"}, "unknown schedule '2f2b'; did you mean '1f1b'"),
        ({"sync": "none"}, "unknown gradient sync 'none'"),
        ({"hidden": 10**12}, "the model is too large"),
        ({"layers": 10**8}, "the traces would have about"),
    ],
)
def test_what_makes_no_sense(options: dict, sentence: str):
    with pytest.raises(InputError, match=sentence):
        Transformer(**options)


def test_ranks_that_share_the_batch():
    assert data_parallel(None, 2, None, 2) == 1
    assert data_parallel(None, 2, 3, 2) == 3
    assert data_parallel(16, 2, None, 2) == 4
    assert data_parallel(16, 2, 4, 2) == 4
    for npus, tp, dp, pp in ((10, 4, None, 1), (8, 2, 2, 1), (0, 1, None, 1), (8, -2, None, 1)):
        with pytest.raises(InputError, match="NPUs do not divide into tp, dp and pp"):
            data_parallel(npus, tp, dp, pp)


def test_a_folder_of_others_is_left_alone(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FormatError, match=r"it holds notes\.txt"):
        save_transformer(Transformer(), tmp_path)

"""Plans that Weft writes run on made-up GPUs, in any order, without races or deadlock."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from mscclpp_jobs import check, export, jobs
from tests.examples import examples

import weft
from weft.algorithm import Algorithm, Buffer, Transfers, place
from weft.algorithm.memory import lay_out
from weft.collective import all_reduce_of
from weft.errors import InputError
from weft.formats import write
from weft.formats.mscclpp import writer
from weft.formats.mscclpp.blocks import arrange
from weft.formats.mscclpp.hazards import find_hazards


def made(spec: str, kind: str, **options: Any) -> Algorithm:
    return weft.synthesize(spec, kind, "1MiB", **options).algorithm


@examples(50)
@given(
    jobs(), st.sampled_from([None, 1, 2, 3]), st.sampled_from([108, 12, 6, 4]), st.integers(0, 999)
)
@example(made("ring:4", "all-reduce", chunks=3), None, 108, 0)
@example(made("ring:4", "all-reduce", chunks=3), 2, 6, 1)
@example(made("fc:4", "all-to-all", chunks=4), 1, 12, 2)
def test_any_algorithm_runs(algorithm: Algorithm, node: int | None, blocks: int, seed: int) -> None:
    try:
        plan = export(algorithm, gpus_per_node=node, thread_blocks=blocks)
    except InputError:
        event("does not fit")
        assert blocks < 108
        return
    assert max(len(gpu["threadblocks"]) for gpu in plan["gpus"]) <= blocks
    check(algorithm, plan, runs=2, seed=seed)


def exchange() -> Algorithm:
    """Two NPUs send each other what they have, by way of scratch, and each adds it."""
    home, scratch = 0, place(Buffer.SCRATCH, 0)
    src, dst = [0, 1, 0, 1], [1, 0, 0, 1]
    rows = Transfers(
        np.zeros(4, dtype=np.int32),
        np.array(src, dtype=np.int32),
        np.array(dst, dtype=np.int32),
        np.array([False, False, True, True]),
        src_place=np.array([home, home, scratch, scratch], dtype=np.int32),
        dst_place=np.array([scratch, scratch, home, home], dtype=np.int32),
    )
    return Algorithm((all_reduce_of([0, 1], 64, 1),), rows)


@pytest.mark.parametrize("node", [None, 1])
def test_what_is_sent_is_not_overwritten_too_soon(node: int | None) -> None:
    algorithm = exchange()
    plan = export(algorithm, gpus_per_node=node)
    check(algorithm, plan, runs=20)


def test_channels_between_nodes_are_ports() -> None:
    plan = export(made("ring:4", "all-gather", chunks=1), gpus_per_node=2)
    kinds = {
        (rank, peer): channel["channel_type"]
        for rank, gpu in enumerate(plan["gpus"])
        for channel in gpu["channels"]
        for peer in channel["connected_to"]
    }
    assert kinds[0, 1] == kinds[2, 3] == "memory"
    assert kinds[1, 2] == kinds[3, 0] == "port"


def test_a_ring_has_a_block_for_each_peer_and_direction() -> None:
    plan = export(made("ring:4", "all-gather", chunks=1))
    assert plan["collective"] == "allgather"
    assert plan["inplace"] is True
    for gpu in plan["gpus"]:
        assert (gpu["input_chunks"], gpu["output_chunks"], gpu["scratch_chunks"]) == (1, 4, 0)
        assert len(gpu["threadblocks"]) == 4


def test_relays_make_a_plan_custom_and_give_buffers_too() -> None:
    algorithm = made("ring:6", "all-gather", group=[4, 0, 2], chunks=1)
    plan = export(algorithm)
    assert plan["collective"] == "custom"
    assert len(plan["gpus"]) == 6
    assert {gpu["input_chunks"] for gpu in plan["gpus"]} == {1}
    assert {gpu["output_chunks"] for gpu in plan["gpus"]} == {3}


def test_names_differ_where_plans_do() -> None:
    one, two = (export(made("ring:4", "all-reduce", chunks=n))["name"] for n in (1, 2))
    assert one != two
    assert export(made("ring:4", "all-reduce", chunks=1))["name"] == one
    assert export(made("ring:4", "all-reduce", chunks=1), name="mine")["name"] == "mine"


def test_message_sizes_end_where_offsets_do() -> None:
    algorithm = made("ring:4", "all-gather", chunks=1)
    assert export(algorithm)["max_message_size"] == 4 * ((2**64 - 1) // 64 * 16)
    older = export(algorithm, max_offset=4 << 30)
    assert older["max_message_size"] == 4 * ((2**32 - 1) // 64 * 16)
    sizes = export(algorithm, min_size=1024, max_size=1 << 20)
    assert (sizes["min_message_size"], sizes["max_message_size"]) == (1024, 1 << 20)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"max_size": 1 << 33, "max_offset": 1 << 32},
            "message sizes from 0 B to 8589934592 B; .* largest buffer end at 4294967296 B",
        ),
        ({"max_offset": 8}, "chunks of 16 B is beyond the 8 B that offsets reach; cut the"),
        ({"max_offset": 0}, "offsets below 0 B; expected 1 to 18446744073709551616"),
        ({"min_size": 2, "max_size": 1}, "message sizes from 2 B to 1 B"),
        ({"min_size": -1}, "message sizes from -1 B"),
        ({"gpus_per_node": 0}, "0 GPUs per node"),
        ({"threads": 2048}, "2048 threads a thread block; expected 32 to 1024"),
        ({"thread_blocks": 0}, "0 thread blocks at once"),
        (
            {"thread_blocks": 2},
            r"more than the 2 thread blocks of 64 operations that it runs at once; cut a share",
        ),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        export(made("ring:4", "all-reduce", chunks=4), **options)


def test_the_example_in_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "mscclpp.md"
    monkeypatch.chdir(tmp_path)
    (example_code,) = re.findall(
        r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE
    )
    exec(example_code, {})
    assert (tmp_path / "plan.json").exists()


def test_a_tiny_message_is_refused(tmp_path: Path) -> None:
    tiny = weft.synthesize("ring:4", "all-gather", 1, chunks=1).algorithm
    with pytest.raises(InputError, match="all-gather of 1 B may have empty chunks; synthesize it"):
        write(tiny, tmp_path / "plan.json", kind="mscclpp")
    assert not (tmp_path / "plan.json").exists()


def test_what_cannot_fit_is_refused_by_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only as many rows are arranged as might have room; the number of chunks named does fit."""
    arranged = []
    find = writer.find_hazards
    monkeypatch.setattr(
        writer,
        "find_hazards",
        lambda memory: arranged.append(len(memory.transfers)) or find(memory),
    )
    algorithm = weft.synthesize("ring:6", "all-reduce", "8MiB", chunks=64).algorithm
    with pytest.raises(InputError, match=r"cut a share in \d+ chunks or fewer") as error:
        export(algorithm, thread_blocks=12)
    assert arranged[0] < len(algorithm.transfers) / 2
    chunks = int(re.search(r"in (\d+) chunks", str(error.value))[1])
    fits = weft.synthesize("ring:6", "all-reduce", "8MiB", chunks=chunks).algorithm
    export(fits, thread_blocks=12)


def test_arranging_ends_when_there_are_too_many_blocks() -> None:
    memory = lay_out(weft.synthesize("fc:4", "all-reduce", "8MiB", chunks=16).algorithm)
    gpus, rows = arrange(memory, find_hazards(memory), lambda *_: "memory", 6, 4, 1)
    assert rows < len(memory.transfers)
    assert max(len(gpu.blocks) for gpu in gpus) <= 7

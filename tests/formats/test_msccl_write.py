"""MSCCL-XML goes out: it runs on a machine with small buffers, and comes back as it was."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.formats import msccl_machine
from tests.formats.msccl_samples import DATA, SAMPLES, algo, block, gpu, one_step_all_reduce, step
from tests.strategies import group_collectives, networks

import weft
from weft import formats
from weft.algorithm import Algorithm, Buffer, Transfers
from weft.algorithm.memory import Memory, lay_out
from weft.collective.slots import input_slots, output_slots
from weft.errors import InputError
from weft.formats import Hints
from weft.formats.msccl import deadlock, writer
from weft.formats.msccl.blocks import Block, Step
from weft.formats.msccl.dialects import DIALECTS
from weft.formats.msccl.document import Type
from weft.formats.msccl.moves import Order
from weft.formats.msccl.numbering import numbered


def exported(algorithm, folder, **options):
    path = folder / "out.xml"
    formats.write(algorithm, path, options=options)
    return path, path.read_text()


def signatures(algorithm, units=None):
    """What feeds each message, all the way: from which NPUs over which, in any order.

    A message of several units counts as so many.
    """
    rows = algorithm.transfers
    places = [
        rows.chunk if column is None else column for column in (rows.src_place, rows.dst_place)
    ]
    src = list(zip(rows.src.tolist(), places[0].tolist(), strict=True))
    dst = list(zip(rows.dst.tolist(), places[1].tolist(), strict=True))
    fed: dict[tuple[int, int], Counter[int]] = {}
    found: Counter[int] = Counter()
    sizes = np.ones(len(rows), dtype=np.int64) if units is None else units[rows.chunk]
    each = zip(src, dst, rows.reduce.tolist(), sizes.tolist(), strict=True)
    for read, write, adds, size in each:
        value = fed.get(read, Counter())
        if read[0] != write[0]:
            mark = hash((read[0], write[0], frozenset(value.items())))
            found[mark] += size
            value = Counter([mark])
        fed[write] = fed.get(write, Counter()) + value if adds else value
    return found


def custom_promise(memory: Memory):
    """What lies in the buffers of an algorithm, at first and at the end."""
    chunks = memory.collective.chunks
    npus = int(memory.ranks.max()) + 1
    ins, outs = input_slots(chunks, npus), output_slots(chunks, npus)
    first, last = {}, {}

    def start(slots, npu, chunk):
        mine = slots.of(npu)
        return int(memory.units[mine[mine < chunk]].sum())

    for rank, npu in enumerate(memory.ranks.tolist()):
        for chunk in ins.of(npu).tolist():
            source = rank if chunks.reduce[chunk] else -1
            for unit in range(memory.units[chunk]):
                first[rank, "i", start(ins, npu, chunk) + unit] = (chunk, unit, source)
        for chunk in outs.of(npu).tolist():
            sources = chunks.members(chunks.pre[chunk]).tolist()
            ranks = [memory.ranks.tolist().index(source) for source in sources]
            for unit in range(memory.units[chunk]):
                last[rank, "o", start(outs, npu, chunk) + unit] = [
                    (chunk, unit, source) for source in (ranks if chunks.reduce[chunk] else [-1])
                ]
    return first, last


def runs(text, memory, seed):
    """Run it with as few buffers as there may be, and with many."""
    collective = memory.collective
    if 'coll="custom"' not in text:
        root = 0 if collective.root is None else collective.group.index(collective.root)
        msccl_machine.run(text, root=root, seeds=[seed])
        return
    first, last = custom_promise(memory)
    for slots in (2, 1000):
        machine = msccl_machine.Machine(text, slots)
        for (rank, buffer, at), value in first.items():
            machine.memory[machine.cell(rank, buffer, at)] = (value,)
        machine.run(seed)
        for (rank, buffer, at), value in last.items():
            wanted = tuple(sorted(value, key=repr))
            assert machine.read(machine.cell(rank, buffer, at)) == wanted


def check(algorithm, folder, seed=0, **options):
    path, text = exported(algorithm, folder, **options)
    memory = lay_out(algorithm)
    runs(text, memory, seed)
    hints = Hints(group=memory.ranks.tolist(), size=max(algorithm.demands[0].size, 1 << 16))
    if 'coll="custom"' in text and not len(memory.transfers):
        return text  # nothing to derive a pattern from
    again = formats.read(path, hints).verified()
    assert signatures(again) == signatures(algorithm, memory.units)
    if 'coll="custom"' not in text:
        assert again.demands[0].kind == algorithm.demands[0].kind
        assert again.demands[0].root == algorithm.demands[0].root
        assert len(again.chunks) == memory.units.sum()
    return text


@pytest.mark.parametrize("dialect", ["msccl", "rccl"])
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_come_back(tmp_path, name, dialect) -> None:
    algorithm = formats.read(DATA / name).verified()
    check(algorithm, tmp_path, dialect=dialect)
    # What Weft wrote it writes again as it is.
    texts = []
    for _ in range(2):
        again = formats.read(tmp_path / "out.xml").verified()
        texts.append(exported(again, tmp_path, dialect=dialect)[1])
    assert texts[0] == texts[1]


def test_rings_are_fused_as_by_hand(tmp_path) -> None:
    for name in ("ar_ring_8.xml", "ag_ring_8.xml"):
        _, text = exported(formats.read(DATA / name).verified(), tmp_path)
        steps = [
            re.findall(r'type="(\w+)" \w+="(.)"', t) for t in (text, (DATA / name).read_text())
        ]
        assert steps[0] == steps[1]
        assert 's_chunks="0"' in text


@examples(80)
@given(data=st.data(), dialect=st.sampled_from(["msccl", "rccl"]), seed=st.integers(0, 99))
def test_synthesized_algorithms_run_and_come_back(tmp_path_factory, data, dialect, seed) -> None:
    topology = data.draw(networks())
    collective = data.draw(group_collectives(topology, relay=data.draw(st.booleans())))
    try:
        result = weft.synthesize(topology, collective, chunks=collective.chunks_per_share)
    except weft.UnreachableError:
        assume(False)
    folder = tmp_path_factory.mktemp("out")
    try:
        check(result.algorithm, folder, seed, dialect=dialect)
    except InputError as error:
        expected = r"no-relay|write the dialect msccl|chunks are empty|has \d+ chunks in its|steps;"
        complaint = str(error)
        assert re.search(expected, complaint), complaint


@pytest.mark.parametrize("spec", ["ring:5", "mesh:3x3", "dgx1", "h100", "ring:3*switch:2"])
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_networks_in_both_dialects(tmp_path, spec, kind) -> None:
    algorithm = weft.synthesize(spec, kind, "1MiB", chunks=2).algorithm
    for dialect in ("msccl", "rccl"):
        text = check(algorithm, tmp_path, dialect=dialect)
        assert ("reduce_scatter" in text) == (kind == "reduce-scatter" and dialect == "msccl")
        assert text.startswith("<algo name=")


@pytest.mark.parametrize("spec", ["fc:5", "mesh:3x3", "ring:8"])
@pytest.mark.parametrize("kind", ["all-to-all", "all-gather", "broadcast"])
def test_both_ends_of_a_message_name_its_source_and_destination(tmp_path, spec, kind) -> None:
    """Checkers hold the places of a send against those of its receive, as MSCCLang writes them."""
    algorithm = weft.synthesize(spec, kind, "1MiB", chunks=2, seed=1).algorithm
    text = check(algorithm, tmp_path)
    assert 'outofplace="' in text
    sent, received = {}, {}
    for gpu_ in ElementTree.fromstring(text):
        for tb in gpu_:
            for step_ in tb:
                place = [step_.get(a) for a in ("srcbuf", "srcoff", "dstbuf", "dstoff", "cnt")]
                me, channel = gpu_.get("id"), tb.get("chan")
                if step_.get("type") in ("s", "rcs"):
                    stored = place[2:4] if step_.get("type") == "rcs" else place[:2]
                    lane = sent.setdefault((me, tb.get("send"), channel), [])
                    lane.append([*stored, *place[2:]])
                if step_.get("type") in ("r", "rcs"):
                    received.setdefault((tb.get("recv"), me, channel), []).append(place)
    assert sent == received


def test_relays_need_custom(tmp_path) -> None:
    algorithm = weft.synthesize("ring:6", "all-gather", "3KiB", group=[4, 0, 2], chunks=1).algorithm
    text = check(algorithm, tmp_path)
    assert 'coll="custom"' in text
    assert 'ngpus="6"' in text
    with pytest.raises(InputError, match=r"NPU 1 relays without being in the group; .* --no-relay"):
        exported(algorithm, tmp_path, dialect="rccl")
    with pytest.raises(InputError, match=r"rccl has no pipeline .*; write the dialect msccl"):
        exported(weft.synthesize("line:3", "pipeline", "3KiB").algorithm, tmp_path, dialect="rccl")


def test_options_are_checked(tmp_path) -> None:
    algorithm = weft.synthesize("ring:3", "all-gather", "3KiB").algorithm
    for wrong, sentence in (
        ({"dialect": "nccl"}, "unknown dialect 'nccl'"),
        ({"protocol": "simple"}, "unknown protocol 'simple'; did you mean 'Simple'"),
        ({"name": 'a"b'}, "the name is 'a\"b'; expected up to 63 letters"),
        ({"name": ""}, "the name is ''"),
    ):
        with pytest.raises(InputError, match=sentence):
            exported(algorithm, tmp_path, **wrong)
    _, text = exported(algorithm, tmp_path, protocol="LL128", name="mine")
    assert 'name="mine" proto="LL128"' in text


def _round_a_ring() -> Algorithm:
    return weft.synthesize(
        "ring:4", "all-reduce", "8MiB", chunks=6, method="bidirectional-ring"
    ).algorithm


@pytest.fixture
def limited(monkeypatch):
    """Make the runtimes smaller than they are."""

    def limit(**limits):
        for name, dialect in DIALECTS.items():
            monkeypatch.setitem(DIALECTS, name, replace(dialect, **limits))

    return limit


def test_long_blocks_are_spread_over_channels(tmp_path, limited) -> None:
    algorithm = _round_a_ring()
    before = check(algorithm, tmp_path)
    longest = max(int(number) for number in re.findall(r'<step s="(\d+)"', before))
    limited(steps=longest // 2)
    after = check(algorithm, tmp_path)
    assert 'nchannels="1"' in before
    assert 'nchannels="2"' in after or 'nchannels="4"' in after
    assert max(int(number) for number in re.findall(r'<step s="(\d+)"', after)) < longest // 2


def test_lanes_are_equally_long(tmp_path, limited) -> None:
    """Numbers of chunks go with whom they are for, so lanes must not simply go by them."""
    algorithm = weft.synthesize("ring:8", "all-to-all", "8MiB", chunks=8).algorithm
    messages = Counter(zip(algorithm.transfers.src, algorithm.transfers.dst, strict=True))
    longest = max(messages.values())
    limited(steps=longest // 4, blocks=4 * 4 + 1)
    text = check(algorithm, tmp_path)
    assert int(re.search(r'nchannels="(\d+)"', text)[1]) <= 5


def test_rccl_takes_64_blocks(tmp_path) -> None:
    algorithm = weft.synthesize("fc:34", "all-gather", "1MiB", chunks=1).algorithm
    assert 'tb id="65"' in exported(algorithm, tmp_path)[1]
    text = check(algorithm, tmp_path, dialect="rccl")
    assert text.count('tb id="63"') == 34
    assert 'tb id="64"' not in text


def test_local_steps_share_a_block_before_anything_is_refused(tmp_path, limited) -> None:
    algorithm = weft.synthesize("fc:8", "all-to-all", "1MiB", chunks=1).algorithm
    limited(blocks=7)
    text = check(algorithm, tmp_path)
    assert text.count('type="cpy"') == 8
    assert text.count("<tb") == 7 * 8
    limited(blocks=6)
    with pytest.raises(InputError, match="it talks to 7 others, each of which needs one"):
        exported(algorithm, tmp_path)


@pytest.mark.parametrize(
    ("network", "kind", "chunks", "dialect"),
    [
        ("ring:8", "all-to-all", 160, "msccl"),
        ("ring:8", "all-reduce", 600, "msccl"),
        ("mesh:3x3", "all-reduce", 180, "rccl"),  # most of what comes is sent on twice, or never
        ("h100:2", "all-reduce", 200, "rccl"),
    ],
)
def test_limits_are_checked_before_any_step_is_made(
    tmp_path, monkeypatch, network, kind, chunks, dialect
) -> None:
    """What cannot fit is refused by counting; the number of chunks named does fit."""
    how = {"method": "matching"} if network == "h100:2" else {}
    algorithm = weft.synthesize(network, kind, "64MiB", chunks=chunks, **how).algorithm
    with monkeypatch.context() as patch:
        patch.setattr(writer, "moves_of", None)
        with pytest.raises(InputError, match=r"cut a share in \d+ chunks or fewer") as error:
            exported(algorithm, tmp_path, dialect=dialect)
    fit = int(re.search(r"in (\d+) chunks", str(error.value))[1])
    assert chunks / 8 < fit < chunks
    fitting = weft.synthesize(network, kind, "64MiB", chunks=fit, **how).algorithm
    exported(fitting, tmp_path, dialect=dialect)


def test_what_turns_out_too_large_names_chunks_that_fit(tmp_path) -> None:
    """Where messages that could go together do not, counting them once more tells."""
    algorithm = weft.synthesize("fc:8", "all-reduce", "64MiB", chunks=300).algorithm
    with pytest.raises(InputError, match=r"in 2\d\d chunks or fewer .it has 300.") as error:
        exported(algorithm, tmp_path)
    fit = int(re.search(r"in (\d+) chunks", str(error.value))[1])
    exported(weft.synthesize("fc:8", "all-reduce", "64MiB", chunks=fit).algorithm, tmp_path)


def test_lanes_are_as_many_as_blocks_are_too_long(tmp_path, monkeypatch) -> None:
    """Few numbers of lanes are tried: each takes as long as writing the file."""
    tried = []
    spread = writer.spread
    monkeypatch.setattr(
        writer, "spread", lambda moves, lanes: tried.append(lanes) or spread(moves, lanes)
    )
    algorithm = weft.synthesize("mesh:3x3", "all-reduce", "64MiB", chunks=40).algorithm
    exported(algorithm, tmp_path, dialect="rccl")
    assert 2 <= len(tried) <= 3
    assert tried[1] >= 1.5 * tried[0]


def test_fusions_are_taken_apart_in_few_rounds(tmp_path, monkeypatch) -> None:
    """However many fused steps would hang, all steps are looked at a few times only."""
    algorithm = weft.synthesize("ring:8", "all-reduce", "64MiB", chunks=16).algorithm
    looked = []
    circles = deadlock.Graph.circles
    monkeypatch.setattr(
        deadlock.Graph, "circles", lambda self: looked.append(len(self.after)) or circles(self)
    )
    monkeypatch.setattr(deadlock, "_PATIENCE", 10_000)
    check(algorithm, tmp_path)
    assert sum(looked) < 10_000 + 4 * max(looked)


def test_too_many_peers_share_blocks(tmp_path, limited) -> None:
    algorithm = weft.synthesize("fc:8", "all-to-all", "1MiB", chunks=1).algorithm
    limited(blocks=11, peers=4)
    text = check(algorithm, tmp_path)
    assert text.count('id="10"') == 8
    assert 'id="11"' not in text
    assert 'send="1" recv="1"' in text
    assert re.search(r'nchannels="[23]"', text)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (
            {"steps": 1},
            r"GPU 0, thread block \d+ has \d+ steps; msccl loads up to 1; cut a share in \d chunks",
        ),
        (
            {"blocks": 1},
            "GPU 0 would need 2 thread blocks or more; msccl loads up to 1, and it talks to 2 "
            "others, each of which needs one; take an algorithm in which a GPU talks to fewer",
        ),
        (
            {"blocks": 4, "steps": 6},
            r"GPU 0 would need \d+ thread blocks or more; msccl loads up to 4 of 6 steps; cut a "
            r"share in \d chunks? or fewer .it has 6.",
        ),
        (
            {"nodes": 40},
            r"GPU 0 would have \d+ elements or more; msccl loads up to 40; cut a share in \d chunk",
        ),
        (
            {"nodes": 6},
            r"msccl loads up to 6; take fewer GPUs: 1 chunk per share .it has 6. may be too many",
        ),
        ({"gpus": 3}, "4 GPUs; msccl loads up to 3"),
        ({"slots": 20}, "GPU 0 has 24 chunks in its input; msccl numbers up to 20; take fewer"),
        ({"waited_for": 0}, "thread blocks that others wait for; msccl can name 0; take fewer"),
        (
            {"peers": 1, "channels": 1},
            "need more than 1 channels of 1 peers; take fewer chunks",
        ),
    ],
)
def test_limits_are_named(tmp_path, limited, limits, sentence) -> None:
    algorithm = _round_a_ring()
    limited(**limits)
    with pytest.raises(InputError, match=sentence):
        exported(algorithm, tmp_path)


def test_waits_between_gpus_are_counted(tmp_path) -> None:
    """Row 1 waits for row 0, which ends where row 1 does nothing."""
    algorithm = weft.synthesize("fc:4", "all-gather", "4KiB", chunks=1).algorithm
    rows = algorithm.transfers
    second = int(np.flatnonzero((rows.src != rows.dst[0]) & (rows.src != rows.src[0]))[0])
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    offsets[second + 1 :] = 1
    waiting = Algorithm(
        algorithm.demands,
        Transfers(
            rows.chunk,
            rows.src,
            rows.dst,
            rows.reduce,
            dep_offsets=offsets,
            deps=np.zeros(1, dtype=np.int64),
        ),
    )
    _, text = exported(waiting, tmp_path)
    assert "<!-- 1 waits for what ends on another GPU are left out -->" in text
    formats.read(tmp_path / "out.xml").verified()


def test_rows_that_start_together_become_one_step(tmp_path) -> None:
    text = check(formats.read(DATA / "ag_rd_8.xml").verified(), tmp_path)
    assert text.count('type="s" srcbuf="o" srcoff="4" dstbuf="o" dstoff="4" cnt="4"') == 4
    copies = check(weft.synthesize("ring:2", "all-to-all", "9KiB", chunks=4).algorithm, tmp_path)
    assert copies.count('type="cpy"') == copies.count('cnt="4" depid="-1"') == 2
    # Chunks that are passed on one by one stay apart.
    line = weft.synthesize("line:3", "broadcast", "64MiB", chunks=4).algorithm
    assert 'cnt="2"' not in check(line, tmp_path)


@pytest.mark.parametrize("kind", ["gather", "scatter"])
@pytest.mark.parametrize("root", [0, 2])
def test_patterns_a_runtime_does_not_know_come_back_by_name(tmp_path, kind, root) -> None:
    """In place a rank's part would be at an offset that the runtime knows nothing of."""
    algorithm = weft.synthesize("ring:3", kind, "3KiB", root=root, chunks=2).algorithm
    assert f'coll="{kind}" inplace="1"' in check(algorithm, tmp_path, dialect="rccl")
    assert 'coll="custom" inplace="0"' in check(algorithm, tmp_path)
    again = formats.read(tmp_path / "out.xml", Hints(kind, root=root)).verified()
    assert (again.demands[0].kind, again.demands[0].root) == (kind, root)
    assert len(again.chunks) == 6


def test_a_fusion_that_would_hang_is_taken_apart(tmp_path) -> None:
    """Two rings in opposite directions through the same blocks, each waiting for the other."""
    chunks = 6
    gpus = []
    for rank, peer in ((0, 1), (1, 0)):
        mine = [f"o{rank * 3 + c}" for c in range(3)]
        theirs = [f"o{peer * 3 + c}" for c in range(3)]
        steps = [step(i, "s", place, place) for i, place in enumerate(mine)]
        steps += [step(3 + i, "r", place, place) for i, place in enumerate(theirs)]
        gpus.append(gpu(rank, [block(0, steps, send=peer, recv=peer)], i=0, o=chunks))
    path = tmp_path / "in.xml"
    path.write_text(algo("allgather", gpus, chunks))
    check(formats.read(path).verified(), tmp_path)


def test_no_runtime_has_to_do_more_than_sixteen_sums_at_once() -> None:
    """A runtime fuses sums into one place that nobody waits for, and has room for 16."""
    sums = 50
    steps = [
        Step(Type.RE, (Buffer.SCRATCH, at), (Buffer.INPUT, 0), 1, (2 * at + 1,))
        for at in range(sums)
    ]
    halves = 2 * sums
    nothing: list[list[int]] = [[] for _ in range(halves)]
    order = Order(nothing, [-1] * halves, [-1] * halves, nothing, [0] * halves)
    (lines,) = numbered([Block(0, steps=steps)], order).lines
    ends = [-1, *(at for at, line in enumerate(lines) if line.awaited), sums - 1]
    assert max(np.diff(ends)) == 16


def test_sums_take_in_what_came_for_them(tmp_path) -> None:
    path = tmp_path / "in.xml"
    path.write_text(one_step_all_reduce(2))
    text = check(formats.read(path).verified(), tmp_path)
    assert Counter(re.findall(r'type="(\w+)"', text)) == {"s": 2, "rrc": 2}
    assert 's_chunks="0"' in text
    # Where the first sum waits for all messages, the others cannot be sums themselves.
    path.write_text(one_step_all_reduce(4))
    text = check(formats.read(path).verified(), tmp_path)
    assert Counter(re.findall(r'type="(\w+)"', text))["re"] >= 4


def test_nothing_is_written_if_it_cannot_be(tmp_path) -> None:
    demands = [weft.Collective.of("all-gather", group, 64) for group in ([0, 1], [2, 3])]
    both = weft.synthesize("ring:4", demands).algorithm
    with pytest.raises(InputError, match="serves 2 collectives at once"):
        exported(both, tmp_path)
    assert not list(tmp_path.iterdir())

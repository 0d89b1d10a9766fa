"""MSCCL-XML comes in: every step type, what is refused and how, and nothing wrong gets through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.formats import msccl_machine
from tests.formats.msccl_samples import (
    DATA,
    SAMPLES,
    algo,
    all_pairs_all_to_all,
    block,
    gpu,
    one_step_all_reduce,
    ring_all_reduce,
    step,
)

from weft import formats
from weft.collective import Move
from weft.errors import FormatError, InputError, WeftError
from weft.formats import Hints

ROWS = {
    "a2a_allpairs_8.xml": ("all-to-all", 64),
    "ag_rd_8.xml": ("all-gather", 56),
    "ag_ring_8.xml": ("all-gather", 56),
    "ar_ring_8.xml": ("all-reduce", 7 * 16 + 6 * 8),  # messages, and additions on the way
}


@pytest.fixture
def load(tmp_path):
    def read(text, **hints):
        path = tmp_path / "algo.xml"
        path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
        return formats.read(path, Hints(**hints), kind="msccl")

    return read


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_right(name) -> None:
    assert formats.recognise(DATA / name) == "msccl"
    imported = formats.read(DATA / name)
    algorithm = imported.verified()
    assert (algorithm.demands[0].kind, len(algorithm.transfers)) == ROWS[name]
    assert re.match(r"GPU \d, thread block \d+, step \d+ \(line \d+\)", imported.origin(0))
    slots = (1000,) if name == "ag_rd_8.xml" else (2, 1000)  # that one sends 4 before it receives
    msccl_machine.run((DATA / name).read_text(), slots=slots)


def test_sizes(load) -> None:
    text = (DATA / "ag_ring_8.xml").read_text()
    assert load(text).algorithm.demands[0].size == 8 << 20
    assert load(text, size=1000).algorithm.demands[0].chunks.bytes.sum() == 1000
    limited = text.replace('inplace="1"', 'inplace="1" minBytes="1024" maxBytes="4096"')
    assert load(limited).algorithm.demands[0].size == 4096
    least = text.replace('inplace="1"', 'inplace="1" minBytes="99999999" maxBytes="0"')
    assert load(least).algorithm.demands[0].size == 99999999
    tiny = load(text, size=8).verified()
    assert tiny.chunks.bytes.tolist() == [1] * 8
    with pytest.raises(InputError, match="has 8 chunks, but 7 B is less than 1 B each"):
        load(text, size=7)


def test_groups_give_other_numbers(load) -> None:
    group = [5, 9, 2, 11, 0, 1, 30, 4]
    for name in SAMPLES:
        algorithm = load((DATA / name).read_text(), group=group).verified()
        assert algorithm.demands[0].group == tuple(group)
        assert set(algorithm.transfers.src.tolist()) == set(group)
    for wrong in ([0, 1], [0] * 8, [-1, *range(7)]):
        with pytest.raises(InputError, match="group"):
            load(text=(DATA / SAMPLES[0]).read_text(), group=wrong)


def two(first, second, coll="allreduce", chunks=1, **shape):
    """GPUs 0 and 1 with a block each that sends to and receives from the other."""
    buffers = {"i": chunks, "o": shape.pop("o", 0), "s": shape.pop("s", 0)}
    return algo(
        coll,
        [
            gpu(0, [block(0, first, send=1, recv=1)], **buffers),
            gpu(1, [block(0, second, send=0, recv=0)], **buffers),
        ],
        chunks,
        **shape,
    )


def test_every_type_of_step(load) -> None:
    """1 sends; 0 adds to what it has, elsewhere or on the way; 1 takes it."""
    last = step(1, "r", "i0", "i0")
    sent = step(0, "s", "i0", "i0")
    for middle, more in (
        ([step(0, "rrc", "i0", "i0"), step(1, "s", "i0", "i0")], []),
        ([step(0, "rrcs", "i0", "i0")], []),
        ([step(0, "rrcs", "i0", "s0"), step(1, "cpy", "s0", "i0")], []),
        ([step(0, "rrc", "i0", "s0"), step(1, "s", "s0"), step(2, "cpy", "s0", "i0")], []),
        (
            [
                step(0, "r", "i0", "s0"),
                step(1, "re", "s0", "i0", hasdep=1),
                step(2, "s", "i0", "i0"),
            ],
            [],
        ),
    ):
        text = two([*middle, *more], [sent, last], s=1)
        msccl_machine.run(text)
        assert load(text).verified().demands[0].kind == "all-reduce"
    # A sum that is passed on and not kept: 0 never has the result.
    text = two([step(0, "rrs", "i0", "i0")], [sent, last])
    assert "0" in load(text).violation()
    # rcs, with other offsets on both sides and three chunks at once.
    ring = algo(
        "broadcast",
        [
            gpu(0, [block(0, [step(0, "s", "i0", cnt=3)], send=1)], i=3, o=3),
            gpu(
                1,
                [
                    block(0, [step(0, "rcs", "i0", "s1", cnt=3, hasdep=1)], send=2, recv=0),
                    block(1, [step(0, "cpy", "s1", "o0", cnt=3, dep=(0, 0))]),
                ],
                i=0,
                o=3,
                s=4,
            ),
            gpu(2, [block(0, [step(0, "r", "i0", "o0", cnt=3)], recv=1)], i=0, o=3),
        ],
        3,
        inplace=0,
    )
    with pytest.raises(FormatError, match=r"GPU 0 never writes output\[0\], and inplace=0"):
        load(ring)
    whole = ring.replace('inplace="0"', 'inplace="1"').replace('i_chunks="0"', 'i_chunks="3"')
    msccl_machine.run(whole)
    assert load(whole).verified().demands[0].root == 0


def test_roots_are_found_or_asked_for(load) -> None:
    sends, takes = step(0, "s", "i0", "i0"), step(0, "r", "i0", "o0")
    text = two([takes], [sends], "broadcast", o=1)
    assert load(text).verified().demands[0].root == 1
    text = two([step(0, "rrc")], [sends], "reduce", o=1)
    assert load(text).verified().demands[0].root == 0
    back = two([step(0, "rrc"), step(1, "s")], [sends, step(1, "r")], "reduce", o=1)
    with pytest.raises(FormatError, match="does not say which GPU is the root of the reduce"):
        load(back)
    assert load(back, root=1).verified().demands[0].root == 1
    with pytest.raises(InputError, match="root 7 is not an NPU of the group"):
        load(back, root=7)


def test_gather_and_scatter(load) -> None:
    first = [step(0, "cpy", "i0", "o0"), step(1, "r", "i0", "o1")]
    gather = two(first, [step(0, "s", "i0")], "gather", o=2, inplace=0)
    msccl_machine.run(gather)
    assert load(gather).verified().demands[0].root == 0
    scatter = two(
        [step(0, "cpy", "i0", "o0"), step(1, "s", "i1")],
        [step(0, "r", "i0", "o0")],
        "scatter",
        chunks=2,
        o=1,
        inplace=0,
    ).replace('nchunksperloop="2"', 'nchunksperloop="1"')
    msccl_machine.run(scatter)
    assert load(scatter).verified().demands[0].root == 0


def test_all_reduce_of_any_number_of_chunks(load) -> None:
    text = two(
        [step(0, "rrcs", "i0", "i0", cnt=3)],
        [step(0, "s", "i0", "i0", cnt=3), step(1, "r", "i0", "i0", cnt=3)],
        chunks=3,
    )
    algorithm = load(text).verified()
    assert len(algorithm.chunks) == 3
    assert len(algorithm.transfers) == 6


@pytest.mark.parametrize("name", SAMPLES)
def test_custom_patterns_are_derived(load, name) -> None:
    text = re.sub('coll="[a-z]*"', 'coll="custom"', (DATA / name).read_text())
    algorithm = load(text).verified()
    assert algorithm.provenance["collective"] == "derived from what the algorithm does"
    chunks = algorithm.chunks
    kind = ROWS[name][0]
    assert len(chunks) == (64 if kind == "all-to-all" else 8)
    assert bool(chunks.reduce.all()) == (kind == "all-reduce")
    # The user may know better.
    named = load(text, collective=kind).verified()
    assert named.demands[0].kind == kind


def test_custom_patterns_by_what_moves(load) -> None:
    text = two([step(0, "s", "i0")], [step(0, "r", "i0", "o0")], "custom", o=1, inplace=0)
    moves = [Move(64, (0,), (1,))]
    assert load(text, moves=moves).verified().demands[0].size == 64
    assert load(text).verified().chunks.bytes.tolist() == [1 << 20]
    with pytest.raises(FormatError, match=r"reads input\[0\] of GPU 0, which holds nothing"):
        load(text, moves=[Move(64, (1,), (0,))]).verified()
    for wrong, sentence in (
        ([step(0, "s", "i0")], "is used, but its result is in no output"),
        ([step(0, "re", "i0", "i1"), step(1, "s", "i1")], "added to another slot of the same"),
    ):
        text = two(wrong, [step(0, "r", "i0", "s0")], "custom", 2, o=2, s=1, inplace=0)
        with pytest.raises(FormatError, match=sentence):
            load(text)


def refusals():
    s, r = step(0, "s"), step(0, "r", "i0", "i0")
    good = two([step(0, "rrcs")], [s, step(1, "r")])
    yield "wrong root", "<system/>", "line 1: the document is a <system>, not an <algo>"
    yield "not XML", "hello", "line 1: syntax error"
    yield "cut off", good[:-9], "line 12: unclosed token|no element found"
    yield "ngpus", good.replace('ngpus="2"', 'ngpus="3"'), "has ngpus=3, but 2 GPUs follow"
    yield "coll", good.replace("allreduce", "allreduc"), "has coll='allreduc'; expected one of"
    yield "lines", good.replace("allreduce", "all\nreduce"), "has coll='all reduce'; expected one"
    yield "twice", good.replace('gpu id="1"', 'gpu id="0"'), "line 7: GPU 0 is there twice"
    yield "gap", good.replace('gpu id="1"', 'gpu id="2"'), "there is no GPU 1, but GPU 2"
    yield "type", good.replace("rrcs", "rrrs"), r"line 4: <step> has type='rrrs'; expected s, r,"
    yield "residual", good.replace('"rrcs"', '"ra"'), "has type 'ra', which adds residuals"
    yield "number", good.replace('cnt="1"', 'cnt="x"'), "line 4: <step> has cnt='x'; expected a wh"
    yield "huge", good.replace('cnt="1"', f'cnt="{"9" * 5000}"'), "has cnt='9+...'; expected a wh"
    yield "cnt", two([step(0, "rrcs", cnt=0)], [s, step(1, "r")]), "has cnt=0; expected 1 or more"
    yield "unlike", two([step(0, "rrcs", cnt=2)], [s, step(1, "r")], chunks=2), "sends cnt=.*receiv"
    yield "range", two([step(0, "rrcs", dst="i1")], [s, step(1, "r")]), r"uses input\[1\.\.1\], bu"
    yield (
        "scratch",
        two([step(0, "rrcs", dst="s0")], [s, step(1, "r")]),
        r"but GPU 0 has s_chunks=0",
    )
    yield "order", two([step(1, "rrcs")], [s, step(1, "r")]), "has s=1; steps are numbered in or"
    yield "no peer", good.replace('send="1"', 'send="-1"'), "GPU 0, .* sends, but its .* send=-1"
    yield "itself", good.replace('send="1"', 'send="0"'), "sends to its own GPU"
    yield "nobody", good.replace('send="1"', 'send="2"'), "sends to GPU 2; expected 0 to 1, or -1"
    yield "channel", good.replace('chan="0"', 'chan="1"'), "uses channel 1, but nchannels=1"
    yield "unmatched", two([step(0, "rrc")], [s, step(1, "r")]), "too many .* no step sends it"
    yield "unread", two([step(0, "rrcs")], [s]), "too many on its connection: no step receives it"
    yield "block", two([step(0, "rrcs", dep=(1, 0))], [s, step(1, "r")]), "waits for thread block 1"
    yield "step", two([step(0, "rrcs", dep=(0, 5))], [s, step(1, "r")]), "waits for step 5 of thr"
    yield "untold", two([step(0, "rrcs", dep=(0, 0))], [s, step(1, "r")]), "no step from there on"
    yield "self", two([step(0, "rrcs", dep=(0, 0), hasdep=1)], [s, step(1, "r")]), "deadlock"
    yield "nop", two([step(0, "nop"), step(1, "rrcs")], [s, step(1, "r")]), "nop that waits for no"
    nop = [step(0, "nop", dep=(0, 1)), step(1, "rrcs", hasdep=1)]
    yield "lone nop", two(nop, [s, step(1, "r")]), "not followed by a step with a dependency"
    yield "dead", two([step(0, "r"), step(1, "s")], [step(0, "r"), step(1, "s")]), "deadlock: GPU"
    yield "empty", two([step(0, "s", "s0")], [r], s=1), "reads scratch.* nothing"
    yield "inplace", good.replace('inplace="1"', 'inplace="2"'), "has inplace=2; expected 0 or 1"
    yield "chunks", good.replace('i_chunks="1"', 'i_chunks="2"'), "has i_chunks=2, but the all-red"
    yield "pieces", good.replace("allreduce", "allgather"), "among 2 GPUs needs a multiple of 2"
    yield "overlap", two([step(0, "cpy", "i0", "i1", cnt=2)], [], chunks=3), "reads slots that it"
    yield "loops", good.replace('nchunksperloop="1"', 'nchunksperloop="99999999"'), "too many"
    copies = two([step(i, "cpy", "i0", "i9999", cnt=9999) for i in range(200)], [], chunks=20000)
    yield "too much", copies, "moves more than 1048576 chunks"
    yield "no tb", good.replace("tb", "bt"), r"."
    yield "nested", "<algo>" + "<x>" * 20 + "</x>" * 20 + "</algo>", "17 deep in each other"
    yield "place", "<algo><tb/></algo>", "line 1: <tb> is in the wrong place"
    yield "duplicate", good.replace('cnt="1"', 'cnt="1" cnt="1"'), "duplicate attribute"
    yield "entity", "<!DOCTYPE algo [<!ENTITY a 'b'>]>" + good, "has a document type"
    yield "encoding", b"<?xml version='1.0' encoding='foo'?><algo/>", "unknown encoding"
    yield "none", b"<algo/>", "has no ngpus"
    yield "bytes", b"\xff\xfe<\x00a", "."
    two_blocks = [block(0, [s], send=1), block(1, [s], send=1)]
    doubled = algo("allreduce", [gpu(0, two_blocks, i=1), gpu(1, [], i=1)], 1)
    yield "doubled", doubled, "GPU 0, thread block 1 sends to GPU 1 on channel 0, as thread block 0"


@pytest.mark.parametrize(
    ("text", "sentence"), [pytest.param(t, s, id=name) for name, t, s in refusals()]
)
def test_refusals_name_file_and_place(load, text, sentence) -> None:
    with pytest.raises(FormatError, match=sentence) as caught:
        load(text).verified()
    assert "algo.xml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_attributes_may_come_in_any_order_or_be_left_out(load) -> None:
    good = two([step(0, "rrcs")], [step(0, "s"), step(1, "r")])
    for old, new in (
        ('depid="-1" deps="-1" hasdep="0"', ""),
        ('s="0" type="rrcs"', 'type="rrcs" s="0" color="red"'),
        ('cnt="1" ', ""),
        ("<step", "<copy a='b'><deep/></copy><step"),
        ("<algo", "<?xml version='1.0'?>\n<!-- by hand -->\n<algo"),
    ):
        assert old in good
        load(good.replace(old, new)).verified()
    assert formats.FORMATS["msccl"].recognise(Path("x"), b"<?xml?>\n<!-- a -->\n<algo name=")
    assert not formats.FORMATS["msccl"].recognise(Path("x"), b"an <algo >")


def test_dependencies_prevent_races(load) -> None:
    text = (DATA / "ag_rd_8.xml").read_text()
    loose = text.replace('depid="0" deps="1"', 'depid="-1" deps="-1"')
    with pytest.raises(FormatError, match=r"which holds nothing then|nothing says which comes"):
        load(renumbered(re.sub("<step[^>]*nop[^>]*>", "", loose)))
    silent = text.replace('hasdep="1"', 'hasdep="0"')
    with pytest.raises(FormatError, match="no step from there on has hasdep=1"):
        load(silent)


def test_sums_from_scratch(load) -> None:
    text = one_step_all_reduce(5)
    msccl_machine.run(text)
    assert len(load(text).verified().transfers) == 5 * 4 * 2
    # Without the nops some sums come before what they add, or overwrite what is still to be sent.
    hasty = renumbered(re.sub("<step[^>]*nop[^>]*>", "", text))
    with pytest.raises(FormatError, match=r"scratch\[\d\].*(nothing says which|holds nothing)"):
        load(hasty)


def test_large_files_come_in(load) -> None:
    assert len(load(ring_all_reduce(24)).verified().transfers) == 24 * (2 * 23 + 22)
    assert len(load(all_pairs_all_to_all(40)).verified().transfers) == 40 * 40


BUFFERS = ["i", "o", "s"]
CHANGES = {
    "type": ["s", "r", "rcs", "rrs", "rrc", "rrcs", "re", "cpy", "nop"],
    "srcbuf": BUFFERS,
    "dstbuf": BUFFERS,
    **{key: range(-1, 9) for key in ("srcoff", "dstoff", "send", "recv", "depid", "deps")},
    **{key: range(3) for key in ("cnt", "hasdep", "chan", "inplace")},
    **{key: range(9) for key in ("i_chunks", "o_chunks", "s_chunks", "nchunksperloop", "s", "id")},
}


@st.composite
def mutants(draw):
    """A sample, or something small, with attributes changed, steps dropped or doubled."""
    text = draw(
        st.sampled_from([*((DATA / name).read_text() for name in SAMPLES), ring_all_reduce(3)])
    )
    for _ in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            key = draw(st.sampled_from(sorted(CHANGES)))
            found = list(re.finditer(rf' {key}="[^"]*"', text))
            spot = draw(st.sampled_from(found))
            new = f' {key}="{draw(st.sampled_from(CHANGES[key]))}"'
        else:
            spot = draw(st.sampled_from(list(re.finditer(r"<step[^>]*/>", text))))
            new = draw(st.sampled_from(["", spot.group() * 2]))
        text = text[: spot.start()] + new + text[spot.end() :]
    return renumbered(text) if draw(st.booleans()) else text


def renumbered(text):
    """Steps numbered by position again, so that a dropped step is not found by its number."""
    blocks = re.split(r"(<tb)", text)
    for i, part in enumerate(blocks):
        numbers = iter(range(1000))
        blocks[i] = re.sub(r'<step s="\d+"', lambda _: f'<step s="{next(numbers)}"', part)  # noqa: B023
    return "".join(blocks)


@examples(150)
@given(text=mutants(), seed=st.integers(0, 99))
def test_whatever_gets_through_really_works(tmp_path_factory, text, seed) -> None:
    path = tmp_path_factory.mktemp("mutant") / "m.xml"
    path.write_text(text)
    try:
        formats.read(path).verified()
    except WeftError as error:
        complaint = str(error)
    else:
        msccl_machine.run(text, seeds=[seed, seed + 1], slots=(1000,))
        return
    assert str(path) in complaint


@examples(100)
@given(
    name=st.sampled_from(SAMPLES),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 4)), max_size=3),
)
def test_damaged_bytes_are_refused_in_one_sentence(tmp_path_factory, name, cuts) -> None:
    data = (DATA / name).read_bytes()
    for where, new, old in cuts:
        at = int(where * len(data))
        data = data[:at] + new + data[at + old :]
    path = tmp_path_factory.mktemp("damage") / "m.xml"
    path.write_bytes(data)
    try:
        formats.read(path, kind="msccl").verified()
    except FormatError as error:
        complaint = str(error)
    else:
        return
    assert str(path) in complaint
    assert "\n" not in complaint


@examples(100)
@given(st.text(alphabet='<>/="algoputbsei 0-&;![]?', max_size=80) | st.binary(max_size=60))
def test_any_content_at_all(tmp_path_factory, content) -> None:
    path = tmp_path_factory.mktemp("any") / "m.xml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(FormatError):
        formats.read(path, kind="msccl")

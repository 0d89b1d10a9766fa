"""What is wrong with a program is said in one sentence, with the line that did it."""

from __future__ import annotations

import textwrap

import pytest

import weft
from weft.errors import InputError
from weft.language import program

ALL_REDUCE = 'p = program("all-reduce", "1KiB", ranks=4, in_place=True)'
ALL_GATHER = 'p = program("all-gather", "1KiB", group="8-11")'
ALL_TO_ALLV = "p = program(weft.all_to_allv(range(2), [[16, 32], [64, 16]]))"
REDUCE = 'p = program("reduce", "1KiB", ranks=3)'


def run(first: str, text: str) -> None:
    """Run a program whose first line is given, as if it were the file prog.py."""
    source = first + "\n" + textwrap.dedent(text)
    exec(compile(source, "prog.py", "exec"), {"program": program, "weft": weft})


CASES = {
    "empty": (
        ALL_GATHER,
        'p.chunk(1, "output", 2)',
        "prog.py:2: output[2] of rank 1 holds nothing yet",
    ),
    "empty scratch": (
        ALL_GATHER,
        'p.chunk(1, "scratch", 7)',
        "prog.py:2: scratch[7] of rank 1 holds nothing yet",
    ),
    "no such rank": (
        ALL_GATHER,
        'p.chunk(0).copy(4, "output", 0)',
        "prog.py:2: rank 4 is not in the group; ranks are 0 to 3",
    ),
    "no such slot": (
        ALL_REDUCE,
        "p.chunk(0, index=4)",
        "prog.py:2: input[4] is out of range: the input of rank 0 has slots 0 to 3",
    ),
    "run too long": (
        ALL_REDUCE,
        'p.chunk(0, "output", 2, count=3)',
        "prog.py:2: output[2:5] is out of range: the output of rank 0 has slots 0 to 3",
    ),
    "negative": (
        ALL_REDUCE,
        "p.chunk(0, index=-1)",
        "prog.py:2: input[-1] is out of range: the input of rank 0 has slots 0 to 3",
    ),
    "no slots": (
        REDUCE,
        'p.chunk(0).copy(1, "output")',
        "prog.py:2: output[0] is out of range: the output of rank 1 has no slots",
    ),
    "scratch": (
        ALL_REDUCE,
        'p.chunk(0).copy(1, "scratch", 1 << 40)',
        "prog.py:2: scratch[1099511627776] is out of range",
    ),
    "empty run": (
        ALL_REDUCE,
        "p.chunk(0, count=0)",
        "prog.py:2: a run has 1 chunk or more, not 0",
    ),
    "no buffer": (
        ALL_REDUCE,
        'p.chunk(0, "imput")',
        "prog.py:2: unknown buffer 'imput'; did you mean 'input'? (known: input, output, scratch)",
    ),
    "no number": (
        ALL_REDUCE,
        "p.chunk(0.5)",
        "prog.py:2: rank, index and count are whole numbers, not 0.5, 0 and 1",
    ),
    "stale": (
        ALL_REDUCE,
        """\
        one, two = p.chunk(1), p.chunk(2)
        p.chunk(0).copy(
            1)
        two.reduce(one)
        """,
        "prog.py:5: this reference to input[0] of rank 1 is stale: prog.py:3 wrote something else "
        "there; use the reference that operation gave, or ask for the chunk anew",
    ),
    "stale sum": (
        ALL_REDUCE,
        """\
        def add(to, chunk):
            to.reduce(chunk)
        one = p.chunk(1)
        for rank in (2, 3):
            add(one, p.chunk(rank))
        """,
        "prog.py:3: this reference to input[0] of rank 1 is stale: prog.py:3 wrote something else "
        "there; use the reference that operation gave, or ask for the chunk anew",
    ),
    "itself": (
        ALL_REDUCE,
        "p.chunk(1, index=2).copy(1)",
        "prog.py:2: input[2] of rank 1 is copied or added to itself",
    ),
    "itself in place": (
        ALL_REDUCE,
        'p.chunk(1, index=2).reduce(p.chunk(1, "output", 2))',
        "prog.py:2: output[2] of rank 1 is copied or added to itself",
    ),
    "overlap": (
        ALL_REDUCE,
        "p.chunk(1, count=2).copy(1, index=1)",
        "prog.py:2: input[0:2] of rank 1 and input[1:3] of rank 1 overlap",
    ),
    "different chunks": (
        ALL_REDUCE,
        "p.chunk(1, index=0, count=2).reduce(p.chunk(2, index=1, count=2))",
        "prog.py:2: input[1] of rank 2 holds chunk 1 and input[0] of rank 1 chunk 0: different "
        "chunks cannot be added",
    ),
    "no sum": (
        ALL_GATHER,
        'p.chunk(1).reduce(p.chunk(1).copy(2, "scratch"))',
        "prog.py:2: scratch[0] of rank 2 holds chunk 1, which is not summed",
    ),
    "twice": (
        ALL_REDUCE,
        """\
        part = p.chunk(1).reduce(p.chunk(2))
        p.chunk(2).reduce(part)
        """,
        "prog.py:3: input[0] of rank 1 and input[0] of rank 2 both contain the contribution of "
        "rank 2, which would count twice",
    ),
    "lengths": (
        ALL_REDUCE,
        "p.chunk(1, count=2).reduce(p.chunk(2))",
        "prog.py:2: input[0] of rank 2 and input[0:2] of rank 1 differ in length",
    ),
    "no chunk": (ALL_REDUCE, "p.chunk(1).reduce(2)", "prog.py:2: expected a chunk, not int"),
    "no chunk to wait for": (
        ALL_REDUCE,
        "p.chunk(1).copy(2, after=3)",
        "prog.py:2: expected a chunk, not int",
    ),
    "another program": (
        ALL_REDUCE,
        'program("all-reduce", "1KiB", ranks=4).chunk(0).reduce(p.chunk(1))',
        "prog.py:2: input[0] of rank 1 belongs to another program",
    ),
    "no room": (
        ALL_TO_ALLV,
        'p.chunk(1, index=0).copy(0, "output", 0)',
        "prog.py:2: input[0] of rank 1 has 64 B, which do not fit in the 16 B of output[0] of "
        "rank 0",
    ),
    "ended": (
        'with program("reduce", "1KiB", ranks=1) as p: pass',
        'p.chunk(0).copy(0, "output")',
        "prog.py:2: the program has ended: nothing can be added after its with block or "
        "algorithm()",
    ),
    "nothing done": (
        ALL_GATHER,
        "p.algorithm()",
        "prog.py:1: output[0] of rank 1 is wrong at the end: NPU 9 never receives chunk 0",
    ),
    "contribution missing": (
        REDUCE,
        """\
        total = p.chunk(0).reduce(p.chunk(2))
        total.copy(0, "output")
        p.algorithm()
        """,
        "prog.py:3: output[0] of rank 0 is wrong at the end: NPU 0 ends chunk 0 without the "
        "contribution of NPU 1",
    ),
    "left in the input": (
        REDUCE,
        "p.chunk(0).reduce(p.chunk(2))\np.algorithm()",
        "prog.py:2: output[0] of rank 0 is wrong at the end: NPU 0 ends chunk 0 without the "
        "contribution of NPU 1",
    ),
    "wrong place": (
        ALL_GATHER,
        """\
        for r in range(4):
            for s in range(4):
                p.chunk(r).copy(s, "output", s)
        p.algorithm()
        """,
        "prog.py:4: output[0] of rank 0 is wrong at the end: NPU 8 ends with chunk 3 where chunk 0 "
        "belongs",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_programs(case: str) -> None:
    first, text, sentence = CASES[case]
    with pytest.raises(InputError) as error:
        run(first, text)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"collective": "all-reduce", "ranks": 4}, "all-reduce needs a size, such as 64MiB"),
        ({"collective": "all-reduce", "size": 64}, "give either ranks, such as 8, or group"),
        (
            {"collective": "all-reduce", "size": 64, "ranks": 4, "group": "0-3"},
            "give either ranks, such as 8, or group, such as 0-56:8",
        ),
        ({"collective": "all-reduce", "size": 64, "ranks": 0}, "0 ranks; expected 1 to"),
        ({"collective": "all-reduce", "size": 64, "ranks": 1 << 40}, "1099511627776 ranks; expe"),
        ({"collective": "all-reduce", "size": 64, "group": "0-3,1"}, "names NPU 1 twice"),
        ({"collective": "all-redcue", "size": 64, "ranks": 4}, "did you mean 'all-reduce'"),
        ({"collective": "all-reduce", "size": 64, "ranks": 4, "root": 1}, "has no root"),
        ({"collective": "all-reduce", "size": "many", "ranks": 4}, "size 'many' is not a number"),
        (
            {"collective": "all-reduce", "size": 64, "ranks": 8},
            "all-reduce: 64 B cannot be cut in 8 chunks at multiples of 16 B",
        ),
        (
            {"collective": "permutation", "size": 64, "ranks": 8},
            r"permutation needs to know what moves: give weft.permutation\(...\), not the name",
        ),
        (
            {"collective": weft.permutation([0, 1], 64, [1, 0]), "ranks": 2},
            "a collective has its size, group, chunks and root; give no others",
        ),
        (
            {"collective": weft.permutation([0, 1 << 30], 64, [1, 0])},
            "NPUs of a program are 0 to 131071, not 1073741824",
        ),
        (
            {"collective": weft.all_to_allv([0, 1], [[0, 16], [64, 0]]), "in_place": True},
            "all-to-allv: what a rank has at the start and what it has at the end differ in size",
        ),
    ],
)
def test_wrong_beginnings(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        program(**arguments)

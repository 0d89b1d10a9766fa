"""Texts of others in what Weft says."""

from __future__ import annotations

import pytest

from weft.documents import PlacedError, load_json, read_document
from weft.errors import FormatError, InputError, WeftError, unknown_name
from weft.quoting import MOST_QUOTED, brief, quoted, sentence, visible
from weft.units import parse_bandwidth, parse_latency, parse_size

# Escape, bell, C1, delete, line ends, bidirectional, no width, half of a pair.
OBEYED = "\x1b\a\x9b\x7f\r\n\u2028\u202e\u2066\u200b\ufeff\udc80"


@pytest.mark.parametrize("character", OBEYED)
def test_what_a_terminal_would_obey_becomes_an_escape(character: str) -> None:
    shown = visible(f"a{character}b")
    assert shown.isprintable()
    assert shown.isascii()
    assert shown.encode().decode("unicode_escape") == f"a{character}b"


def test_what_can_be_read_stays() -> None:
    assert visible("µs, α → 光 'x' \\n") == "µs, α → 光 'x' \\n"


def test_quotes_are_short() -> None:
    assert quoted("a" * MOST_QUOTED) == "'" + "a" * MOST_QUOTED + "'"
    assert quoted("a" * (MOST_QUOTED + 1)) == "'" + "a" * (MOST_QUOTED - 3) + "...'"
    assert brief(17) == "17"


def test_a_long_message_keeps_both_ends() -> None:
    assert sentence("x" * 2000) == "x" * 2000
    said = sentence("begin" + "x" * 10**6 + "end")
    assert said.startswith("begin")
    assert said.endswith("end")
    assert len(said) < 2010


def test_every_error_is_one_line_of_some_length() -> None:
    error = str(InputError(f"{OBEYED}: {'x' * 10**6} is wrong"))
    assert error.isprintable()
    assert error.endswith(" is wrong")
    assert len(error) < 2500


@pytest.mark.parametrize("parse", [parse_size, parse_bandwidth, parse_latency])
@pytest.mark.parametrize("text", ["x" * 10**6, "1" + "x" * 10**6, "0." + "1" * 50 + "x" * 500])
def test_what_is_wrong_is_quoted_in_part(parse, text: str) -> None:
    with pytest.raises(WeftError) as caught:
        parse(text)
    assert len(str(caught.value)) < 300


def test_an_unknown_name_of_any_length() -> None:
    assert len(str(unknown_name("thing", "x" * 10**7, ["a", "b"]))) < 200


def test_a_key_of_any_length(tmp_path) -> None:
    from weft.topology import load_topology

    for name, text in {
        "a.json": '{"%s": 1}' % ("k" * 10**6),
        "b.json": '{"weft": 1, "%s": 1}' % ("k" * 10**6),
        "a.yaml": "weft: 1\n" + "k" * 1000 + ": 1\n",
    }.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(FormatError) as caught:
            load_topology(str(tmp_path / name))
        assert len(str(caught.value)) < 400


def test_a_placed_message_has_no_lines(tmp_path) -> None:
    def build(document):
        load_json(document.data)
        raise PlacedError(f"name {OBEYED}")

    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(FormatError) as caught:
        read_document(tmp_path / "a.json", "test", build)
    assert str(caught.value).isprintable()

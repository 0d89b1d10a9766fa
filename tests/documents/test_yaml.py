"""YAML: plain values as people mean them, in time by the length of the text."""

from __future__ import annotations

import pytest
import yaml

from weft.documents import PlacedError, load_yaml, read_document
from weft.errors import FormatError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10:30", "10:30"),  # no number in base 60
        ("-1:2.5", "-1:2.5"),
        ("1:" * 300_000 + "1", "1:" * 300_000 + "1"),
        ("2024-02-31", "2024-02-31"),  # no date
        ("=", "="),
        ("1e5", 1e5),  # as in YAML 1.2, and so are the next five
        ("-17", -17),
        ("017", 17),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("0b101", "0b101"),
        ("-3.5e+3", -3500.0),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("'12'", "12"),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
    ],
)
def test_plain_values(text: str, value: object) -> None:
    assert load_yaml(text) == value


@pytest.mark.parametrize("text", ["1", "-1.5", "true", "no", "null", "n", "x", "1.", "1.5e+3"])
def test_other_words_mean_what_yaml_says(text: str) -> None:
    assert load_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("9" * 100, "is no number of up to 99 digits"),
        ("9" * 5000, "is no number of up to 99 digits"),
        ("9" * 200 + ".5", "is no number of up to 99 digits"),
        ("!!int '1:1'", "tags such as tag:yaml.org,2002:int have no place here"),
        ("!!float ''", "tags such as"),
        ("!!timestamp x", "tags such as"),
        ("!!bool x", "tags such as"),
        ("!" + "x" * 5000 + " 1", "tags such as"),
        ("{1: 2}", "a key is of type int; expected text"),
        ("{no: 2}", "a key is of type bool; expected text"),
        ("{[a]: 2}", "a key is of type seq; expected text"),
        ("{c: 1, d: 2, c: 3}", "the key 'c' is there twice"),
    ],
)
def test_what_is_refused_is_named_with_its_line(value: str, message: str, tmp_path) -> None:
    with pytest.raises(PlacedError, match=message) as caught:
        load_yaml(f"a: 1\nb: {value}\n")
    assert caught.value.line == 2
    (tmp_path / "a.yaml").write_text(f"a: 1\nb: {value}\n")
    with pytest.raises(FormatError, match=f"a.yaml line 2: .*{message}") as refused:
        read_document(tmp_path / "a.yaml", "test", lambda document: document.plain())
    assert len(str(refused.value)) < 500


def test_a_number_of_99_digits_is_one() -> None:
    assert load_yaml("9" * 99) == 10**99 - 1

"""The numbers of an MSCCL-XML file, before any of it is believed."""

from __future__ import annotations

import pytest
from tests.formats.msccl_samples import algo, block, gpu, step

from weft.errors import FormatError
from weft.formats.msccl import document
from weft.formats.msccl.document import LARGEST, _whole, read_document


@pytest.mark.parametrize(
    ("text", "digits", "value"),
    [
        ("0", 10, 0),
        ("-0", 10, 0),
        ("9" * 10, 10, 10**10 - 1),
        ("-" + "9" * 10, 10, 1 - 10**10),
        ("9" * 11, 10, None),
        ("-" + "9" * 11, 10, None),
        ("0" * 9 + "7", 10, 7),
        ("0" * 10 + "7", 10, None),
        ("9" * 19, 19, 10**19 - 1),
        ("9" * 20, 19, None),
        *((text, 10, None) for text in ("", "-", "--1", "+1", " 1", "1 ", "1_0", "٣", "²", "x")),
    ],
)
def test_whole_numbers_have_some_digits(text: str, digits: int, value: int | None) -> None:
    assert _whole(text, digits) == value


def read(tmp_path, count="1", **attributes):
    more = "".join(f' {name}="{value}"' for name, value in attributes.items())
    steps = [step(0, "nop"), step(1, "cpy", "i0", "i1", cnt=count), "<step type='nop'/>"]
    text = algo("custom", [gpu(0, [block(0, steps)], i=2)], 1, more=more)
    (tmp_path / "a.xml").write_text(text)
    return read_document(tmp_path / "a.xml")


def test_numbers_of_the_algorithm(tmp_path) -> None:
    found = read(tmp_path, maxBytes="9" * 19, minBytes="9" * 20, other="-1")
    assert found.number("maxBytes") == 10**19 - 1
    assert found.number("none", 5) == 5
    for name in ("minBytes", "other"):
        with pytest.raises(FormatError, match=f"has {name}=.*; expected a whole number from 0 on"):
            found.number(name)
    with pytest.raises(FormatError, match="has no none"):
        found.number("none")


@pytest.mark.parametrize("count", [LARGEST, -LARGEST])
def test_numbers_of_steps_have_31_bits(count: int, tmp_path) -> None:
    assert read(tmp_path, str(count)).steps.count[1] == count
    more = count + (1 if count > 0 else -1)
    with pytest.raises(FormatError, match=f"line 5: <step> has cnt='{more}'; expected a whole"):
        read(tmp_path, str(more))


def test_a_file_may_have_as_many_bytes_as_are_allowed(tmp_path, monkeypatch) -> None:
    size = read(tmp_path).size
    monkeypatch.setattr(document, "MAX_BYTES", size)
    assert read(tmp_path).size == size
    monkeypatch.setattr(document, "MAX_BYTES", size - 1)
    with pytest.raises(FormatError, match="is larger than"):
        read(tmp_path)

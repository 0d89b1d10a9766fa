"""Every example, damaged in many ways: a network or one sentence, whatever reader it is for."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.topology.machines.reading import EXAMPLES, GB
from weft.documents import read_document
from weft.errors import InputError
from weft.topology import Topology, parse_topology
from weft.topology.files import read_machine, read_topology, write_topology
from weft.topology.labels import Wishes
from weft.topology.machines import READERS, network_of

WISHES = (
    Wishes(),
    Wishes(nvlink_rate=25 * GB),
    Wishes(nvlink=18, nvlink_rate=25 * GB),
)
"""What some file needs that says less than others."""
FILES = sorted(path for path in EXAMPLES.iterdir() if path.is_file())
NUMBERS = ("0", "-1", "9" * 18, "9" * 400, "1e308", "nan", "0x0", "4294967296", "")
CASES = 60
"""Of each kind of damage to each file, at most."""


def outcome(path: Path) -> Topology | str:
    """The network, with rates for all links that have none; or the sentence that refuses it."""
    reasons = []
    for wishes in WISHES:
        try:
            machine = read_machine(path, wishes)
            if machine is None:
                return read_topology(path)
            kinds = {cable.kind for cable in machine.cables if cable.rate is None}
            return network_of(machine, Wishes(bandwidth=dict.fromkeys(kinds, 50 * GB)))
        except InputError as error:
            reasons.append(str(error))
    return reasons[0]


def check(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    found = outcome(path)
    if isinstance(found, str):
        assert found
        assert "\n" not in found
        assert len(found) < 1000, found
        assert path.name in found or path.stem in found
    else:
        assert found.npus > 0


def test_examples_are_there() -> None:
    assert FILES


def claimants(path: Path) -> list[str]:
    """The readers that take a file for theirs."""
    return read_document(
        path,
        "topology",
        lambda document: [one.name for one in READERS.values() if one.recognise(document)],
    )


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_one_reader_claims_it(file: Path) -> None:
    assert len(claimants(file)) == 1


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize("spec", ["h100:2", "ring:4"])
def test_none_claims_a_network(tmp_path: Path, suffix: str, spec: str) -> None:
    path = tmp_path / f"net.{suffix}"
    write_topology(parse_topology(spec), path)
    assert claimants(path) == []
    path.write_text("topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 100 ]\nlatency: [ 2 ]\n")
    assert claimants(path) == []


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_whole(file: Path) -> None:
    found = outcome(file)
    assert isinstance(found, Topology), found
    assert found.links


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_cut_short(file: Path, tmp_path: Path) -> None:
    """At every line, and in the middle of it; without it."""
    lines = file.read_bytes().splitlines(keepends=True)
    for i in some(range(len(lines)), file):
        before = b"".join(lines[:i])
        check(tmp_path / file.name, before)
        check(tmp_path / file.name, before + lines[i][: len(lines[i]) // 2])
        check(tmp_path / file.name, before + b"".join(lines[i + 1 :]))
        check(tmp_path / file.name, before + lines[i] + b"".join(lines[i:]))


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_other_bytes(file: Path, tmp_path: Path) -> None:
    data, chance = file.read_bytes(), random.Random(file.name)
    for _ in range(CASES):
        at, size = chance.randrange(len(data)), chance.choice([1, 1, 1, 8])
        other = bytes(chance.choice(b'\x00\t\n "#<>[]{}()=:,-/0123xX\xff') for _ in range(size))
        check(tmp_path / file.name, data[:at] + other + data[at + chance.choice([0, size]) :])


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_other_numbers(file: Path, tmp_path: Path) -> None:
    text, chance = file.read_text(), random.Random(file.name)
    for match in some(list(re.finditer(r"[0-9]+", text)), file):
        number = chance.choice(NUMBERS)
        changed = text[: match.start()] + number + text[match.end() :]
        check(tmp_path / file.name, changed.encode())


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_words_elsewhere(file: Path, tmp_path: Path) -> None:
    """Two words that have changed places."""
    text, chance = file.read_text(), random.Random(file.name)
    words = list(re.finditer(r"[\w:.]+", text))
    for _ in range(CASES):
        a, b = sorted(chance.sample(words, 2), key=re.Match.start)
        changed = text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]
        check(tmp_path / file.name, changed.encode())


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_bombs(file: Path, tmp_path: Path) -> None:
    """Much of what there is: time and memory follow the size of the file."""
    data = file.read_bytes()
    for bomb in bombs(data):
        check(tmp_path / file.name, bomb)


def bombs(data: bytes) -> Iterator[bytes]:
    lines = data.splitlines(keepends=True)
    middle = len(lines) // 2
    longest = max(lines, key=len)
    yield data * 200
    yield b"".join([*lines[:middle], longest * 20_000, *lines[middle:]])
    yield b"".join([*lines[:middle], longest.rstrip(b"\n") * 5_000, *lines[middle:]])
    for opening in (b"[", b"{", b"<a>", b"("):
        yield b"".join([*lines[:middle], opening * 100_000, *lines[middle:]])
    yield b"".join([*lines[:middle], b"1" * 1_000_000, *lines[middle:]])
    root = re.search(rb"<([A-Za-z]\w*)", data)
    if data.lstrip().startswith(b"<") and root:
        grown = b"".join(b'<!ENTITY a%d "%s">' % (i + 1, b"&a%d;" % i * 10) for i in range(30))
        entities = b'<!DOCTYPE %s [<!ENTITY a0 "lol">%s]>' % (root[1], grown)
        body = re.sub(rb"<[?!][^>]*>", b"", data).replace(b">", b">&a30;", 1)
        yield entities + body
        inner, end = data.index(b">", root.start()) + 1, data.rindex(b"</")
        yield data[:inner] + data[inner:end] * 500 + data[end:]


def some(items: range | list[re.Match[str]], file: Path) -> list:  # type: ignore[type-arg]
    """At most `CASES` of these."""
    few = min(CASES, len(items))
    return sorted(
        random.Random(file.name).sample(items, few),
        key=lambda item: item if isinstance(item, int) else item.start(),
    )


@pytest.mark.parametrize("piece", ["\n", " ", "=", "]==(", '" ( )'])
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_one_piece_again_and_again(file: Path, piece: str, tmp_path: Path) -> None:
    """In the middle of the longest line: what is looked for is not looked for from each place."""
    lines = file.read_text().splitlines(keepends=True)
    longest = max(lines, key=len)
    at = lines.index(longest)
    for middle in (len(longest) // 2, longest.find("[") + 1):
        long = longest[:middle] + piece * (30_000 // len(piece)) + longest[middle:]
        check(tmp_path / file.name, "".join([*lines[:at], long, *lines[at + 1 :]]).encode())

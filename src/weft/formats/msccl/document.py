"""An MSCCL-XML file as flat columns: what is written there, before any of it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from weft.algorithm import Buffer
from weft.documents import read_bytes
from weft.errors import FormatError
from weft.quoting import brief, quoted
from weft.ragged import offsets_of, owners, positions, ranges

Int64 = NDArray[np.int64]

MAX_BYTES = 256 << 20
MAX_ELEMENTS = 1 << 22
MAX_DEPTH = 16
LARGEST = (1 << 31) - 1
BATCH = 1 << 15  # steps whose texts are kept before they become numbers


# What a step does; the names are those of the format.
Type = IntEnum("Type", ["S", "R", "RCS", "RRS", "RRC", "RRCS", "CPY", "RE", "NOP"], start=0)
TYPES = {kind.name.lower(): int(kind) for kind in Type}
BUFFERS = {"i": int(Buffer.INPUT), "o": int(Buffer.OUTPUT), "s": int(Buffer.SCRATCH)}
WORDS = {"type": TYPES, "srcbuf": BUFFERS, "dstbuf": BUFFERS}
OPTIONAL = ("s", "srcbuf", "srcoff", "dstbuf", "dstoff", "hasdep")
UNSAID = -2  # an optional attribute that is not there

_STEP = ["s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"]
_DEFAULTS = {"cnt": "1", "depid": "-1", "deps": "-1"}
_GPU = ["id", "i_chunks", "o_chunks", "s_chunks"]
_BLOCK = ["id", "send", "recv", "chan"]


@dataclass(frozen=True, eq=False)
class Gpus:
    """The GPUs: index is number (all int64)."""

    inputs: Int64
    outputs: Int64
    scratch: Int64

    def __len__(self) -> int:
        return len(self.inputs)

    def length(self, buffer: int) -> Int64:
        """How many chunks each GPU's buffer has."""
        return (self.inputs, self.outputs, self.scratch)[buffer - int(Buffer.INPUT)]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The thread blocks, by GPU and number (all int64); `first` is each one's first step."""

    gpu: Int64
    number: Int64
    send: Int64
    receive: Int64
    channel: Int64
    first: Int64

    def __len__(self) -> int:
        return len(self.gpu)


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps, block by block (all int64); `has_dep` and buffers may be UNSAID."""

    block: Int64
    number: Int64
    type: Int64
    src_buffer: Int64
    src: Int64
    dst_buffer: Int64
    dst: Int64
    count: Int64
    dep_block: Int64
    dep_step: Int64
    has_dep: Int64
    line: Int64

    def __len__(self) -> int:
        return len(self.block)


@dataclass(frozen=True, eq=False)
class Document:
    """A file's content: attributes of the algorithm, GPUs, thread blocks and steps."""

    path: Path
    size: int  # bytes of the file
    algo: Mapping[str, str]
    gpus: Gpus
    blocks: Blocks
    steps: Steps

    def place(self, step: int | np.int64) -> str:
        """Where a step is, in words."""
        block = self.steps.block[step]
        position = step - self.blocks.first[block]
        return f"{self.block_place(block)}, step {position} (line {self.steps.line[step]})"

    def block_place(self, block: int | np.int64) -> str:
        return f"GPU {self.blocks.gpu[block]}, thread block {self.blocks.number[block]}"

    def fail(self, *words: str) -> NoReturn:
        """Refuse the file: a place and what is wrong there, or a whole sentence."""
        raise FormatError(f"{self.path}: {' '.join(words)}")

    def fail_at(self, step: int | np.int64, what: str) -> NoReturn:
        self.fail(self.place(step), what)

    def number(self, name: str, default: int | None = None) -> int:
        """An attribute of the algorithm that is a whole number from 0 on."""
        text = self.algo.get(name)
        if text is None:
            if default is None:
                self.fail("<algo>", f"has no {name}")
            return default
        value = _whole(text, 19)
        if value is None or value < 0:
            self.fail("<algo>", f"has {name}={quoted(text)}; expected a whole number from 0 on")
        return value


def read_document(path: Path) -> Document:
    """Read a file; nothing is checked but that it has the elements and their numbers."""
    return _Reader(path).read(read_bytes(path, "MSCCL-XML", MAX_BYTES))


def _whole(text: str, digits: int = 10) -> int | None:
    """The whole number a text is, if it is one of a size that makes sense."""
    bare = text.removeprefix("-")
    if not (bare.isascii() and bare.isdigit() and len(bare) <= digits):
        return None
    return int(text)


class _Table:
    """The attributes of all elements of one name, as columns of numbers."""

    def __init__(self, path: Path, name: str, keys: list[str], defaults: dict[str, str]) -> None:
        self.path, self.name, self.keys, self.defaults = path, name, keys, defaults
        self.texts: list[str] = []
        self.lines: list[int] = []
        self.batches: list[Int64] = []
        self.flushed = 0

    def __len__(self) -> int:
        return self.flushed + len(self.lines)

    def add(self, attributes: list[str], line: int) -> None:
        if attributes[::2] == self.keys:  # as all tools write it: straight to the columns
            self.texts += attributes[1::2]
        else:
            said = dict(zip(attributes[::2], attributes[1::2], strict=True))
            self.texts += [said.get(key, self.defaults.get(key, "")) for key in self.keys]
        self.lines.append(line)
        if len(self.lines) == BATCH:
            self.flush()

    def flush(self) -> None:
        """The texts of the last elements become numbers."""
        columns = [self._column(i, key) for i, key in enumerate(self.keys)]
        self.batches.append(np.stack([*columns, np.array(self.lines, dtype=np.int64)]))
        self.flushed += len(self.lines)
        self.texts.clear()
        self.lines.clear()

    def columns(self) -> Int64:
        """A row a key, then the lines."""
        self.flush()
        return np.concatenate(self.batches, axis=1)

    def _column(self, index: int, key: str) -> Int64:
        texts = self.texts[index :: len(self.keys)]
        words = WORDS.get(key)
        try:
            if words is not None:
                return np.array([words[text] for text in texts], dtype=np.int64)
            joined = "".join(texts).replace("-", "")
            if joined.isascii() and (joined.isdigit() or not joined):
                values = np.array(list(map(int, texts)), dtype=np.int64)
                if not len(values) or np.abs(values).max() <= LARGEST:
                    return values
        except (KeyError, ValueError, OverflowError):
            pass
        return self._odd_column(texts, key, words)

    def _odd_column(self, texts: list[str], key: str, words: dict[str, int] | None) -> Int64:
        """A column with texts that are absent or wrong, one by one."""
        values = []
        for text, line in zip(texts, self.lines, strict=True):
            value = words.get(text) if words is not None else _whole(text)
            if text == "" and key in OPTIONAL:
                value = UNSAID
            if value is None or abs(value) > LARGEST:
                raise FormatError(f"{self.path} line {line}: {self._complaint(key, text, words)}")
            values.append(value)
        return np.array(values, dtype=np.int64)

    def _complaint(self, key: str, text: str, words: dict[str, int] | None) -> str:
        if text == "":
            return f"<{self.name}> has no {key}"
        if key == "type" and text == "ra":
            return "<step> has type 'ra', which adds residuals that are no part of the collective"
        expected = ", ".join(words) if words is not None else "a whole number"
        return f"<{self.name}> has {key}={quoted(text)}; expected {expected}"


class _Reader:
    """Takes the events of the parser."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.algo: dict[str, str] | None = None
        self.gpus = _Table(path, "gpu", _GPU, {})
        self.blocks = _Table(path, "tb", _BLOCK, {})
        self.steps = _Table(path, "step", _STEP, _DEFAULTS)
        self.gpu_of: list[int] = []
        self.first_step: list[int] = []
        self.size = self.depth = self.elements = 0
        self.ignored = 0  # depth of the ignored element that we are in
        self.parser = expat.ParserCreate()
        self.parser.ordered_attributes = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.parser.EntityDeclHandler = self.doctype

    def read(self, data: bytes) -> Document:
        self.size = len(data)
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            reason = expat.errors.messages.get(error.code, "not well-formed")
            raise FormatError(f"{self.path} line {error.lineno}: {reason}") from None
        except (LookupError, ValueError) as error:  # an encoding that nobody knows
            raise FormatError(f"{self.path}: {error}") from None
        assert self.algo is not None
        return self.document(self.algo)

    def fail(self, sentence: str, line: np.int64 | None = None) -> NoReturn:
        where = self.parser.CurrentLineNumber if line is None else line
        raise FormatError(f"{self.path} line {where}: {sentence}")

    def doctype(self, *_: object) -> NoReturn:
        self.fail("it has a document type; an algorithm needs none")

    def start(self, name: str, attributes: list[str]) -> None:
        depth = self.depth = self.depth + 1
        self.elements += 1
        if depth == 4 and name == "step" and not self.ignored:
            self.steps.add(attributes, self.parser.CurrentLineNumber)
            return
        self.check_bounds()
        if self.ignored:
            return
        if depth == 3 and name == "tb":
            self.gpu_of.append(len(self.gpus) - 1)
            self.first_step.append(len(self.steps))
            self.blocks.add(attributes, self.parser.CurrentLineNumber)
        elif depth == 2 and name == "gpu":
            self.gpus.add(attributes, self.parser.CurrentLineNumber)
        elif depth == 1 and name == "algo":
            self.algo = dict(zip(attributes[::2], attributes[1::2], strict=True))
        elif depth == 1:
            self.fail(f"the document is a <{brief(name)}>, not an <algo>")
        elif name in ("algo", "gpu", "tb", "step"):
            self.fail(f"<{name}> is in the wrong place")
        else:
            self.ignored = depth

    def end(self, _name: str) -> None:
        if self.ignored == self.depth:
            self.ignored = 0
        self.depth -= 1

    def check_bounds(self) -> None:
        if self.elements > MAX_ELEMENTS:
            self.fail(f"there are more than {MAX_ELEMENTS} elements; no runtime loads that")
        if self.depth > MAX_DEPTH:
            self.fail(f"elements lie {self.depth} deep in each other; 4 are enough")

    def document(self, algo: dict[str, str]) -> Document:
        """The columns, with GPUs and blocks in the order of their numbers."""
        gpus, blocks = self.gpus.columns(), self.blocks.columns()
        order = self.ordered(np.zeros(gpus.shape[1], dtype=np.int64), gpus, "GPU")
        _, inputs, outputs, scratch, _ = gpus[:, order]
        gpu = np.argsort(order)[np.array(self.gpu_of, dtype=np.int64)]
        by = self.ordered(gpu, blocks, "thread block of GPU {} with number")
        number, send, receive, channel, _ = blocks[:, by]
        first = np.array(self.first_step, dtype=np.int64)
        counts = np.diff(first, append=len(self.steps))[by]
        steps = self.steps.columns()[:, ranges(first[by], counts)]
        return Document(
            self.path,
            self.size,
            algo,
            Gpus(inputs, outputs, scratch),
            Blocks(gpu[by], number, send, receive, channel, offsets_of(counts)[:-1]),
            Steps(owners(counts), *steps),
        )

    def ordered(self, owner: Int64, table: Int64, what: str) -> Int64:
        """The order by owner and number; the numbers of each must be 0, 1, 2, ..., each once."""
        order = np.lexsort((table[0], owner))
        starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        expected = positions(np.diff(starts, append=len(order)))
        for at in np.flatnonzero(table[0][order] != expected)[:1]:
            name, number, there = what.format(owner[order[at]]), expected[at], table[0][order[at]]
            sentence = (
                f"there is no {name} {number}, but {name} {there}; they are numbered from 0 on"
            )
            if there == number - 1:
                sentence = f"{name} {there} is there twice"
            self.fail(sentence, table[-1][order[at]])
        return order

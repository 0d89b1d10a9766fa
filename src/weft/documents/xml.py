"""XML files that people and tools write: elements with their lines, read within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from weft.documents.places import PlacedError
from weft.quoting import brief

MAX_ELEMENTS = 1 << 20
MAX_DEPTH = 64


@dataclass
class Element:
    """One element: its attributes, and the elements in it. Text between them is not kept.

    Attributes
    ----------
    text
        What stands right in it; kept for elements without others in them only.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def named(self, *tags: str) -> list[Element]:
        """The children of these tags."""
        return [child for child in self.children if child.tag in tags]

    def all(self, *tags: str) -> Iterator[Element]:
        """It and all below it that have one of these tags, in the order of the file."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            if one.tag in tags:
                yield one
            waiting.extend(reversed(one.children))

    def fail(self, sentence: str) -> NoReturn:
        raise PlacedError(sentence, line=self.line)


class _Reader:
    """Takes the parser's events."""

    def __init__(self, *, doctype: bool) -> None:
        self.root: Element | None = None
        self.open: list[Element] = []
        self.said: list[str] = []
        self.elements = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.words
        self.parser.EntityDeclHandler = self.entity
        if not doctype:
            self.parser.StartDoctypeDeclHandler = self.entity

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        line = self.parser.CurrentLineNumber
        if self.elements > MAX_ELEMENTS:
            raise PlacedError(f"there are more than {MAX_ELEMENTS} elements", line=line)
        if len(self.open) >= MAX_DEPTH:
            raise PlacedError(f"elements lie more than {MAX_DEPTH} deep in each other", line=line)
        element = Element(tag, attributes, line)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.said.clear()

    def end(self, _tag: str) -> None:
        element = self.open.pop()
        if not element.children:
            element.text = "".join(self.said)
        self.said.clear()

    def words(self, text: str) -> None:
        if self.open and not self.open[-1].children:
            self.said.append(text)

    def entity(self, name: str, *_: object) -> NoReturn:
        raise PlacedError(
            f"declares {brief(name)}: a document type or an entity has no place here",
            line=self.parser.CurrentLineNumber,
        )


def load_xml(data: bytes, *, doctype: bool = False) -> Element:
    """The outermost element of a file.

    Parameters
    ----------
    doctype
        Whether the file may name its document type, which is not read; it never declares entities.
    """
    reader = _Reader(doctype=doctype)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "not well-formed")
        raise PlacedError(f"not valid XML: {reason}", line=error.lineno) from None
    except (LookupError, ValueError) as error:  # an encoding that nobody knows
        raise PlacedError(f"not valid XML: {error}") from None
    if reader.root is None:
        raise PlacedError("not valid XML: it has no element")
    return reader.root

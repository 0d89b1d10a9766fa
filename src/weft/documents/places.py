"""Where in a YAML or JSON text something stands, and YAML read within bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from weft.errors import InputError
from weft.quoting import brief, quoted

MAX_DEPTH = 32
"""Files of Weft nest a few deep; libyaml overruns the stack on some thousands."""
MAX_LOCATED_BYTES = 16 << 20
"""Composing a larger text only to name a line takes too long."""

MAX_DIGITS = 99
"""More say nothing, and make messages long."""

Path = Sequence[str | int]

_SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
# What a word without quotes is if it is no text, by the characters it may begin with. Numbers as in
# YAML 1.2, which most tools read, in base 10 only; the truth values of YAML 1.1 too; no dates, no
# merges.
_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (
        r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        list("yYnNtTfFoO"),
    ),
    "int": (r"[-+]?[0-9]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
}


class _Loader(_SAFE_LOADER):  # type: ignore[misc]  # a class of one of two modules
    """Makes plain values of YAML."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own

    def number(self, node: Any) -> Any:
        """A whole number or another."""
        if len(node.value) <= MAX_DIGITS:
            # PyYAML's own would read a 0 at the beginning as base 8.
            is_whole = node.tag == f"{_TAG}int"
            return int(node.value) if is_whole else self.construct_yaml_float(node)
        problem = f"{quoted(node.value)} is no number of up to {MAX_DIGITS} digits"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Keys differ, and are text: numbers can be chosen so that a table of them is slow."""
        seen = set()
        for key, _ in node.value:
            problem = ""
            if key.tag != f"{_TAG}str":
                problem = f"a key is of type {key.tag.removeprefix(_TAG)}; expected text"
            elif key.value in seen:
                problem = f"the key {quoted(key.value)} is there twice"
            if problem:
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _name, (_pattern, _first) in _PLAIN.items():
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"(?:{_pattern})\Z"), _first)
for _name in ("int", "float"):
    _Loader.add_constructor(f"{_TAG}{_name}", _Loader.number)


class PlacedError(Exception):
    """Something wrong in a file, at a place in its tree (``("links", 3)``) or on a line."""

    def __init__(self, message: str, path: Path = (), line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


@contextmanager
def placed(name: str, path: Path) -> Iterator[None]:
    """What is wrong with the input in here is wrong with what stands at this place of a file.

    The complaint begins with `name`, unless that is empty.
    """
    try:
        yield
    except InputError as error:
        raise PlacedError(f"{name}: {error}" if name else str(error), path) from None


def load_yaml(text: str) -> Any:
    """The plain values of a YAML text without aliases, tags or deep nesting."""
    try:
        _check_bounds(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be parsed"
        # A text that ends too early fails on the line after its last.
        line = min(mark.line, text.count("\n")) + 1 if mark else None
        raise PlacedError(f"not valid YAML: {problem}", line=line) from None
    except yaml.YAMLError as error:
        raise PlacedError(f"not valid YAML: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise PlacedError(f"not valid YAML: {error}") from None


def _check_bounds(text: str) -> None:
    """Refuse what makes a small text large or deep, before any tree is built of it."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else None
        if isinstance(event, yaml.AliasEvent):
            anchor = brief(event.anchor)
            raise PlacedError(f"aliases such as *{anchor} have no place here", line=line)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise PlacedError(f"tags such as {brief(tag)} have no place here", line=line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise PlacedError(f"nests deeper than {MAX_DEPTH} levels", line=line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def line_of(text: str, path: Path) -> int | None:
    """The line (from 1) where the item at `path` starts, or the nearest item around it.

    JSON is close enough to YAML for this. None when the text is too large or cannot be
    composed.
    """
    if len(text) > MAX_LOCATED_BYTES or not path:
        return None
    try:
        _check_bounds(text)
        node = yaml.compose(text, Loader=_Loader)
    except (PlacedError, yaml.YAMLError):
        return None
    line: int | None = None
    for step in path:
        found = _child(node, step)
        if found is None:
            break
        node, line = found
    return line


def _child(node: Any, step: str | int) -> tuple[Any, int] | None:
    """The value at a key or an index, and the line where its key (or itself) starts."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return value, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line + 1
    return None

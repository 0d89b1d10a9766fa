"""Where in a YAML or JSON text something stands, and YAML read within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from weft.errors import InputError

MAX_DEPTH = 32
"""Files of Weft nest a few deep; libyaml overruns the stack on some thousands."""
MAX_LOCATED_BYTES = 16 << 20
"""Composing a larger text only to name a line takes too long."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Path = Sequence[str | int]


class PlacedError(Exception):
    """Something wrong in a file, at a place in its tree (``("links", 3)``) or on a line."""

    def __init__(self, message: str, path: Path = (), line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


@contextmanager
def placed(name: str, path: Path) -> Iterator[None]:
    """What is wrong with the input in here is wrong with what stands at this place of a file."""
    try:
        yield
    except InputError as error:
        raise PlacedError(f"{name}: {error}", path) from None


def load_yaml(text: str) -> Any:
    """The plain values of a YAML text without aliases, tags of other types or deep nesting."""
    try:
        _check_bounds(text)
        return yaml.load(text, Loader=_LOADER)
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
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise PlacedError(f"aliases such as *{event.anchor} have no place here", line=line)
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
        node = yaml.compose(text, Loader=_LOADER)
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

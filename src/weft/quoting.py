"""Texts of others in what Weft says: short, and without characters that a terminal would obey."""

from __future__ import annotations

from collections.abc import Mapping

MOST_QUOTED = 80
_MOST_SAID = 2000  # a path may have 4096 characters, and little use


def visible(text: str) -> str:
    """The same text with escapes for what is not printed: control, bidirectional, no width."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def brief(found: object, most: int = MOST_QUOTED) -> str:
    """The beginning of what was found, on one line."""
    text = str(found)
    return visible(text) if len(text) <= most else f"{visible(text[: most - 3])}..."


def quoted(found: object) -> str:
    """The beginning of what was found, in quotes: for messages."""
    return f"'{brief(found)}'"


def counted(numbers: Mapping[str, int]) -> str:
    """``4 NPUs, 1 switch``: what there is of each, without what there is none of."""
    plural = {name: f"{name}es" if name.endswith("ch") else f"{name}s" for name in numbers}
    words = (f"{n} {name if n == 1 else plural[name]}" for name, n in numbers.items() if n)
    return ", ".join(words)


def sentence(text: str) -> str:
    """What people read: whatever it quotes, one line, whose beginning and end are there."""
    if len(text) > _MOST_SAID:
        text = f"{text[: _MOST_SAID // 2]} ... {text[-_MOST_SAID // 2 :]}"
    return visible(text)

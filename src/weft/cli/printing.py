"""All that commands print goes through here: what files say must not steer a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from weft.quoting import brief, sentence

if TYPE_CHECKING:
    from rich.text import Text

    from weft.judge import Verdict

_MOST_LETTERS = 4000  # of a cell: all of a path

json_option = click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")


def say(text: str, *, err: bool = False) -> None:
    """Print a line."""
    click.echo(sentence(text), err=err)


def say_json(figures: dict[str, Any]) -> None:
    """Print one object, which has escapes for all but one of the control characters.

    docs/json.md has the names.
    """
    import json

    click.echo(json.dumps(figures, indent=2).replace("\x7f", "\\u007f"))


def say_verdict(path: str, verdict: Verdict, where: str = "", *, as_json: bool) -> None:
    """Print what the judge says of the algorithm in a file."""
    if as_json:
        say_json({"path": path, **verdict.to_dict()})
    else:
        say(f"{path}: " + (f"verified{where}" if verdict else str(verdict.violation)))


def wants_json() -> bool:
    """Whether the command is to print JSON, also where its arguments make no sense."""
    arguments = sys.argv[1:]
    # What follows -- is not for Weft.
    return "--json" in arguments[: arguments.index("--") if "--" in arguments else None]


def say_error(text: str, exit_code: int = 2) -> None:
    """Say what is wrong with the input: on standard error, or as JSON on standard output."""
    if wants_json():
        say_json({"error": sentence(text), "exit_code": exit_code})
    else:
        say(f"weft: {text}", err=True)


def cell(text: object, style: str = "") -> Text:
    """A text for a table: a cell, a title."""
    from rich.text import Text

    return Text(brief(text, _MOST_LETTERS), style)

"""What ``--json`` prints: one object, also where something is wrong. docs/json.md has the names."""

from __future__ import annotations

import sys
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")


def say_json(figures: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(figures, indent=2))


def wants_json() -> bool:
    """Whether the command is to print JSON, also where its arguments make no sense."""
    return "--json" in sys.argv[1:]


def say_error(sentence: str, exit_code: int = 2) -> None:
    """Say what is wrong with the input: on standard error, or as JSON on standard output."""
    if wants_json():
        say_json({"error": sentence, "exit_code": exit_code})
    else:
        click.echo(f"weft: {sentence}", err=True)

"""What notebooks show instead of a `repr`: small plain tables."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from weft.quoting import brief


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """A table of facts in HTML, with everything in it escaped."""
    body = "".join(
        f"<tr><th>{escape(what)}</th><td>{escape(brief(value))}</td></tr>"
        for what, value in rows.items()
    )
    return f"<table><caption>{escape(brief(title))}</caption>{body}</table>"

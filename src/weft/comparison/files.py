"""A comparison as a file: a table for spreadsheets, or a figure."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.comparison.model import COLUMNS, WEFT, Comparison, Outcome, Row, Run
from weft.documents import check_new_file
from weft.errors import InputError
from weft.pictures import WEFT_COLOUR, check_drawing, drawn
from weft.units import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = (".svg", ".png", ".pdf")

_COLOURS = 18  # of tab20: its two oranges are close to Weft's own colour
_MARKS = "osD^v<>PXh"
_STROKES = ("-", "--", ":", "-.")
_MOST_LABELS = 12
_INCHES = (8, 4.8)


def csv_of(comparison: Comparison) -> bytes:
    """One line for each size and algorithm; cells that do not apply are empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore")
    writer.writeheader()
    for row in comparison.rows:
        writer.writerows(row.records())
    return text.getvalue().encode()


def check_picture(path: Path) -> None:
    """Raise, before any work, if a figure could not be drawn there."""
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"{path}: figures are {', '.join(PICTURES[:-1])} or {PICTURES[-1]} files")
    check_drawing()
    check_new_file(path)


def picture_of(comparison: Comparison, suffix: str) -> bytes:
    """Bus bandwidth over size, both by powers; the bound is dashed. Same figures, same bytes."""
    return drawn(lambda axes: draw_lines(axes, comparison), suffix.lower().lstrip("."), _INCHES)


def draw_lines(axes: Axes, comparison: Comparison) -> None:
    """The bound, Weft's answer and every algorithm that ran."""
    rows = comparison.rows
    bound = [row.bound_busbw_GBps for row in rows]
    _line(axes, rows, bound, label="lower bound", color="black", linestyle="--", linewidth=1)
    answers = [_rate(row.weft) for row in rows]
    _line(axes, rows, answers, label=WEFT, color=WEFT_COLOUR, linewidth=2.5, marker="o", zorder=5)
    for number, name in enumerate(comparison.names):
        rates = [_rate(row.baselines[name]) for row in rows]
        _line(axes, rows, rates, label=name, linewidth=1, markersize=4, **_style(number))
    if len(comparison.groups) > 1:
        rates = [_rate(row.alone) for row in rows]
        _line(axes, rows, rates, label="each alone", color="grey", linestyle=":", marker="x")
    sizes = [row.size for row in rows]
    shown = sizes[:: -(-len(sizes) // _MOST_LABELS)]
    axes.set_xscale("log", base=2)
    if any(bound):  # on a scale of powers there must be something that moves
        axes.set_yscale("log")
    axes.set_xticks(shown, [format_size(size) for size in shown], rotation=30)
    axes.set_xticks([], minor=True)
    axes.set_title(comparison.title)
    axes.set_xlabel("size")
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.grid(visible=True, color="#e2e6e9")


def _style(number: int) -> dict[str, Any]:
    """A look that no other line of the figure has: strong colours first, then the pale ones."""
    from matplotlib import colormaps

    strong, pale = [0, *range(4, 20, 2)], [1, *range(5, 20, 2)]
    shade = (strong + pale)[number % _COLOURS]
    return {
        "color": colormaps["tab20"](shade),
        "marker": _MARKS[number % len(_MARKS)],
        "linestyle": _STROKES[number // _COLOURS % len(_STROKES)],
    }


def _rate(found: Outcome | None) -> float:
    """Bus bandwidth of what ran and is right, otherwise 0."""
    return found.busbw_GBps if isinstance(found, Run) and found.verified else 0.0


def _line(axes: Axes, rows: tuple[Row, ...], rates: list[float], **style: Any) -> None:
    """A line through what moves at all: zero has no place on a scale of powers.

    What has no point has no line, and so no entry in the legend.
    """
    points = [(row.size, rate) for row, rate in zip(rows, rates, strict=True) if rate > 0]
    if points:
        axes.plot([size for size, _ in points], [rate for _, rate in points], **style)

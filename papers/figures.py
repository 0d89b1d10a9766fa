"""Figures as data, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.pictures import WEFT_COLOUR, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = Sequence[float | None]


@dataclass(frozen=True)
class Bars:
    """A bar for each series in each category, side by side or stacked; None leaves a gap."""

    title: str
    unit: str
    categories: Sequence[str]
    series: Mapping[str, Values]
    stacked: bool = False


@dataclass(frozen=True)
class Lines:
    """A line for each series over `x`, both axes logarithmic; None leaves a gap."""

    title: str
    x_name: str
    unit: str
    x: Sequence[float]
    series: Mapping[str, Values]


Figure = Bars | Lines


_WIDTH, _HEIGHT = 9.0, 4.5  # inches
_COLOURS = ("#3b6ea5", "#8fb8de", "#5a9367", "#a8d0a8", "#8d6a9f", "#c9a9d6", "#b08a3e", "#d9c07c")
_MANY_BARS = 24  # from here on a figure is wider


def svg_of(figure: Figure) -> bytes:
    """The figure, drawn."""
    bars = len(figure.categories) * len(figure.series) if isinstance(figure, Bars) else 0
    width = _WIDTH * max(1.0, min(bars / _MANY_BARS, 1.6))

    def draw(axes: Axes) -> None:
        if isinstance(figure, Bars):
            _draw_bars(axes, figure)
        else:
            _draw_lines(axes, figure)
        axes.set_title(figure.title)
        axes.set_ylabel(figure.unit)
        axes.grid(visible=True, axis="y", color="#e2e6e9")
        axes.set_axisbelow(True)

    return drawn(draw, "svg", (width, _HEIGHT))


def _draw_bars(axes: Axes, bars: Bars) -> None:
    width = 0.8 if bars.stacked else 0.8 / len(bars.series)
    below = [0.0] * len(bars.categories)
    for number, (name, values) in enumerate(bars.series.items()):
        heights = [value or 0.0 for value in values]
        shift = 0 if bars.stacked else (number - (len(bars.series) - 1) / 2) * width
        where = [place + shift for place in range(len(heights))]
        axes.bar(where, heights, width, bottom=below, label=name, color=_colour(name, number))
        if bars.stacked:
            below = [low + height for low, height in zip(below, heights, strict=True)]
    places = range(len(bars.categories))
    axes.set_xticks(places, bars.categories, rotation=30, ha="right", fontsize="small")


def _draw_lines(axes: Axes, lines: Lines) -> None:
    for number, (name, values) in enumerate(lines.series.items()):
        points = [(x, y) for x, y in zip(lines.x, values, strict=True) if y is not None]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            marker="o",
            label=name,
            color=_colour(name, number),
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lines.x, [f"{x:g}" for x in lines.x])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(lines.x_name)


def _colour(name: str, number: int) -> str:
    return WEFT_COLOUR if name == "Weft" else _COLOURS[number % len(_COLOURS)]

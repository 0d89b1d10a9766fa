"""Figures by matplotlib, which is optional: see the extra ``plot``."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from weft.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEFT_COLOUR = "#d65414"

_UNSAID = {"svg": "Date", "png": "Software", "pdf": "CreationDate"}
"""What matplotlib would write that differs from day to day or from machine to machine."""


def check_drawing() -> None:
    """Raise, before any work, if no figure can be drawn."""
    if find_spec("matplotlib") is None:
        raise InputError("figures need matplotlib, which is not installed: pip install weft[plot]")


def drawn(draw: Callable[[Axes], None], kind: str, size: tuple[float, float]) -> bytes:
    """What `draw` puts into the axes, as an svg, png or pdf of so many inches.

    Same figures, same bytes. The legend stands beside the axes.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "weft", "svg.fonttype": "none"}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        if axes.get_legend_handles_labels()[0]:
            beside = (1.01, 0.5)
            axes.legend(loc="center left", bbox_to_anchor=beside, frameon=False, fontsize="small")
        data = io.BytesIO()
        figure.savefig(data, format=kind, dpi=150, metadata={_UNSAID[kind]: None})
    return data.getvalue()

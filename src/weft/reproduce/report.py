"""What a reproduction hands to its user: tables and figures, and the page they make."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from weft.reproduce.figures import Figure
from weft.units import format_size

Value = str | bool | int | float | None
Row = tuple[Value, ...]

VERIFIED = "verified"
"""The column that says whether the judge found nothing wrong."""


@dataclass(frozen=True)
class Table:
    """Figures in rows.

    Attributes
    ----------
    title
        What they are figures of, and their unit.
    columns
        Names; under `VERIFIED` there are booleans.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Row]

    @property
    def verified(self) -> bool:
        """Whether the judge found nothing wrong in any row."""
        at = [i for i, name in enumerate(self.columns) if name == VERIFIED]
        return all(row[i] for row in self.rows for i in at)

    def texts(self) -> list[list[str]]:
        """The rows as people read them."""
        return [[_text(value) for value in row] for row in self.rows]

    def markdown(self) -> str:
        """The table for a page."""
        lines = [self.columns, ["---"] * len(self.columns), *self.texts()]
        return f"{self.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows}


@dataclass(frozen=True)
class Experiment:
    """One set-up of a paper, run here.

    Attributes
    ----------
    name
        Short, for the names of files.
    title, text
        The heading on the page, and what stands under it.
    """

    name: str
    title: str
    text: str
    tables: Sequence[Table]
    figure: Figure | None = None


@dataclass(frozen=True)
class Paper:
    """What is known of a paper.

    Attributes
    ----------
    name
        By which it is asked for.
    title
        Of the page.
    published, measured, differs
        What is from the paper, what is measured here, and where the two differ.
    """

    name: str
    title: str
    published: str
    measured: str
    differs: str


@dataclass(frozen=True)
class Report:
    """A paper's experiments as they came out here.

    Attributes
    ----------
    quick
        Whether sizes and networks are smaller than the paper's.
    """

    paper: Paper
    quick: bool
    experiments: Sequence[Experiment] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        """Whether the judge found nothing wrong in any row of any table."""
        return all(table.verified for one in self.experiments for table in one.tables)

    @property
    def page(self) -> str:
        """File name of the page."""
        return f"reproduce-{self.paper.name}.md"

    def figure_name(self, experiment: Experiment) -> str:
        """File name of an experiment's figure."""
        return f"reproduce-{self.paper.name}-{experiment.name}.svg"

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines: what ``weft reproduce --json`` prints."""
        return {
            "paper": self.paper.name,
            "quick": self.quick,
            "weft": version("weft"),
            "machine": machine(),
            "verified": self.verified,
            "experiments": [
                {
                    "name": one.name,
                    "title": one.title,
                    "tables": [table.to_dict() for table in one.tables],
                }
                for one in self.experiments
            ],
        }

    def markdown(self) -> str:
        """The page."""
        paper, here = self.paper, machine()
        command = f"weft reproduce {paper.name}" + (" --quick" if self.quick else "")
        parts = [
            f"# {paper.title}",
            f"Made by `{command} -o docs` with Weft {version('weft')} on {here['cores']} cores and "
            f"{format_size(here['memory_bytes'])} of memory. Seconds depend on the machine; the "
            "times of collectives do not."
            + (" A short run: sizes and networks are smaller than usual." if self.quick else ""),
            f"**From the paper.** {paper.published}",
            f"**Measured here.** {paper.measured}",
            f"**Where we differ.** {paper.differs}",
        ]
        for one in self.experiments:
            parts += [f"## {one.title}", one.text]
            if one.figure is not None:
                parts.append(f"![{one.figure.title}](figures/{self.figure_name(one)})")
            parts += [table.markdown().rstrip() for table in one.tables]
        return "\n\n".join(map(_wrapped, parts)) + "\n"


def machine() -> dict[str, int]:
    """What a run has to work with."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cores": os.cpu_count() or 1, "memory_bytes": memory}


def _wrapped(part: str) -> str:
    """Prose in lines that people can read; tables and figures as they are."""
    if "\n" in part or part.startswith(("#", "!")):
        return part
    return textwrap.fill(part, 110, break_long_words=False, break_on_hyphens=False)


def _text(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.4g}"
    return str(value)

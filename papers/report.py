"""What comes of a run: tables and figures, and the page that a paper's make."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

from papers.figures import Figure, svg_of
from weft.documents import new_file
from weft.documents.writing import try_writing
from weft.errors import FormatError
from weft.pictures import check_drawing
from weft.units import format_size

Value = str | bool | int | float | None
Row = tuple[Value, ...]

FIGURES = "figures"
VERIFIED = "verified"
"""The column that says whether the judge found nothing wrong."""


class Extent(IntEnum):
    """How much of a table to run: what takes seconds, minutes, or longer."""

    SHORT = 0
    USUAL = 1
    LONG = 2


@dataclass(frozen=True)
class Table:
    """Figures in rows; under `VERIFIED` there are booleans. The title names the unit."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Row]

    @property
    def verified(self) -> bool:
        """Whether the judge found nothing wrong in any row."""
        at = [i for i, name in enumerate(self.columns) if name == VERIFIED]
        return all(row[i] for row in self.rows for i in at)

    def texts(self, digits: int = 4) -> list[list[str]]:
        """The rows as people read them."""
        return [[_text(value, digits) for value in row] for row in self.rows]

    def markdown(self) -> str:
        """The table for a page."""
        lines = [self.columns, ["---"] * len(self.columns), *self.texts()]
        return f"{self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows}


@dataclass(frozen=True)
class Experiment:
    """What was measured; the name is for files, the text stands under the title on a page."""

    name: str
    title: str
    text: str
    tables: Sequence[Table]
    figure: Figure | None = None

    @property
    def verified(self) -> bool:
        return all(table.verified for table in self.tables)

    def to_dict(self) -> dict[str, Any]:
        tables = [table.to_dict() for table in self.tables]
        return {"name": self.name, "title": self.title, "tables": tables}


@dataclass(frozen=True)
class Setup:
    """An experiment that is still to be run: measures each instance, concludes from all."""

    instances: Sequence[Any]
    measure: Callable[[Any], Any]
    conclude: Callable[[Sequence[Any]], Experiment]

    def run(self, tick: Callable[[], None] = lambda: None) -> Experiment:
        """Measure everything; `tick` is called after each instance."""
        measured = []
        for instance in self.instances:
            measured.append(self.measure(instance))
            tick()
        return self.conclude(measured)


def one_table(
    name: str,
    title: str,
    columns: Sequence[str],
    instances: Iterable[Any],
    row: Callable[[Any], Row],
    last: Callable[[Sequence[Row]], Sequence[Row]] = lambda _: (),
) -> Setup:
    """A table with a row for each instance; `last` makes further rows of these."""

    def conclude(rows: Sequence[Row]) -> Experiment:
        return Experiment(name, title, "", [Table("", tuple(columns), [*rows, *last(rows)])])

    return Setup(list(instances), row, conclude)


@dataclass(frozen=True)
class Paper:
    """What is known of a paper, and what of it is run here.

    Attributes
    ----------
    published, measured, differs
        What is from the paper, what is measured here, and where the two differ.
    setups
        All its experiments; smaller ones if quick.
    """

    name: str
    title: str
    published: str
    measured: str
    differs: str
    setups: Callable[[bool], Sequence[Setup]]


@dataclass(frozen=True)
class Report:
    """A paper's experiments as they came out here; if quick, smaller than the paper's."""

    paper: Paper
    quick: bool
    experiments: Sequence[Experiment]

    @property
    def verified(self) -> bool:
        """Whether the judge found nothing wrong in any row of any table."""
        return all(one.verified for one in self.experiments)

    @property
    def page(self) -> str:
        """File name of the page."""
        return f"reproduce-{self.paper.name}.md"

    def to_dict(self) -> dict[str, Any]:
        """The figures, for machines."""
        return {
            "paper": self.paper.name,
            "quick": self.quick,
            "weft": version("weft"),
            "machine": machine(),
            "verified": self.verified,
            "experiments": [one.to_dict() for one in self.experiments],
        }

    def markdown(self) -> str:
        """The page."""
        paper, here = self.paper, machine()
        command = f"python -m papers {paper.name}" + (" --quick" if self.quick else "")
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
                parts.append(f"![{one.figure.title}]({FIGURES}/{self._figure_name(one)})")
            parts += [table.markdown() for table in one.tables]
        return "\n\n".join(map(_wrapped, parts)) + "\n"

    def save(self, folder: Path) -> None:
        """Write the figures, then the page that shows them."""
        files = {
            folder / FIGURES / self._figure_name(one): svg_of(one.figure)
            for one in self.experiments
            if one.figure is not None
        }
        try:
            (folder / FIGURES).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(f"cannot write to {folder}: {error.strerror}") from None
        for path, data in {**files, folder / self.page: self.markdown().encode()}.items():
            new_file(path, data)

    def _figure_name(self, experiment: Experiment) -> str:
        return f"reproduce-{self.paper.name}-{experiment.name}.svg"


def check_folder(folder: Path) -> None:
    """Raise, before any work, if nothing could be written to a folder or no figure drawn."""
    check_drawing()
    for place in (folder, folder / FIGURES):
        try:
            if place.exists() and not place.is_dir():
                raise FormatError(f"cannot write to {place}: it is a file, not a folder")
            try_writing(place)
        except OSError as error:
            raise FormatError(f"cannot write to {place}: {error.strerror}") from None
        except ValueError as error:  # a null character
            raise FormatError(f"cannot write to {place}: {error}") from None


def machine() -> dict[str, int]:
    """What a run has to work with."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cores": os.cpu_count() or 1, "memory_bytes": memory}


def _wrapped(part: str) -> str:
    """Prose in lines that people can read; tables and figures as they are."""
    if "\n" in part or part.startswith(("#", "!")):
        return part
    return textwrap.fill(part, 110, break_long_words=False, break_on_hyphens=False)


def _text(value: Value, digits: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
    return str(value)

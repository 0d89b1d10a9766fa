"""The evaluations of three papers, run again with Weft: tables, figures, and a page of each."""

from __future__ import annotations

from pathlib import Path

from weft import _core
from weft.errors import unknown_name
from weft.reproduce import pccl, standard, tacos
from weft.reproduce.report import Experiment, Report, Table
from weft.reproduce.writing import check_folder, save

__all__ = ["PAPERS", "Experiment", "Report", "Table", "reproduce"]

PAPERS = {module.REPRODUCTION.paper.name: module.REPRODUCTION for module in (tacos, pccl, standard)}
"""What can be reproduced, by name."""


def reproduce(
    name: str,
    folder: Path | None = None,
    *,
    quick: bool = False,
    progress: _core.Progress | None = None,
) -> Report:
    """Run a paper's set-ups again.

    Parameters
    ----------
    name
        A key of `PAPERS`.
    folder
        Where to write the page, and the figures in a folder ``figures`` beside it; by default
        nothing is written.
    quick
        Smaller sizes and networks.

    Raises
    ------
    InputError
        The name is not known, or the folder cannot be written.
    """
    if name not in PAPERS:
        raise unknown_name("paper", name, PAPERS)
    if folder is not None:
        check_folder(folder)
    known = PAPERS[name]
    setups = known.setups(quick)
    if progress is not None:
        progress.begin(sum(len(setup.instances) for setup in setups))

    def tick() -> None:
        if progress is not None:
            progress.advance()

    report = Report(known.paper, quick, [setup.run(tick) for setup in setups])
    if folder is not None:
        save(report, folder)
    return report

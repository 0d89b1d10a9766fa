"""Pages and figures on disk."""

from __future__ import annotations

from pathlib import Path

from weft.documents import new_file, try_writing
from weft.errors import FormatError
from weft.pictures import check_drawing
from weft.reproduce.figures import svg_of
from weft.reproduce.report import Report

FIGURES = "figures"


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


def save(report: Report, folder: Path) -> list[Path]:
    """Write the figures, then the page that shows them; the paths of all."""
    figures = {
        folder / FIGURES / report.figure_name(one): svg_of(one.figure)
        for one in report.experiments
        if one.figure is not None
    }
    page = report.markdown().encode()
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"cannot write to {folder}: {error.strerror}") from None
    files = {**figures, folder / report.page: page}
    for path, data in files.items():
        new_file(path, data)
    return list(files)

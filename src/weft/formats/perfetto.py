"""Timelines in the trace event format of Chrome, which Perfetto opens too."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weft.arrays import Int32, Int64
from weft.documents import new_file
from weft.errors import FormatError
from weft.units import PS_PER_US

_PIECE = 100_000  # events that are text at a time
_LEVEL = 3  # of compression: three times as fast as the usual, hardly larger

_quoted = json.encoder.encode_basestring_ascii


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened when, on named tracks. Slices of one track must not overlap.

    Attributes
    ----------
    tracks
        The heading that each track stands under, and its name, in the order in which to show
        them; tracks under one heading follow each other.
    track
        The track of each slice (int32).
    start, duration
        Of each slice, in picoseconds (int64).
    name
        Of each slice.
    bytes
        What each slice moves; -1 if it moves nothing (int64).
    arrows
        Pairs of slices, the second of which follows from the first: one row per pair (int64).
    """

    tracks: Sequence[tuple[str, str]]
    track: Int32
    start: Int64
    duration: Int64
    name: Sequence[str]
    bytes: Int64
    arrows: Int64

    def save(self, path: str | Path) -> None:
        """Write a file, compressed if its name ends in ``.gz``."""
        target = Path(path)
        check_name(target)
        text = "".join(self._pieces()).encode("ascii")
        # Without a time in its head the file depends on the timeline alone.
        new_file(target, gzip.compress(text, _LEVEL, mtime=0) if target.suffix == ".gz" else text)

    def _pieces(self) -> Iterator[str]:
        """The text of the file; an event a line."""
        heads, names = self._heads()
        yield '{"displayTimeUnit":"ns","traceEvents":[\n'
        yield ",\n".join(names)
        for first in range(0, len(self.start), _PIECE):
            yield from self._slices(heads, slice(first, first + _PIECE))
        for first in range(0, len(self.arrows), _PIECE):
            yield from self._arrows(heads, first)
        yield "\n]}\n"

    def _heads(self) -> tuple[list[str], list[str]]:
        """What events on each track begin with, and the events that name tracks."""
        processes: dict[str, int] = {}
        heads, names = [], []
        for tid, (process, name) in enumerate(self.tracks, 1):
            if process not in processes:
                processes[process] = len(processes) + 1
                names += _metadata("process", {"pid": processes[process]}, process)
            ids = {"pid": processes[process], "tid": tid}
            names += _metadata("thread", ids, name)
            heads.append(f'"pid":{processes[process]},"tid":{tid},"ts":')
        return heads, names

    def _slices(self, heads: list[str], part: slice) -> Iterator[str]:
        columns = zip(
            self.track[part].tolist(),
            _microseconds(self.start[part]),
            _microseconds(self.duration[part]),
            map(_quoted, self.name[part]),
            self.bytes[part].tolist(),
            strict=True,
        )
        for track, start, duration, name, size in columns:
            moved = f',"args":{{"bytes":{size}}}' if size >= 0 else ""
            yield f',\n{{"ph":"X",{heads[track]}{start},"dur":{duration},"name":{name}{moved}}}'

    def _arrows(self, heads: list[str], first: int) -> Iterator[str]:
        """An arrow begins and ends in the middle of slices, where no other slice is meant."""
        middle = self.start + self.duration // 2
        pairs = self.arrows[first : first + _PIECE]
        sides = (("s", ""), ("f", ',"bp":"e"'))
        for (phase, more), end in zip(sides, pairs.T, strict=True):
            columns = zip(self.track[end].tolist(), _microseconds(middle[end]), strict=True)
            for number, (track, time) in enumerate(columns, first):
                yield (
                    f',\n{{"ph":"{phase}",{heads[track]}{time},"id":{number},'
                    f'"name":"chunk","cat":"chunk"{more}}}'
                )


def check_name(path: Path) -> None:
    """Raise if a timeline cannot have this name."""
    if not path.name.endswith((".json", ".json.gz")):
        raise FormatError(f"{path}: a timeline is a .json or .json.gz file; name it so")


def _metadata(what: str, ids: dict[str, int], name: str) -> list[str]:
    """The events that name a track or its heading, and put it in the order of its last id."""
    *_, number = ids.values()
    return [
        json.dumps({"ph": "M", **ids, "name": f"{what}_{kind}", "args": {kind: value}})
        for kind, value in (("name", name), ("sort_index", number))
    ]


def _microseconds(times: Int64) -> Iterator[str]:
    """Times in microseconds, exact to the picosecond."""
    whole, rest = np.divmod(times, PS_PER_US)
    return (f"{w}.{r:06d}" for w, r in zip(whole.tolist(), rest.tolist(), strict=True))

"""What every reader of a format returns, and what a user may have to say about a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft import _core
from weft.algorithm import Algorithm
from weft.collective import Collective, Move, check_given, custom
from weft.errors import InputError
from weft.judge import Verdict, WrongAlgorithmError, verify


@dataclass(frozen=True)
class Hints:
    """What the user says about a file because the file does not.

    Attributes
    ----------
    collective
        Name of the pattern.
    size
        Bytes of the largest buffer on one NPU, as `Collective.size`.
    chunks
        In how many chunks a share is cut.
    group
        The NPUs that take part, in order of rank; by default all.
    root
        For rooted patterns.
    moves
        For a custom pattern: what moves.
    """

    collective: str | None = None
    size: int | None = None
    chunks: int | None = None
    group: Sequence[int] | None = None
    root: int | None = None
    moves: Sequence[Move] | None = None

    def demand(self, npus: int) -> Collective:
        """The collective, for a file that names chunks by number but not the collective."""
        if self.collective is None:
            raise InputError("it does not say which collective it is of; name it with --collective")
        flags = {"moves": "--pattern", "size": "--size"}
        given = [name for name in ("size", "moves") if getattr(self, name) is not None]
        check_given(self.collective, given, flags)
        group = range(npus) if self.group is None else self.group
        chunks = self.chunks or 1
        if self.moves is not None:
            return custom(group, self.moves, chunks_per_share=chunks)
        assert self.size is not None
        return Collective.of(self.collective, group, self.size, chunks, self.root)

    def check(self, path: Path, demands: Sequence[Collective]) -> None:
        """Raise unless what is said of a file that says all by itself is what that says."""
        for demand in demands:
            group = None if self.group is None else tuple(self.group)
            for flag, said, there in (
                ("--collective", self.collective, demand.kind),
                ("--size", self.size, demand.size),
                ("--chunks", self.chunks, demand.chunks_per_share),
                ("--group", group, demand.group),
                ("--root", self.root, demand.root),
            ):
                if said is not None and said != there:
                    raise InputError(f"{path} says otherwise by itself than {flag}; leave it out")
        if self.moves is not None:
            raise InputError(f"{path} says by itself what moves; leave out --pattern")


NO_HINTS = Hints()


@dataclass(frozen=True, eq=False)
class Imported:
    """An algorithm as a file has it, not yet judged.

    Attributes
    ----------
    algorithm
        The algorithm.
    path
        The file or folder it was read from.
    origin
        Where in the file a row comes from, in words, such as ``GPU 3, thread block 1, step 4``;
        None if rows have no such place.
    """

    algorithm: Algorithm
    path: Path
    origin: Callable[[int], str] | None = None

    def judged(self, progress: _core.Progress | None = None) -> Verdict:
        """What the judge says, with the place in the file if something is wrong there."""
        if progress is not None:
            progress.enter("verifying")
        verdict = verify(self.algorithm, progress=progress)
        if verdict or self.origin is None or verdict.row is None:
            return verdict
        return replace(verdict, violation=f"{self.origin(verdict.row)}: {verdict.violation}")

    def violation(self, progress: _core.Progress | None = None) -> str | None:
        """What the judge finds wrong, with the place in the file; None if it is right."""
        return self.judged(progress).violation

    def verified(self, progress: _core.Progress | None = None) -> Algorithm:
        """The algorithm, if it is right.

        Raises
        ------
        WrongAlgorithmError
            It is wrong; names the file and the place.
        """
        verdict = self.judged(progress)
        if not verdict:
            raise WrongAlgorithmError(f"{self.path}: {verdict.violation}", verdict)
        return self.algorithm

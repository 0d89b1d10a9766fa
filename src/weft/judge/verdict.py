"""What the judge says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from weft.display import html_table, line
from weft.errors import FormatError

Kind = Literal[
    "structure",
    "route",
    "dependency",
    "time",
    "link",
    "precondition",
    "causality",
    "reduction",
    "postcondition",
    "order",
]


@dataclass(frozen=True)
class Verdict:
    """Whether an algorithm is right, and if not, what is first wrong with it.

    Attributes
    ----------
    ok
        Whether all it claims holds; also the truth value of the verdict.
    violation
        The first violation, in one sentence.
    kind
        ``structure`` (columns, numbers out of range, NPUs that are not there), ``route`` (does
        not lead from source to destination), ``dependency`` (on a row that is not earlier),
        ``time`` (negative, or not what the cost model says), ``link`` (held twice at once),
        ``precondition`` (a source never has what it sends), ``causality`` (has it only later),
        ``reduction`` (contributions twice, missing or mixed), ``postcondition`` (a result that
        is not there), ``order`` (right by the times, but not if rows run one after the other).
    row
        The row it was found in; none for what is missing at the end.
    chunk, npu
        The chunk that is missing or wrong at the end, and the NPU it is missing on.
    """

    ok: bool
    violation: str | None = None
    kind: Kind | None = None
    row: int | None = None
    chunk: int | None = None
    npu: int | None = None

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return line(self, "verified" if self.ok else f"{self.kind}: {self.violation}")

    def _repr_html_(self) -> str:
        found = {name: value for name, value in self.to_dict().items() if value is not None}
        return html_table("verdict", found.items())

    def to_dict(self) -> dict[str, Any]:
        """The verdict, for machines: what ``weft verify --json`` prints."""
        return {
            "verified": self.ok,
            "violation": self.violation,
            "violation_kind": self.kind,
            "row": self.row,
            "chunk": self.chunk,
            "npu": self.npu,
        }


class WrongAlgorithmError(FormatError):
    """What must be right to go on is wrong; `verdict` has what the judge says."""

    def __init__(self, message: str, verdict: Verdict | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict

"""Traces that others wrote: messages become an algorithm once the user names the collective.

Nodes say who sends how many bytes to whom, and after what; not what the bytes are. That is found
out by following what nodes wait for (`docs/formats.md` has the rules). Nothing here proves
anything: the judge decides afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm
from weft.collective import PATTERNS
from weft.documents import naming
from weft.errors import FormatError, InputError, UnclearError, unknown_name
from weft.formats.chakra._flows import ADVICE, Flows, TraceFlow
from weft.formats.chakra._graph import TraceNodes, match, read_nodes, through_sends
from weft.formats.chakra._labels import labelled
from weft.formats.chakra._order import ordered
from weft.formats.chakra._pairs import by_pairs, out_of_reach
from weft.formats.chakra._payloads import Matching, Payloads, direction_of
from weft.formats.chakra._sums import all_reduced
from weft.formats.chakra._trace_files import TraceFiles
from weft.formats.imported import Hints, Imported
from weft.judge import verify


def read_foreign(path: Path, files: TraceFiles, hints: Hints) -> Imported:
    """Read traces with nothing in them but COMM_SEND, COMM_RECV and COMP."""
    if hints.collective is not None and hints.collective not in PATTERNS:
        raise unknown_name("collective", hints.collective, PATTERNS)
    with naming(path):
        nodes = read_nodes(files, hints.size)  # a workload says so, whatever the hints
        if hints.collective is None:
            raise FormatError(
                f"{files.path(0)}: the trace has messages, but does not say of which collective; "
                "name it with --collective"
            )
        return _Reader(path, nodes, hints).read()


class _Reader:
    """Tries the ways in which a trace can be understood, until the judge is content with one."""

    def __init__(self, path: Path, nodes: TraceNodes, hints: Hints) -> None:
        assert hints.collective is not None
        self._path, self._nodes, self._hints = path, nodes, hints
        self._kind = hints.collective
        npus = len(nodes.files)
        self._group = list(range(npus) if hints.group is None else hints.group)
        if any(not 0 <= npu < npus for npu in self._group):
            raise InputError(f"the group names NPU {max(self._group)}, but there are {npus} traces")
        self._messages = match(nodes)
        self._trace = TraceFlow(nodes, self._messages)
        self._numbered = False  # by numbers, what each message carries

    def read(self) -> Imported:
        outcome: Imported | FormatError | None = None  # of the first way
        trace = self._trace
        for way in (self._by_labels, self._by_flow, self._by_pairs, self._through_sends):
            try:
                found = way()
            except FormatError as error:
                if way == self._by_labels and isinstance(error, UnclearError):
                    raise
                outcome = outcome or error
                continue
            if found is not None and verify(found.algorithm):
                return found
            outcome = outcome or found
            if self._numbered:
                break
        if not isinstance(outcome, Imported):
            assert outcome is not None
            raise outcome
        self._check_clear(outcome, trace)
        return outcome

    def _check_clear(self, found: Imported, trace: TraceFlow) -> None:
        """Raise if what is wrong may be the way in which messages were read."""
        doubtful = self._messages.doubtful
        if doubtful >= 0:
            raise self._nodes.unclear(
                doubtful,
                "has the tag, size and ends of another message, and no dependency says which "
                f"comes first; in order of the file {found.violation()}; give each message a tag "
                "of its own",
            )
        one_chunk = (self._nodes.size[self._messages.send] == self._hints.size).all()
        if not (self._numbered or one_chunk or out_of_reach(trace, found.algorithm.chunks)):
            raise UnclearError(
                f"{self._path}: cannot tell whether this is right: as its messages were read "
                f"{found.violation()}, but they may carry other chunks; {ADVICE}"
            )

    def _by_labels(self) -> Imported | None:
        flows = self._follow(parts=False)
        found = labelled(self._trace, flows, self._kind, self._group, self._hints)
        if found is None:
            return None
        flows, chunks = found
        # Numbers say it all, but for what sums have: that may have been too much to follow.
        self._numbered = flows.by_row or not chunks.demand.chunks.reduce.any()
        return self._imported(flows, chunks)

    def _through_sends(self) -> Imported | None:
        nodes = through_sends(self._nodes)
        if len(nodes) == len(self._nodes):
            return None
        more = np.full(len(nodes) - len(self._nodes), -1, dtype=np.int64)
        self._messages = replace(self._messages, of=np.concatenate([self._messages.of, more]))
        self._trace = TraceFlow(nodes, self._messages)
        return self._by_flow()

    def _by_pairs(self) -> Imported | None:
        if self._kind != "all-to-all":
            return None
        found = by_pairs(self._trace, self._group, self._hints)
        return None if found is None else self._imported(*found)

    def _by_flow(self) -> Imported:
        flows = self._follow(parts=True)
        if self._kind == "all-reduce":
            return self._imported(flows, all_reduced(flows, self._group, self._hints))
        found = Matching(flows, self._kind, self._group, self._hints).run()
        return self._imported(flows, found)

    def _follow(self, *, parts: bool) -> Flows:
        direction = direction_of(self._kind, self._hints)
        return self._trace.follow(self._group, direction, parts=parts)

    def _imported(self, flows: Flows, found: Payloads) -> Imported:
        done = ordered(self._trace, flows, found)
        provenance = {"format": "chakra", "source": self._path.name}
        algorithm = Algorithm((found.demand,), done.transfers, provenance=provenance)
        nodes, send = self._nodes, self._messages.send
        return Imported(algorithm, self._path, lambda row: nodes.name(int(send[done.message[row]])))

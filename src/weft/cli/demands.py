"""Options that say what must happen: which collective, among whom, how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from weft.cli.options import gathered, given, option
from weft.errors import InputError

if TYPE_CHECKING:
    from weft.collective import Plan, Request
    from weft.topology import Topology

_SPELLED = {"matrix": "--matrix", "to": "--to", "moves": "--pattern"}


@dataclass(frozen=True)
class DemandOptions:
    """Collectives as the command line names them."""

    collective: str | None
    chunks: str | None
    root: int | None
    group: tuple[str, ...]
    parallel: str | None
    along: str | None
    no_relay: bool
    matrix: str | None
    to: str | None
    pattern: str | None
    plan: str | None
    size: str | None = None
    sizes: str | None = None
    named: str | None = None

    def sweep(self, topology: Topology, alignment: int) -> list[Plan]:
        """The same at each of --sizes; once, if it says itself how much moves."""
        from weft.collective.request import takes_size
        from weft.comparison.sizes import USUAL, parse_sizes

        if self.collective is None or not takes_size(self.collective):
            return [self.load(topology, alignment)]
        text = USUAL if self.sizes is None else self.sizes
        return [
            replace(self, size=str(size), sizes=text).load(topology, alignment)
            for size in parse_sizes(text)
        ]

    def load(self, topology: Topology, alignment: int) -> Plan:
        """What is asked of this network."""
        from weft.collective import Plan, parse_chunks

        if self.plan is not None:
            from weft.collective.files import load_plan

            self._check_alone()
            return load_plan(self.plan, topology, alignment=alignment)
        if self.collective is None:
            raise InputError("no COLLECTIVE is given, and no --plan")
        groups = self._groups(topology)
        requests = self._requests(self.collective, {len(group) for group in groups})
        collectives = [requests[len(group)].among(group, alignment) for group in groups]
        chunks = None if self.chunks is None else parse_chunks(self.chunks)
        return Plan(collectives, [chunks] * len(collectives))

    def _check_alone(self) -> None:
        """A plan says all itself."""
        for flag in given(self):
            if flag != "--plan":
                word = "COLLECTIVE" if flag == "--collective" else flag
                raise InputError(f"--plan says what each group does; leave out {word}")

    def _groups(self, topology: Topology) -> Sequence[Sequence[int]]:
        from weft.collective import layout_groups, parse_group

        present = topology.members.tolist()
        if self.parallel is None and self.along is None:
            groups = [parse_group(text, topology.npus) for text in self.group]
            for group in groups:
                topology.check_members(group)
            return groups or [present]
        if self.group:
            raise InputError("--group and --parallel both say who takes part; give one of them")
        if self.parallel is None or self.along is None:
            raise InputError("--parallel and --along go together: --parallel tp=8,dp=8 --along tp")
        return layout_groups(self.parallel, self.along, present)

    def _requests(self, kind: str, lengths: set[int]) -> dict[int, Request]:
        """One a length of group: files and options speak of ranks."""
        from weft.collective import Request, check_given, parse_group

        size = self.sizes if self.size is None else self.size
        options = {"size": size, "matrix": self.matrix, "to": self.to, "moves": self.pattern}
        given = [name for name, value in options.items() if value is not None]
        spelled = "--size" if self.sizes is None else "--sizes"
        check_given(kind, given, {"size": spelled, **_SPELLED})
        if self.matrix is not None or self.pattern is not None:
            from weft.collective.files import load_matrix, load_pattern
        matrix = None if self.matrix is None else load_matrix(self.matrix)
        return {
            ranks: Request(
                kind,
                self.size,
                self.root,
                not self.no_relay,
                matrix,
                None if self.to is None else parse_group(self.to, ranks, "rank"),
                None if self.pattern is None else load_pattern(self.pattern, ranks),
            )
            for ranks in lengths
        }


_OPTIONS = (
    option(
        "--chunks K",
        "Chunks each NPU's share is cut in (All-to-All: each pair's part); auto by default.",
    ),
    option("--root NPU", "For rooted patterns; the first by default.", type=int),
    option(
        "--group NPUS",
        "Who takes part, in order of rank: 0-7, 0,8,16, 0-56:8; all by default. Repeated: "
        "several groups at once.",
        multiple=True,
    ),
    option(
        "--parallel NAME=N,...",
        "A parallel layout of all NPUs, the first dimension varying fastest: tp=8,dp=8.",
    ),
    option(
        "--along NAME,...",
        "The dimensions of the layout that communicate, in all their groups at once.",
    ),
    option("--no-relay", "NPUs outside a group must not pass its chunks on.", is_flag=True),
    option(
        "--matrix FILE",
        "For all-to-allv: sizes from each rank (row) to each, as CSV, YAML or JSON.",
    ),
    option("--to RANKS", "For permutation: where each rank sends, 1,0,3,2."),
    option("--pattern FILE", "For custom: a YAML or JSON list of moves (size, from, to, reduce)."),
    option(
        "--plan FILE", "Instead of COLLECTIVE: a YAML or JSON list of groups, each with its own."
    ),
)
_COLLECTIVE = click.argument("collective", required=False)
_SIZE = option("--size SIZE", "Largest buffer on an NPU: 64MiB, 1GB.")
_SIZES = option(
    "--sizes SIZES",
    "Largest buffers on an NPU: 1KiB:1GiB (the default) by a factor of 4, 1KiB:1GiB:2 by "
    "another, or a list such as 64KiB,1MiB.",
)

demand_options = gathered("demands", DemandOptions, _COLLECTIVE, _SIZE, *_OPTIONS)
"""A collective and its options; the command gets them as `demands`."""
swept_options = gathered("demands", DemandOptions, _COLLECTIVE, _SIZES, *_OPTIONS)
"""The same with several sizes, for `DemandOptions.sweep`."""
run_options = gathered(
    "demands",
    DemandOptions,
    _COLLECTIVE,
    _SIZE,
    _SIZES,
    option(
        "--collective NAME",
        "Of a file: which collective it is, if it does not say so.",
        name="named",
    ),
    *_OPTIONS,
)
"""Both, and what a file does not say: for algorithms that are read or synthesized."""

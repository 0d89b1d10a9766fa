"""The table of networks by name: Weft's own kinds, and those that users add.

To add one, register a `Builder`, or name it in the entry points ``weft.topologies`` of a package.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from weft.errors import InputError
from weft.quoting import quoted
from weft.registry import Registry
from weft.topology.model import Topology
from weft.topology.rates import NOMINAL

DEFAULT_BANDWIDTH = 50 * 10**9
"""B/s of every link when none is given: one 400 Gbit/s port."""
DEFAULT_LATENCY = 500_000
"""ps of every link when none is given: 0.5 us."""

Speeds = Sequence[int] | None


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """A kind of network that specs name, such as ``ring`` in ``ring:8``.

    Attributes
    ----------
    name
        What specs call it: small letters, digits, dots, dashes and underscores.
    example
        A spec, for messages and lists.
    summary
        What it is, in a few words.
    rank
        Where it stands in lists: lower ranks come first.
    """

    table: ClassVar[Registry[Kind]] = Registry("topology", entry_points="weft.topologies")
    name: str
    example: str
    summary: str = ""
    rank: int = 90

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", self.name):
            raise InputError(
                f"a topology cannot be called {quoted(self.name)}; use small letters, digits, "
                "dots, dashes and underscores"
            )

    @property
    def options(self) -> Sequence[str]:
        """What it takes behind a comma with an equals sign: ``up`` in ``clos:8x4x4,up=4x2``."""
        return ()

    def at(self, rates: str) -> Kind | None:
        """The same kind at ``nominal`` or ``reachable`` rates; None if it has no such."""
        return self if rates == NOMINAL else None

    @abstractmethod
    def network(
        self, spec: str, parameters: str | None, bandwidth: Speeds, latency: Speeds
    ) -> Topology:
        """The network of a whole spec, which becomes its name.

        Parameters
        ----------
        parameters
            What follows the colon in it, with its options; None without a colon.
        bandwidth, latency
            B/s and ps of the links, where given: one for all, or as many as the kind takes.
        """


TOPOLOGIES = Kind.table


@dataclass(frozen=True, kw_only=True)
class Builder(Kind):
    """A kind whose networks a function makes, with speeds of their own.

    Attributes
    ----------
    build
        From the text after the colon (empty without one; it has no ``*`` and no comma) to the
        network. An InputError or a ValueError is shown to the user with the spec and the example.
    """

    build: Callable[[str], Topology]

    def network(
        self, spec: str, parameters: str | None, bandwidth: Speeds, latency: Speeds
    ) -> Topology:
        if parameters == "":
            raise InputError(f"topology {quoted(spec)} ends early; write it like {self.example}")
        try:
            made = self.build((parameters or "").strip())
        except (InputError, ValueError) as error:
            raise InputError(
                f"topology {quoted(spec)}: {error}; write it like {self.example}"
            ) from error
        return override_links(replace(made, name=spec), bandwidth, latency)


def override_links(topology: Topology, bandwidth: Speeds, latency: Speeds) -> Topology:
    """A network that has its own links with one bandwidth or latency on all, where given."""
    for what, values in (("bandwidth", bandwidth), ("latency", latency)):
        if values is not None and len(values) != 1:
            raise InputError(
                f"topology {quoted(topology.name)} has its own links: give one {what} for all of "
                f"them or none, not {len(values)}"
            )
    return topology.with_links(
        bandwidth=bandwidth[0] if bandwidth else None, latency=latency[0] if latency else None
    )


def speeds_of(
    spec: str, dimensions: int, bandwidth: Speeds, latency: Speeds
) -> tuple[list[int], list[int]]:
    """Bandwidths and latencies by dimension, from one for all, one for each, or none."""
    return (
        _per_dimension(spec, "bandwidth", bandwidth, dimensions, DEFAULT_BANDWIDTH),
        _per_dimension(spec, "latency", latency, dimensions, DEFAULT_LATENCY),
    )


def _per_dimension(
    spec: str, what: str, values: Speeds, dimensions: int, default: int
) -> list[int]:
    if values is None:
        return [default] * dimensions
    if len(values) == 1:
        return list(values) * dimensions
    if len(values) != dimensions:
        raise InputError(
            f"topology {quoted(spec)} has {_count(dimensions, 'dimension')} but "
            f"{_count(len(values), what + ' value')}; give one, or one per dimension"
        )
    return list(values)


def sizes_of(spec: str, text: str | None, example: str, counts: Sequence[int]) -> list[int]:
    """Numbers from 1 joined by ``x``; as many as one of `counts`, or any number without them."""
    text = (text or "").strip()
    parts = [part.strip() for part in text.lower().split("x")]
    if not all(re.fullmatch(r"[0-9]+", part) and part.strip("0") for part in parts):
        raise InputError(
            f"topology {quoted(spec)}: size {quoted(text)} is not a whole number from 1; "
            f"write it like {example}"
        )
    if counts and len(parts) not in counts:
        raise InputError(
            f"topology {quoted(spec)} has {_count(len(parts), 'size')}, not "
            f"{' or '.join(map(str, counts))}; write it like {example}"
        )
    # A number this long is refused by its size; Python would refuse it with a traceback.
    return [int(part) if len(part.lstrip("0")) < 12 else 10**12 for part in parts]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

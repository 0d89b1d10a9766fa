"""A machine as a kind of network, at the rates that are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from weft.errors import InputError
from weft.quoting import quoted
from weft.topology.kinds import Kind, Speeds, override_links
from weft.topology.model import Topology
from weft.topology.rates import NOMINAL, Rate
from weft.units import PS_PER_US


@dataclass(frozen=True)
class Link:
    """One direction of a link.

    Attributes
    ----------
    what
        What it is, for messages, such as ``NVLink 5``.
    rate
        Its bytes per second.
    us
        α in microseconds.
    """

    what: str
    rate: Rate
    us: float

    def __mul__(self, links: int) -> Link:
        """So many of these side by side, as one."""
        return replace(self, rate=self.rate * links)

    @property
    def latency(self) -> int:
        """α in picoseconds."""
        return round(self.us * PS_PER_US)


SpeedOf = Callable[[Link], int]
"""From a link to its bytes per second, at the rates that were asked for."""


class _NotPublishedError(InputError):
    """Nobody published what a link reaches."""


@dataclass(frozen=True, kw_only=True)
class Preset(Kind):
    """A machine.

    Attributes
    ----------
    build
        From the text after the colon (empty without one) and a way to ask for speeds to the
        network. An InputError is shown to the user with the spec and the example.
    rates
        ``nominal`` or ``reachable``.
    """

    build: Callable[[str, SpeedOf], Topology]
    rates: str = NOMINAL
    rank: int = 30

    def at(self, rates: str) -> Preset:
        return replace(self, rates=rates)

    def network(
        self, spec: str, parameters: str | None, bandwidth: Speeds, latency: Speeds
    ) -> Topology:
        if parameters == "":
            raise InputError(f"topology {quoted(spec)} ends early; write it like {self.example}")
        try:
            made = self.build((parameters or "").strip(), self.speed)
        except _NotPublishedError as error:
            raise InputError(f"topology {quoted(spec)}: {error}") from error
        except InputError as error:
            raise InputError(
                f"topology {quoted(spec)}: {error}; write it like {self.example}"
            ) from error
        return override_links(replace(made, name=spec), bandwidth, latency)

    def speed(self, link: Link) -> int:
        """Bytes per second of a link."""
        rate = link.rate.at(self.rates)
        if rate is None:
            raise _NotPublishedError(
                f"what {link.what} of {self.name} reaches was not published; leave out --rates "
                f"{self.rates}"
            )
        return rate

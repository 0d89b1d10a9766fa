"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from weft.errors import InputError

if TYPE_CHECKING:
    from weft.topology import Topology


@dataclass(frozen=True)
class NetworkOptions:
    """A network as the command line names it."""

    spec: str
    bandwidth: str | None
    latency: str | None
    without_link: tuple[str, ...]
    without_npu: tuple[int, ...]
    degrade_link: tuple[str, ...]

    def load(self) -> Topology:
        from weft.topology import load_topology

        return load_topology(
            self.spec,
            self.bandwidth,
            self.latency,
            self.without_link,
            self.without_npu,
            self.degrade_link,
        )


_Decorator = Callable[[Callable[..., None]], Callable[..., None]]


alignment_option = click.option(
    "--alignment",
    default="16B",
    metavar="SIZE",
    show_default=True,
    help="Chunk boundaries fall on multiples of this.",
)
method_option = click.option(
    "--method",
    default="auto",
    metavar="NAME|FILE",
    show_default=True,
    help="Use one method only: matching, rounds, symmetric, periodic, unicast, trees, "
    "steiner, or a classical algorithm that `weft compare --help` lists; or take the "
    "algorithm in a file.",
)


def search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what every search takes: a seed, threads and the cost model."""
    options = (
        click.option(
            "--seed", type=int, default=0, show_default=True, help="Same seed, same result."
        ),
        click.option(
            "--threads", type=int, help="By default one a core; never changes the result."
        ),
        click.option(
            "--latency-model",
            default="pipelined",
            metavar="pipelined|blocking",
            show_default=True,
            help="Whether α occupies the link (blocking, as in TACOS) or not (as in ASTRA-sim).",
        ),
        click.option(
            "--switching",
            default="cut-through",
            metavar="cut-through|store-and-forward",
            show_default=True,
            help="How a hop crosses switches.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def topology_options(metavar: str) -> _Decorator:
    """Add a network argument and its options; the command gets them as `network`."""
    return _with_network(click.argument("spec", metavar=metavar))


def required_topology(help_text: str) -> _Decorator:
    """Add --topology, which must be given, and its options; the command gets `network`."""
    return _with_network(
        click.option("--topology", "spec", metavar="SPEC", required=True, help=help_text)
    )


def optional_topology(help_text: str) -> _Decorator:
    """Add --topology and its options; the command gets `network`, None if it is not given."""
    return _with_network(click.option("--topology", "spec", metavar="SPEC", help=help_text))


def _with_network(spec_parameter: _Decorator) -> _Decorator:
    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @spec_parameter
        @click.option(
            "--bandwidth",
            metavar="RATE[,RATE...]",
            help="Of all links, or one a dimension: 50GB/s.",
        )
        @click.option(
            "--latency", metavar="TIME[,TIME...]", help="α of all links, or one a dimension: 0.5us."
        )
        @click.option(
            "--without-link",
            multiple=True,
            metavar="A-B",
            help="A failed link, both ways; A>B for one way. May be repeated.",
        )
        @click.option(
            "--without-npu", multiple=True, type=int, metavar="N", help="A failed NPU; repeatable."
        )
        @click.option(
            "--degrade-link",
            multiple=True,
            metavar="A-B=SPEED",
            help="A slower link, both ways; A>B for one way: 3-4=50%, 0>s1=25GB/s. Repeatable.",
        )
        @functools.wraps(command)
        def wrapped(
            *,
            spec: str | None,
            bandwidth: str | None,
            latency: str | None,
            without_link: tuple[str, ...],
            without_npu: tuple[int, ...],
            degrade_link: tuple[str, ...],
            **others: Any,
        ) -> None:
            changes = (bandwidth, latency, without_link, without_npu, degrade_link)
            network = None
            if spec is not None:
                network = NetworkOptions(spec, *changes)
            elif any(changes):
                raise InputError("options for links and NPUs go with --topology")
            command(network=network, **others)

        return wrapped

    return decorate

"""Options that several commands share, and how a command gets several of them as one object."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from weft.errors import InputError

if TYPE_CHECKING:
    from weft.topology import Topology

Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def stacked(*options: Decorator) -> Decorator:
    """Add options in this order."""
    return lambda command: functools.reduce(lambda c, option: option(c), options[::-1], command)


def gathered(name: str, kind: type, *options: Decorator) -> Decorator:
    """Add options; the command gets them under one name, as an object with a field for each."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**values: Any) -> None:
            own = [field.name for field in fields(kind) if field.name in values]
            one = kind(**{field: values.pop(field) for field in own})
            command(**{name: one}, **values)

        return stacked(*options)(wrapped)

    return decorate


def given(options: object) -> list[str]:
    """The flags among gathered options that were given."""
    return [
        f"--{name.replace('_', '-')}"
        for name, value in vars(options).items()
        if value is not None and value is not False and value != ()
    ]


@dataclass(frozen=True)
class NetworkOptions:
    """A network as the command line names it; no spec where none need be named."""

    spec: str | None
    bandwidth: str | None
    latency: str | None
    without_link: tuple[str, ...]
    without_npu: tuple[int, ...]
    degrade_link: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.spec is None and any(vars(self).values()):
            raise InputError("options for links and NPUs go with --topology")

    def load(self) -> Topology:
        from weft.topology import load_topology

        return load_topology(*vars(self).values())

    def load_if_named(self) -> Topology | None:
        return None if self.spec is None else self.load()


_NETWORK = (
    click.option(
        "--bandwidth", metavar="RATE[,RATE...]", help="Of all links, or one a dimension: 50GB/s."
    ),
    click.option(
        "--latency", metavar="TIME[,TIME...]", help="α of all links, or one a dimension: 0.5us."
    ),
    click.option(
        "--without-link",
        multiple=True,
        metavar="A-B",
        help="A failed link, both ways; A>B for one way. May be repeated.",
    ),
    click.option(
        "--without-npu", multiple=True, type=int, metavar="N", help="A failed NPU; repeatable."
    ),
    click.option(
        "--degrade-link",
        multiple=True,
        metavar="A-B=SPEED",
        help="A slower link, both ways; A>B for one way: 3-4=50%, 0>s1=25GB/s. Repeatable.",
    ),
)


def topology_argument(metavar: str) -> Decorator:
    """Add a network argument and its options; the command gets them as `network`."""
    return gathered("network", NetworkOptions, click.argument("spec", metavar=metavar), *_NETWORK)


def topology_option(help_text: str, *, required: bool = False) -> Decorator:
    """Add --topology and its options; the command gets them as `network`."""
    spec = click.option("--topology", "spec", metavar="SPEC", required=required, help=help_text)
    return gathered("network", NetworkOptions, spec, *_NETWORK)


alignment_option = click.option(
    "--alignment",
    default="16B",
    metavar="SIZE",
    help="Chunk boundaries fall on multiples of this.",
)
method_option = click.option(
    "--method",
    default="auto",
    metavar="NAME|FILE",
    help="Use one method only: matching, rounds, symmetric, periodic, unicast, trees, "
    "steiner, or a classical algorithm that `weft compare --help` lists; or take the "
    "algorithm in a file.",
)
search_options = stacked(
    click.option("--seed", default=0, help="Same seed, same result."),
    click.option("--threads", type=int, help="By default one a core; never changes the result."),
    click.option(
        "--latency-model",
        default="pipelined",
        metavar="pipelined|blocking",
        help="Whether α occupies the link (blocking, as in TACOS) or not (as in ASTRA-sim).",
    ),
    click.option(
        "--switching",
        default="cut-through",
        metavar="cut-through|store-and-forward",
        help="How a hop crosses switches.",
    ),
)
"""What every search takes, by the names that the API has for it."""

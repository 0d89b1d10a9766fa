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


def option(usage: str, help_text: str = "", *, name: str | None = None, **more: Any) -> Decorator:
    """An option by how it is used, such as ``-o, --output FILE``; `name` is that of its value."""
    flags, _, metavar = usage.replace(", -", ",-").partition(" ")
    names = [*flags.split(","), name] if name else flags.split(",")
    return click.option(*names, metavar=metavar or None, help=help_text or None, **more)


def stacked(*options: Decorator) -> Decorator:
    """Add options in this order."""
    return lambda command: functools.reduce(lambda c, add: add(c), options[::-1], command)


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


def check_given(path: str | None, flag: str = "--output", what: str = "folder") -> None:
    """Raise if the name of what is to be written is empty."""
    if path == "":
        raise InputError(f"{flag} is empty; give the {what} to write")


@dataclass(frozen=True)
class NetworkOptions:
    """A network as the command line names it; no spec where none need be named."""

    spec: str | None
    bandwidth: str | None
    latency: str | None
    without_link: tuple[str, ...]
    without_npu: tuple[int, ...]
    degrade_link: tuple[str, ...]
    without_switch: tuple[str, ...]
    nvlink: str | None
    rates: str | None

    def __post_init__(self) -> None:
        if self.spec is None and any(vars(self).values()):
            raise InputError("options for links, NPUs and switches go with --topology")

    @property
    def said(self) -> dict[str, Any]:
        """What `load_topology` takes beside the spec, by its names for it."""
        failed = {"without_link", "without_npu", "degrade_link", "without_switch"}
        names = {name: f"{name}s" if name in failed else name for name in vars(self)}
        names |= {"degrade_link": "degraded_links", "without_switch": "without_switches"}
        given = {name: value for name, value in vars(self).items() if value is not None}
        return {names[name]: value for name, value in given.items() if name != "spec"}

    def load(self) -> Topology:
        from weft.topology import load_topology

        assert self.spec is not None
        return load_topology(self.spec, **self.said)

    def load_if_named(self) -> Topology | None:
        return None if self.spec is None else self.load()


_NVLINK = option(
    "--nvlink [N]x[RATE]",
    "Where a machine's file does not say it: NVLinks of each GPU into the switch, and the rate of "
    "one: 18, 25GB/s, 18x25GB/s.",
)
_rates = functools.partial(
    option,
    "--rates nominal|reachable",
    "Of machines by name and files of machines: what their makers say, by default, or what was "
    "published that links carry under load.",
)
_NETWORK = (
    option(
        "--bandwidth RATE[,RATE...]",
        "Of all links, or one per dimension: 50GB/s. By kind of link for a file of a cluster: "
        "leaf=50GB/s,spine=100GB/s.",
    ),
    option("--latency TIME[,TIME...]", "α of all links, or one per dimension, or by kind: 0.5us."),
    option(
        "--without-link A-B",
        "A failed link, both ways; A>B for one way. May be repeated.",
        multiple=True,
    ),
    option("--without-npu N", "A failed NPU; repeatable.", multiple=True, type=int),
    option(
        "--without-switch S", "A failed leaf, spine or other switch: s3. Repeatable.", multiple=True
    ),
    option(
        "--degrade-link A-B=SPEED",
        "A slower link, both ways; A>B for one way: 3-4=50%, 0>s1=25GB/s. Repeatable.",
        multiple=True,
    ),
    _NVLINK,
    _rates(),
)


@dataclass(frozen=True)
class FileOptions:
    """What the command line says of machines beside their files."""

    nvlink: str | None
    rates: str
    bandwidth: str | None
    latency: str | None


file_options = gathered(
    "said",
    FileOptions,
    _NVLINK,
    _rates(default="nominal"),
    option("--bandwidth KIND=RATE[,...]", "Of kinds of links: leaf=50GB/s,spine=100GB/s."),
    option("--latency KIND=TIME[,...]", "α of kinds of links: leaf=1us."),
)
"""What is said of files of machines; the command gets them as `said`."""


def topology_argument(metavar: str) -> Decorator:
    """Add a network argument and its options; the command gets them as `network`."""
    return gathered("network", NetworkOptions, click.argument("spec", metavar=metavar), *_NETWORK)


def topology_option(help_text: str, *, required: bool = False) -> Decorator:
    """Add --topology and its options; the command gets them as `network`."""
    spec = option("--topology SPEC", help_text, name="spec", required=required)
    return gathered("network", NetworkOptions, spec, *_NETWORK)


alignment_option = option(
    "--alignment SIZE", "Chunk boundaries fall on multiples of this.", default="16B"
)
method_option = option(
    "--method NAME|FILE",
    "Use one method only: by-level, symmetric, gateways, in-switch, exchange, matching, rounds, "
    "periodic, unicast, rooted, spread, trees, steady, steiner, or a classical algorithm that "
    "`weft compare --help` lists; or take the algorithm in a file.",
    default="auto",
)
search_options = stacked(
    option("--seed", "Same seed, same result.", default=0),
    option("--threads", "By default one a core; never changes the result.", type=int),
    option(
        "--latency-model pipelined|blocking",
        "Whether α occupies the link (blocking, as in TACOS) or not (as in ASTRA-sim).",
        default="pipelined",
    ),
    option(
        "--switching cut-through|store-and-forward",
        "How a hop crosses switches.",
        default="cut-through",
    ),
)
"""What every search takes, by the names that the API has for it."""

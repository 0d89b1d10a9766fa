"""``weft simulate`` on traces: options for how they run, and the run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from weft.errors import InputError

if TYPE_CHECKING:
    from weft.cli.inputs import InputOptions
    from weft.cli.options import NetworkOptions
    from weft.progress import Tracker
    from weft.replay import TraceRun


@dataclass(frozen=True)
class TraceOptions:
    """How traces are run that are no algorithm of Weft's."""

    method: str | None
    comm_group: str | None
    astra_sim: str | None
    unaware: bool
    plain: bool

    def given(self) -> str | None:
        """The first option that was given, if any."""
        flags = {
            "--astra-sim": self.astra_sim is not None,
            "--method": self.method is not None,
            "--comm-group": self.comm_group is not None,
            "--unaware": self.unaware,
            "--plain": self.plain,
        }
        return next((flag for flag, given in flags.items() if given), None)


def trace_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for traces; the command gets them as `traces`."""

    @click.option(
        "--method", metavar="NAME", help="For workloads: how collectives are synthesized."
    )
    @click.option("--comm-group", metavar="FILE", help="For workloads: who is in which group.")
    @click.option(
        "--astra-sim",
        metavar="FILE",
        help="Run traces as ASTRA-sim's analytical backends do, on the network in its FILE.",
    )
    @click.option(
        "--unaware", is_flag=True, help="With --astra-sim: the congestion-unaware backend."
    )
    @click.option(
        "--plain",
        is_flag=True,
        help="With --astra-sim: as a workload, not as the files of a collective algorithm.",
    )
    @functools.wraps(command)
    def wrapped(
        *,
        method: str | None,
        comm_group: str | None,
        astra_sim: str | None,
        unaware: bool,
        plain: bool,
        **others: Any,
    ) -> None:
        command(traces=TraceOptions(method, comm_group, astra_sim, unaware, plain), **others)

    return wrapped


def are_traces(source: InputOptions, traces: TraceOptions) -> bool:
    """Whether to run traces as they are: said so, or not Weft's and nothing says of what."""
    from weft.replay import is_workload

    if traces.astra_sim is not None:
        return True
    said = (source.kind, source.collective, source.size, source.chunks, source.group)
    if said != (None,) * 5 or source.root is not None or source.pattern is not None:
        return False
    return is_workload(source.path)


def check_options(
    source: InputOptions,
    network: NetworkOptions | None,
    traces: TraceOptions,
    algorithm_only: Mapping[str, object],
    cost_only: Mapping[str, object],
) -> None:
    """Raise if an option has no meaning for traces, or for the way in which they are run."""
    for flag, value in algorithm_only.items():
        if value is not None:
            raise InputError(f"{flag} is for algorithms, but {source.path} is run as traces")
    if traces.astra_sim is None:
        if traces.unaware or traces.plain:
            raise InputError("--unaware and --plain go with --astra-sim")
        if network is None:
            raise InputError(
                f"{source.path} has traces that were made for no network; name one to run them "
                "on, with --topology or --astra-sim"
            )
        return
    others = {
        "--topology": network,
        "--method": traces.method,
        "--comm-group": traces.comm_group,
        **cost_only,
    }
    for flag, value in others.items():
        if value is not None:
            raise InputError(f"{flag} does not go with --astra-sim, whose file says it all")


def run_traces(
    source: InputOptions,
    network: NetworkOptions | None,
    traces: TraceOptions,
    models: Mapping[str, str | None],
    progress: Tracker,
) -> TraceRun:
    """Run them on the network that was named."""
    from weft.cost import CostModel
    from weft.replay import simulate_astra_sim, simulate_traces

    if network is None:
        assert traces.astra_sim is not None
        return simulate_astra_sim(
            source.path,
            traces.astra_sim,
            aware=not traces.unaware,
            plain=traces.plain,
            group=source.hints().group,
        )
    return simulate_traces(
        source.path,
        network.load(),
        CostModel(**{name: model for name, model in models.items() if model}),  # type: ignore[arg-type]  # checked there
        method=traces.method or "auto",
        comm_group=traces.comm_group,
        progress=progress,
    )

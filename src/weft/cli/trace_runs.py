"""``weft simulate`` on traces: options for how they run, and the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.cli.options import gathered, given, option
from weft.errors import InputError

if TYPE_CHECKING:
    from weft.cli.inputs import InputOptions
    from weft.cli.options import NetworkOptions
    from weft.progress import Tracker
    from weft.replay import TraceRun


@dataclass(frozen=True)
class TraceOptions:
    """How traces are run that are no algorithm of Weft's."""

    astra_sim: str | None
    method: str | None
    comm_group: str | None
    unaware: bool
    plain: bool


trace_options = gathered(
    "traces",
    TraceOptions,
    option("--method NAME", "For workloads: how collectives are synthesized."),
    option("--comm-group FILE", "For workloads: who is in which group."),
    option(
        "--astra-sim FILE",
        "Run traces as ASTRA-sim's analytical backends do, on the network in its FILE.",
    ),
    option("--unaware", "With --astra-sim: the congestion-unaware backend.", is_flag=True),
    option(
        "--plain",
        "With --astra-sim: as a workload, not as the files of a collective algorithm.",
        is_flag=True,
    ),
)
"""Options for traces; the command gets them as `traces`."""


def are_traces(source: InputOptions, traces: TraceOptions) -> bool:
    """Whether to run traces as they are: said so, or not Weft's and nothing says of what."""
    from weft.replay import is_workload

    if traces.astra_sim is not None:
        return True
    return given(source) == ["--path"] and is_workload(source.path)


def check_options(
    source: InputOptions,
    network: NetworkOptions,
    traces: TraceOptions,
    how: Mapping[str, str | None],
) -> None:
    """Raise if an option has no meaning for traces, or for the way in which they are run."""
    for name in ("order", "reducer"):
        if how[name] is not None:
            raise InputError(f"--{name} is for algorithms, but {source.path} is run as traces")
    if traces.astra_sim is None:
        if traces.unaware or traces.plain:
            raise InputError("--unaware and --plain go with --astra-sim")
        if network.spec is None:
            raise InputError(
                f"{source.path} has traces that were made for no network; name one to run them "
                "on, with --topology or --astra-sim"
            )
        return
    others = {
        "--topology": network.spec,
        "--method": traces.method,
        "--comm-group": traces.comm_group,
        "--latency-model": how["latency_model"],
        "--switching": how["switching"],
    }
    for flag, value in others.items():
        if value is not None:
            raise InputError(f"{flag} does not go with --astra-sim, whose file says it all")


def run_traces(
    source: InputOptions,
    network: NetworkOptions,
    traces: TraceOptions,
    how: Mapping[str, str | None],
    progress: Tracker,
) -> TraceRun:
    """Run them on the network that was named."""
    from weft.cost import CostModel
    from weft.replay import simulate_astra_sim, simulate_traces

    if traces.astra_sim is not None:
        return simulate_astra_sim(
            source.path,
            traces.astra_sim,
            aware=not traces.unaware,
            plain=traces.plain,
            group=source.hints().group,
        )
    models = {name: how[name] for name in ("latency_model", "switching") if how[name]}
    return simulate_traces(
        source.path,
        network.load(),
        CostModel(**models),  # type: ignore[arg-type]  # checked there
        method=traces.method or "auto",
        comm_group=traces.comm_group,
        progress=progress,
    )

"""``weft lab --compare``: one collective by Weft, MPI and gloo on the same emulated network."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from weft.cli.printing import say, say_json
from weft.errors import InputError, WeftError, unknown_name
from weft.units import PS_PER_US, format_size, parse_size

if TYPE_CHECKING:
    from weft.lab import LabPlan
    from weft.lab.contest import Trial
    from weft.result import Result
    from weft.topology import Topology

_NAMES = ("weft", "mpi", "gloo")


def compared(
    topology: Topology,
    scale: float | None,
    collective: str,
    size: str | None,
    who: str,
    *,
    as_json: bool,
) -> Callable[[], int]:
    """Plan; gives what runs it in a lab, once it is in a space of its own."""
    from weft.lab import Lab, lab_plan
    from weft.lab.contest import Contest, check_collective, why_not
    from weft.synthesis import synthesize

    check_collective(collective)
    if size is None:
        raise InputError("--compare needs --size, the largest buffer on an NPU, such as 8MiB")
    bytes_ = parse_size(size)
    names = [name.strip() for name in who.split(",")]
    for name in names:
        if name not in _NAMES:
            raise unknown_name("contender", name, _NAMES)
    scaled = lab_plan(topology, scale).scaled
    result = synthesize(scaled, collective, bytes_)
    plan = lab_plan(topology, scale, _ways(result))
    for doubt in plan.doubts:
        say(f"weft: {doubt}", err=True)

    def work() -> int:
        lab = Lab(plan)
        contest = Contest(lab, result, lambda text: say(text, err=True))
        trials = []
        for name in names:
            missing = why_not(name)
            if missing is None:
                try:
                    trials.append(getattr(contest, name)())
                except WeftError as error:
                    missing = str(error)
            if missing is not None:
                say(f"weft: {name} is left out: {missing}", err=True)
        figures = {
            "topology": topology.title,
            "scale": plan.scale,
            "alpha_emulated": lab.delays,
            "collective": collective,
            "size_bytes": bytes_,
            "planned_us": result.time / PS_PER_US,
            "lower_bound_us": result.bound.time / PS_PER_US,
            "contenders": [
                {"over_plan": trial.median * 1e12 / result.time, **trial.to_dict()}
                for trial in trials
            ],
            "doubts": plan.doubts,
        }
        if as_json:
            say_json(figures)
        else:
            _print(plan, result, trials)
            if not lab.delays and plan.delays_us.any():
                say("α is not emulated: this kernel has no netem")
        return 0

    return work


def _ways(result: Result) -> list[tuple[int, ...]]:
    from weft.lab import ways_of_algorithm

    return ways_of_algorithm(result.algorithm)


def _print(plan: LabPlan, result: Result, trials: list[Trial]) -> None:
    from weft.cli.tables import print_rows, shown_time

    planned = result.time / PS_PER_US
    rows: list[list[object]] = [["planned", "", "", shown_time(planned), *[""] * 7]]
    for trial in trials:
        micros = [1e6 * one for one in trial.seconds]
        rows.append(
            [
                trial.entry.name,
                trial.entry.algorithm,
                trial.entry.order,
                shown_time(round(1e6 * trial.median)),
                f"{1e6 * trial.median / planned:.3f}",
                " ".join(f"{one / 1e3:.0f}" for one in micros),
                f"{1e3 * median(trial.late):.0f}",
                f"{format_size(round(trial.carried))} / {format_size(trial.needed)}",
                f"{trial.traffic.burst_share:.2%}",
                int(trial.traffic.drops.sum()),
                f"{trial.traffic.busy:.0%}, {trial.traffic.own:.0%}",
            ]
        )
    (demand,) = result.algorithm.demands
    title = f"{demand.kind} of {format_size(demand.size)} on {plan.topology.title}, in a lab"
    columns = ("", "algorithm", "ranks", "median", "over plan", "runs (ms)", "late (ms)")
    more = ("carried / needed", "burst", "drops", "CPU, lab's")
    print_rows(title, [*columns, *more], rows, words=("", "algorithm", "ranks"))
    for trial in trials:
        for doubt in trial.doubts:
            say(f"weft: {trial.entry.name}: {doubt}")

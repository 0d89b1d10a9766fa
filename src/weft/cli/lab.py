"""``weft lab``: run programs on an emulated network of network namespaces."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from weft.cli.options import NetworkOptions, option, topology_argument
from weft.cli.printing import json_option, say, say_json
from weft.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.lab import Lab, LabPlan, Traffic
    from weft.lab.ways import Steps


@click.command()
@topology_argument("TOPOLOGY")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@option(
    "--scale FACTOR",
    "Bandwidths times this, α divided by it: 1e-3. By default 1, or the first of 0.1, 0.01, ... "
    "at which this machine can carry all links.",
    type=float,
)
@option("--plan ALGO", "Have addresses for the ways of this algorithm through switches, too.")
@option(
    "--once",
    "Run COMMAND on the first NPU only, since it starts the others itself. Known of mpiexec.",
    is_flag=True,
)
@option(
    "--compare COLLECTIVE",
    "Instead of a COMMAND: run all-reduce, all-gather or all-to-all by Weft and by what else is "
    "installed, and print planned and measured times.",
    name="collective",
)
@option("--size SIZE", "With --compare: the largest buffer on an NPU.")
@option("--with NAMES", "With --compare: who runs it.", name="who", default="weft,mpi,gloo")
@json_option
def lab(
    network: NetworkOptions,
    command: tuple[str, ...],
    scale: float | None,
    plan: str | None,
    collective: str | None,
    size: str | None,
    who: str,
    *,
    once: bool,
    as_json: bool,
) -> None:
    """Run COMMAND on every NPU of an emulated network, and print what its links carried.

    Each NPU and each switch of TOPOLOGY becomes a network namespace of this machine, each link a
    cable between two of them that carries as many bytes per second as the link, scaled. COMMAND
    finds its rank and the addresses of the others in its environment: see docs/lab.md. Needs Linux,
    root and iproute2; nothing is left of the lab afterwards. The exit code is that of COMMAND;
    with --json what it prints goes to standard error.

    \b
    Examples:
      weft lab mesh:3x3 --bandwidth 50Mbit/s -- python train.py
      weft lab switch:8 --scale 1e-3 -- mpiexec -n 8 ./osu_allreduce
      weft lab mesh:3x3 --bandwidth 50Mbit/s --compare all-reduce --size 8MiB
    """  # noqa: D301 - click reads the control character
    from weft.lab import in_own_space, lab_plan

    topology = network.load()
    if collective is not None:
        from weft.cli.lab_compare import compared

        if command or once or plan is not None:
            raise InputError(
                "--compare runs a collective, so it takes no command, --once or --plan"
            )
        work = compared(topology, scale, collective, size, who, as_json=as_json)
    else:
        if size is not None:
            raise InputError("--size goes with --compare")
        laid_out = lab_plan(topology, scale, _ways_of(plan))
        work = _running(laid_out, command, once=once, as_json=as_json)
    code = in_own_space(work)
    if code:
        raise click.exceptions.Exit(code)


def _running(
    plan: LabPlan, command: tuple[str, ...], *, once: bool, as_json: bool
) -> Callable[[], int]:
    """What runs a command in a lab, once it is in a space of its own."""
    from weft.lab import Lab, Start, check_command, starts_ranks_itself

    if not command:
        raise InputError("there is no command to run in the lab; give it after --")
    check_command(command)
    for doubt in plan.doubts:
        say(f"weft: {doubt}", err=True)

    def work() -> int:
        made = Lab(plan)
        start = Start(command, once or starts_ranks_itself(command))
        code, traffic = made.run(start, output=sys.stderr.buffer if as_json else None)
        if as_json:
            say_json({"exit_code": code, **_facts(made, traffic)})
        else:
            from weft.cli.lab_report import print_traffic

            print_traffic(made, traffic)
        return code

    return work


def _ways_of(plan: str | None) -> list[Steps]:
    """The ways of an algorithm through switches."""
    if plan is None:
        return []
    from weft.api import load
    from weft.lab import ways_of_algorithm

    return ways_of_algorithm(load(plan))


def _facts(lab: Lab, traffic: Traffic) -> dict[str, Any]:
    plan = lab.plan
    return {
        "topology": plan.topology.title,
        "scale": plan.scale,
        "alpha_emulated": lab.delays,
        **traffic.to_dict(),
        "doubts": [*plan.doubts, *traffic.doubts],
    }

"""What ``weft lab`` says of a run: what links carried, and how honest the emulation was."""

from __future__ import annotations

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from weft.cli.printing import cell, say
from weft.lab import Lab, Traffic
from weft.units import format_bandwidth, format_size

_MOST_LINKS = 64


def print_traffic(lab: Lab, traffic: Traffic) -> None:
    """Print it on standard error, beside what the command printed."""
    plan = lab.plan
    table = Table(title=cell(f"Links of {plan.topology.title}"), box=box.SIMPLE_HEAD)
    for name in ("link", "rate", "sent", "busy", "drops"):
        table.add_column(name, justify="right")
    shares = traffic.busy_shares
    for link in np.argsort(-traffic.sent, kind="stable")[:_MOST_LINKS].tolist():
        fields = (
            plan.topology.link_name(link),
            format_bandwidth(plan.rates[link]),
            format_size(int(traffic.sent[link])),
            f"{shares[link]:.1%}",
            int(traffic.drops[link]),
        )
        table.add_row(*map(cell, fields))
    left = plan.topology.links - _MOST_LINKS
    if left > 0:
        table.caption = cell(f"and {left:,} that carried less: see --json")
    Console(stderr=True).print(table)
    for sentence in sentences(lab, traffic):
        say(sentence, err=True)


def sentences(lab: Lab, traffic: Traffic) -> list[str]:
    """What is to be known of the figures."""
    plan = lab.plan
    said = [
        f"bandwidths are {plan.scale:g} of those of {plan.topology.name}, with headers on top",
        f"{traffic.seconds:.3g} s; {traffic.busy:.0%} of {traffic.cores} cores busy, "
        f"{traffic.own:.0%} for the lab; a burst is {traffic.burst_share:.2%} of what the "
        "busiest link carried",
    ]
    if traffic.acknowledged:
        said.append(
            f"{format_size(traffic.acknowledged)} of acknowledgements went where there is no link"
        )
    if not lab.delays and plan.delays_us.any():
        said.append("α is not emulated: this kernel has no netem")
    return said + [f"weft: {doubt}" for doubt in traffic.doubts]

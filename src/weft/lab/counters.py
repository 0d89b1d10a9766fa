"""What links of a lab carried, and how busy the machine was."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.lab.building import BURST, ON_WIRE, command
from weft.lab.plan import LabPlan

_BUSY = 0.9  # of all cores: more of it, and the plan is late for want of them
_FAIR_BURST = 0.01


@dataclass(frozen=True, eq=False)
class Counters:
    """Totals since the lab was made, and the machine's clock."""

    sent: NDArray[np.int64]  # bytes by link, with headers
    packets: NDArray[np.int64]
    drops: NDArray[np.int64]
    acknowledged: int  # bytes of acknowledgements where no link is
    seconds: float
    busy: float  # seconds of all cores
    own: float  # of those, for the lab


def read_counters(plan: LabPlan) -> Counters:
    """Ask all namespaces."""
    links = plan.topology.links
    sent, packets, drops = (np.zeros(links, dtype=np.int64) for _ in range(3))
    acknowledged = 0
    wires = {wire.device: wire for wire in plan.wires}
    for node in plan.nodes:
        said = json.loads(command(["tc", "-n", plan.host(node), "-s", "-j", "qdisc", "show"]))
        for shaper in said:
            if shaper["kind"] != "tbf":
                continue
            link = wires[shaper["dev"]].link_from(node)
            if link is None:
                acknowledged += shaper["bytes"]
            else:
                sent[link], packets[link] = shaper["bytes"], shaper["packets"]
                drops[link] = shaper["drops"]
    busy, own = _busy()
    return Counters(sent, packets, drops, acknowledged, time.monotonic(), busy, own)


def _busy() -> tuple[float, float]:
    """Seconds that all cores worked, and that they worked for processes of the lab."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    all_ticks = sum(ticks[:8]) - ticks[3] - ticks[4]  # without idle and iowait
    own_ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):  # of this space: no others are to be seen
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it just ended, and its parent has its times
        own_ticks += sum(map(int, fields[11:15]))  # its own and those of children that ended
    second = os.sysconf("SC_CLK_TCK")
    return all_ticks / second, own_ticks / second


@dataclass(frozen=True, eq=False)
class Traffic:
    """What links carried between two moments, and how honest it was."""

    plan: LabPlan
    sent: NDArray[np.int64]
    packets: NDArray[np.int64]
    drops: NDArray[np.int64]
    acknowledged: int
    seconds: float
    cores: int
    busy: float  # share of all cores, by whomever
    own: float  # share of all cores, by the lab
    runs: int = 1  # that it was for

    @classmethod
    def between(cls, plan: LabPlan, before: Counters, after: Counters, runs: int = 1) -> Traffic:
        seconds, cores = after.seconds - before.seconds, os.cpu_count() or 1
        return cls(
            plan,
            after.sent - before.sent,
            after.packets - before.packets,
            after.drops - before.drops,
            after.acknowledged - before.acknowledged,
            seconds,
            cores,
            (after.busy - before.busy) / seconds / cores,
            (after.own - before.own) / seconds / cores,
            runs,
        )

    @property
    def busy_shares(self) -> NDArray[np.float64]:
        """For how much of the time each link sent at its rate, headers included."""
        return self.sent / (self.plan.rates * ON_WIRE * self.seconds)

    @property
    def burst_share(self) -> float:
        """The burst, which costs no time, over what the busiest link carried in a run."""
        most = int(self.sent.max())
        return BURST * self.runs / most if most else 0.0

    @property
    def doubts(self) -> list[str]:
        """Why times that were measured say little, if so; sentences."""
        found: list[str] = []
        if int(self.sent.max()) <= BURST:
            return found  # nothing that was worth measuring
        if self.drops.any():
            found.append(f"links dropped {int(self.drops.sum())} packets, which were sent again")
        if self.busy > _BUSY:
            why = "the machine is too slow" if self.own > _BUSY / 2 else "others used it"
            shares = f"{self.busy:.0%} of {self.cores} cores were busy, {self.own:.0%} for the lab"
            found.append(f"{shares}: {why}")
        if self.burst_share > _FAIR_BURST:
            found.append(
                f"a burst is {self.burst_share:.1%} of what the busiest link carried, and takes no "
                "time; send more"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        topology = self.plan.topology
        links = [
            {
                "link_name": topology.link_name(link),
                "rate_Bps": round(float(self.plan.rates[link])),
                "sent_bytes": int(self.sent[link]),
                "packets": int(self.packets[link]),
                "drops": int(self.drops[link]),
            }
            for link in range(topology.links)
        ]
        return {
            "duration_s": self.seconds,
            "burst_share": self.burst_share,
            "cpu_share": self.busy,
            "lab_cpu_share": self.own,
            "cores": self.cores,
            "acknowledged_bytes": self.acknowledged,
            "per_link": links,
        }

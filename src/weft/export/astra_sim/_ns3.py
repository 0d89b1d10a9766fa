"""The network for ASTRA-sim's ns-3 backend: a list of links between hosts and switches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.topology import Topology

# Thresholds of congestion marking a switch port, in KB for each Gbps, and its probability: those
# of the sample configurations, which any rate needs an entry of its own for.
_KMIN, _KMAX, _PMAX = 4, 16, 0.2


@dataclass(frozen=True)
class Ns3Network:
    """The topology file, lines for the configuration file, and what they do not say."""

    topology: str
    config: str
    notes: tuple[str, ...]


def ns3_network(topology: Topology) -> Ns3Network | str:
    """The network as ns-3 has it, or why it cannot have it."""
    touched = np.zeros(topology.nodes, dtype=bool)
    touched[topology.src] = touched[topology.dst] = True
    for npu in np.flatnonzero(~touched[: topology.npus])[:1]:
        return f"NPU {npu} has no link"
    low = np.minimum(topology.src, topology.dst).astype(np.int64)
    high = np.maximum(topology.src, topology.dst)
    pairs, pair = np.unique(low * topology.nodes + high, return_inverse=True)
    up = topology.src < topology.dst
    rates = np.zeros((2, len(pairs)), dtype=np.int64)
    np.add.at(rates, (up.astype(np.int64), pair.reshape(-1)), topology.bandwidth)
    delay = np.zeros(len(pairs), dtype=np.int64)
    np.maximum.at(delay, pair.reshape(-1), topology.latency)
    rate = 8 * rates.max(axis=0)
    switches = range(topology.npus, topology.nodes)
    lines = [
        f"{topology.nodes} {topology.switches} {len(pairs)}",
        " ".join(map(str, switches)),
        *(
            f"{ends // topology.nodes} {ends % topology.nodes} {bits}bps {_time(wait)} 0"
            for ends, bits, wait in zip(pairs.tolist(), rate.tolist(), delay.tolist(), strict=True)
        ),
    ]
    notes = []
    if (rates[0] != rates[1]).any():
        notes.append("ns-3: links have one rate for both ways, here that of the faster way")
    if len(topology.src) > np.count_nonzero(rates):
        notes.append("ns-3: parallel links are one link of their joint rate")
    return Ns3Network("\n".join(lines) + "\n", _config(sorted(set(rate.tolist()))), tuple(notes))


def _time(ps: int) -> str:
    return f"{ps // 1000}ns" if ps % 1000 == 0 else f"{ps}ps"


def _config(rates: list[int]) -> str:
    maps: dict[str, list[float]] = {
        "KMAX_MAP": [max(round(_KMAX * rate / 1e9), 2) for rate in rates],
        "KMIN_MAP": [max(round(_KMIN * rate / 1e9), 1) for rate in rates],
        "PMAX_MAP": [_PMAX for _ in rates],
    }
    lines = ["TOPOLOGY_FILE ns3-topology.txt"]
    for name, values in maps.items():
        pairs = " ".join(f"{rate} {value}" for rate, value in zip(rates, values, strict=True))
        lines.append(f"{name} {len(rates)} {pairs}")
    return "\n".join(lines) + "\n"

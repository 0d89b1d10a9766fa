"""The small files of a bundle: configurations, the script that runs it, and a page about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.algorithm import Algorithm
from weft.arrays import Int64
from weft.export.astra_sim._shapes import Shape
from weft.export.astra_sim._traces import GROUP
from weft.topology import Topology
from weft.units import format_size, format_time

if TYPE_CHECKING:
    from weft.export.astra_sim import Bundle

MEMORY = '{"memory-type": "NO_MEMORY_EXPANSION"}\n'


def network_yml(shapes: Sequence[Shape]) -> str:
    """ASTRA-sim's analytical network file."""
    columns = {
        "topology": [shape.name for shape in shapes],
        "npus_count": [str(shape.size) for shape in shapes],
        "bandwidth": [_decimal(shape.gb) for shape in shapes],
        "latency": [_decimal(shape.ns) for shape in shapes],
    }
    units = {"bandwidth": "  # GB/s, 1 GB = 2^30 B", "latency": "  # ns"}
    return "".join(
        f"{name}: [ {', '.join(values)} ]{units.get(name, '')}\n"
        for name, values in columns.items()
    )


def _decimal(value: float) -> str:
    """All digits of a number and no exponent, which not every reader of YAML takes."""
    return np.format_float_positional(value, trim="-")


def system_json(kind: str, prefix: str) -> str:
    """ASTRA-sim's system file; the prefix is relative to the folder in which run.sh runs."""
    return _json(
        {
            "scheduling-policy": "FIFO",
            "preferred-dataset-splits": 1,
            f"{kind}-implementation-custom": [f"./{prefix}"],
        }
    )


def groups_json(ranks: Int64) -> str:
    """The process group that runs the algorithm, in ascending order."""
    return json.dumps({GROUP: ranks.tolist()}) + "\n"


def logical_json(npus: int) -> str:
    return _json({"logical-dims": [str(npus)]})


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


_RUN = """\
#!/bin/sh
# Runs this bundle: ./run.sh BINARY [OPTION OF ASTRA-SIM...], or ASTRA_SIM=BINARY ./run.sh
# ASTRA-sim ends with exit code 0 even if ranks hang, so the ranks that finish are counted.
set -eu
if [ $# -gt 0 ]; then
    binary=$1
    shift
else
    binary=${ASTRA_SIM:-}
fi
if [ -z "$binary" ]; then
    echo "usage: $0 BINARY, such as AstraSim_Analytical_Congestion_Aware" >&2
    exit 2
fi
case $binary in
    */*) binary=$(cd "$(dirname "$binary")" && pwd)/$(basename "$binary") ;;
esac
cd "$(dirname "$0")"

set_of= network=network.yml ranks=@RANKS@ expected='@PLANNED@@PREDICTED@'
@UNAWARE@
files=$((2 * ranks + 64))
open=$(ulimit -n)
if [ "$open" != unlimited ] && [ "$open" -lt "$files" ] && ! ulimit -n "$files"; then
    echo "$0: $files files must be open at once, but ulimit -n is $open" >&2
    exit 2
fi
if [ -f "${set_of}groups.json" ]; then
    set -- "--comm-group-configuration=./${set_of}groups.json" "$@"
fi
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
status=0
"$binary" \\
    "--workload-configuration=./${set_of}workload" \\
    "--system-configuration=./${set_of}system.json" \\
    "--network-configuration=./$network" \\
    --remote-memory-configuration=./memory.json \\
    "--logging-folder=$log" "$@" >"$log/output" 2>&1 || status=$?
finished=$(grep -c 'sys\\[[0-9]*\\] finished, [0-9]* cycles' "$log/output" || true)
if [ "$status" -ne 0 ] || [ "$finished" -ne "$ranks" ]; then
    tail -n 20 "$log/output" >&2
    echo "$0: $finished of $ranks ranks finished, exit code $status" >&2
    exit 1
fi
latest=$(sed -n 's/.*\\] finished, \\([0-9]*\\) cycles.*/\\1/p' "$log/output" | sort -n | tail -n 1)
echo "all $ranks ranks finished; the last after $latest ns$expected"
"""

_UNAWARE = """\
case $(basename "$binary") in
    *[Uu]naware*) set_of=@SET@ network=unaware.yml ranks=@RANKS@ expected='@PLANNED@' ;;
esac
"""


def run_script(
    ranks: int, unaware: tuple[str, int] | None, planned: int | None, predicted: int | None
) -> str:
    """The script, with the time predicted for the congestion-aware backend.

    `unaware` is the set of traces for the other one and how many ranks it has, if there is one.
    """
    other = ""
    if unaware is not None:
        prefix, count = unaware
        other = _UNAWARE.replace("@SET@", prefix).replace("@RANKS@", str(count))
    words = {
        "@UNAWARE@\n": other,
        "@RANKS@": str(ranks),
        "@PLANNED@": "" if planned is None else f", planned {planned / 1000:.3f} ns",
        "@PREDICTED@": "" if predicted is None else f", predicted {predicted} ns",
    }
    script = _RUN
    for word, text in words.items():
        script = script.replace(word, text)
    return script


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


_NS3 = """
For ns-3: merge ns3-config.txt into its configuration file (CONFIG below) and give absolute paths
there and in {prefix}system.json, since ns-3 runs in a folder of its own. FLOW_FILE and TRACE_FILE
must exist.
    BINARY --workload-configuration=FOLDER/{prefix}workload \\
        --system-configuration=FOLDER/{prefix}system.json --network-configuration=CONFIG \\
        --remote-memory-configuration=FOLDER/memory.json \\
        --logical-topology-configuration=FOLDER/ns3-logical.json \\
        --comm-group-configuration={groups}
"""


def readme(
    bundle: Bundle, algorithm: Algorithm, topology: Topology, prefix: str, grouped: bool
) -> str:
    """What is in the bundle, how it is run, and what is approximated.

    `prefix` is that of the traces between NPUs; `grouped` says whether they have a group.
    """
    what = ", ".join(
        dict.fromkeys(
            f"{demand.kind} of {format_size(demand.size)}" for demand in algorithm.demands
        )
    )
    time = f", planned {format_time(algorithm.time)}" if algorithm.timed else ""
    if bundle.predicted_ns is not None:
        time += f", predicted for ASTRA-sim {format_time(bundle.predicted_ns * 1000)}"
    lines = [
        f"{what} on {topology.title}{time}; written by Weft for ASTRA-sim.",
        "",
        f"Run it: ./run.sh PATH/{bundle.binary}",
        f"(or set ASTRA_SIM to that path). {bundle.ranks} ranks must finish; times are in ns.",
        "",
        f"algorithm.N.et   what rank N{'' if bundle.group is None else ' of the group'} sends and "
        "receives",
        f"workload.N.et    one {bundle.collective} that runs it",
        "system.json      names the algorithm, relative to the folder in which ASTRA-sim runs",
        f"network.yml      {bundle.network}",
        "memory.json      no memory is simulated",
    ]
    if bundle.group is not None:
        lines.append("groups.json      the ranks that take part")
    if bundle.unaware:
        lines.append("unaware.yml      the network for the congestion-unaware backend, where")
        lines.append("                 messages do not wait for links: times are too short")
    if prefix:
        lines.append(f"{prefix}*           the same between NPUs only, for backends that know")
        lines.append("                 the switches and speeds themselves")
    if bundle.ns3:
        lines.append("ns3-*            the network for the ns-3 backend")
        groups = f"FOLDER/{prefix}groups.json" if grouped else "empty"
        lines += _NS3.format(prefix=prefix, groups=groups).splitlines()
    lines += ["", "What is not as planned:" if bundle.notes else "All is as planned."]
    lines += [f"- {note}" for note in bundle.notes]
    return "\n".join(lines) + "\n"

"""The page in a bundle that says what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.algorithm import Algorithm
from weft.topology import Topology
from weft.units import format_size, format_time

if TYPE_CHECKING:
    from weft.export.astra_sim import Bundle

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
        f"algorithm.N.et   what rank N{_position(bundle)} sends and receives",
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


def _position(bundle: Bundle) -> str:
    return "" if bundle.group is None else " of the group"

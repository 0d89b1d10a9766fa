"""Makes a lab: network namespaces, cables between them, rates, addresses and routes."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence

from weft.errors import WeftError
from weft.lab.plan import LabPlan
from weft.lab.ways import Way, next_hops
from weft.lab.wires import Wire, host_address

NPU_DEVICE = "npu"  # has the address under which all reach an NPU
BURST = 20 << 10  # bytes that a link may send at once
_LARGEST_PACKET = 16384  # less than the burst: larger ones would be cut, which takes time
ON_WIRE = 1514 / 1448  # a full packet, and what it carries
_QUEUE_MS = 1000
_ACKNOWLEDGING = 1 / 20  # of the rate of the other direction: two in three thousand bytes, and some
_SETTINGS = {
    "net.ipv4.ip_forward": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.accept_redirects": 0,
    "net.ipv4.tcp_slow_start_after_idle": 0,
    "net.ipv4.tcp_no_metrics_save": 1,
}

Lines = defaultdict[int, list[str]]  # commands by the node in which they run


def build(plan: LabPlan) -> bool:
    """Make it, in a space of its own; tells whether the kernel can delay packets by α."""
    _run(["ip"], [f"netns add {plan.host(node)}" for node in plan.nodes])
    settings = [f"{name}={value}" for name, value in _SETTINGS.items()]
    command(["ip", "-all", "netns", "exec", "sysctl", "-qew", *settings])
    delays = _has_netem()
    _run(["ip"], _cables(plan))
    for tool, lines in (("ip", _networks(plan)), ("tc", _shapers(plan, delays=delays))):
        for node, own in lines.items():
            _run([tool, "-n", plan.host(node)], own)
    return delays


def command(words: Sequence[str], lines: Iterable[str] = ()) -> str:
    """Run a tool; raises WeftError with what it says if it fails."""
    done = subprocess.run(
        words, input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise WeftError(f"{' '.join(words)} failed: {said[0] if said else done.returncode}")
    return done.stdout


def _run(tool: list[str], lines: list[str]) -> None:
    command([*tool, "-batch", "-"], lines)


def _has_netem() -> bool:
    try:
        command(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"])
    except WeftError:
        return False
    command(["tc", "qdisc", "del", "dev", "lo", "root"])
    return True


def _cables(plan: LabPlan) -> list[str]:
    """Both ends of each wire, made where they belong."""
    lines = []
    for wire in plan.wires:
        a, b = map(plan.host, wire.ends)
        lines.append(
            f"link add {wire.device} netns {a} type veth peer name {wire.device} netns {b}"
        )
    return lines


def _networks(plan: LabPlan) -> Lines:
    lines: Lines = defaultdict(list)
    for node in plan.nodes:
        lines[node].append("link set lo up")
    for npu in plan.topology.members.tolist():
        # Not every kernel has dummy devices; programs take no address of lo for their host's.
        lines[npu] += [
            f"link add {NPU_DEVICE} type veth peer name {NPU_DEVICE}0",
            f"link set {NPU_DEVICE} up",
            f"link set {NPU_DEVICE}0 up",
            f"addr add {host_address(npu)}/32 dev {NPU_DEVICE}",
        ]
    for wire in plan.wires:
        for node in wire.ends:
            lines[node] += [
                f"link set {wire.device} gso_max_size {_LARGEST_PACKET} addrgenmode none up",
                f"addr add {wire.address(node)}/31 dev {wire.device}",
            ]
    for npu in plan.topology.members.tolist():
        for node, wire in next_hops(plan.wires, npu).items():
            own = host_address(node) if node < plan.topology.npus else None
            lines[node].append(_route(host_address(npu), node, wire, own))
    for way in plan.ways:
        _add_way(lines, plan, way)
    return lines


def _route(target: str, node: int, wire: Wire, own: str | None) -> str:
    source = f" src {own}" if own else ""
    return f"route add {target}/32 via {wire.address(wire.other(node))} dev {wire.device}{source}"


def _add_way(lines: Lines, plan: LabPlan, way: Way) -> None:
    """Addresses of its own for a way through switches, and routes to them."""
    paths = [[plan.wire_of[link] for link in steps] for steps in way.links]
    if len({wire.number for path in paths for wire in path}) == 1:
        return  # the wire's own addresses
    for side, (path, back) in enumerate((paths, paths[::-1])):
        node, own = way.ends[side], way.addresses[side]
        lines[node].append(f"addr add {own}/32 dev lo")
        for wire in path or back[::-1]:
            lines[node].append(_route(way.addresses[1 - side], node, wire, own))
            node, own = wire.other(node), ""


def _shapers(plan: LabPlan, *, delays: bool) -> Lines:
    lines: Lines = defaultdict(list)
    for wire in plan.wires:
        for node in wire.ends:
            link = wire.link_from(node)
            rate = plan.rates[wire.links[0]] * _ACKNOWLEDGING if link is None else plan.rates[link]
            bits, place = round(8 * float(rate) * ON_WIRE), f"qdisc add dev {wire.device}"
            above = "root"
            if delays and link is not None and plan.delays_us[link] > 0:
                delay = f"delay {plan.delays_us[link]:.3f}us limit 100000"
                lines[node].append(f"{place} root handle 1: netem {delay}")
                above = "parent 1:1"
            lines[node].append(
                f"{place} {above} handle 10: tbf rate {bits}bit burst {BURST} latency {_QUEUE_MS}ms"
            )
    return lines

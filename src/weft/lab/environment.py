"""What programs in a lab are told: who they are, whom they reach where, how MPI starts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.lab.building import NPU_DEVICE
from weft.lab.plan import LabPlan
from weft.lab.space import FILES, replace_file
from weft.lab.wires import host_address

RENDEZVOUS_PORT = 29400
_MASTER_PORT = 29500
ENTER = FILES / "enter"
_LAUNCHER = FILES / "launcher"
_HOSTS = FILES / "hosts"

# A host name of its own, so that no program takes the memory of two NPUs for one.
_ENTER_SCRIPT = """#!/bin/sh
# enter HOST COMMAND...: run it as on that host
host=$1
shift
. "{folder}/$host.sh"
exec ip netns exec "$host" unshare --uts sh -c \\
    'echo "$0" >/proc/sys/kernel/hostname; exec "$@"' "$host" "$@"
"""
_LAUNCHER_SCRIPT = """#!/bin/sh
# launcher [-x ...] HOST COMMAND...: as ssh, for mpiexec
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
exec {enter} "$host" sh -c "$*"
"""


def write_files(plan: LabPlan) -> None:
    """Write what programs in the lab look at; only they see it."""
    members = plan.topology.members.tolist()
    for path, script in ((ENTER, _ENTER_SCRIPT), (_LAUNCHER, _LAUNCHER_SCRIPT)):
        path.write_text(script.format(folder=FILES, enter=ENTER))
        path.chmod(0o755)
    names = [f"{host_address(npu)} {plan.host(npu)}" for npu in members]
    _HOSTS.write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
    mpi_hosts(plan, "numbered", members)
    replace_file("/etc/hosts", _HOSTS)
    for npu in members:
        path = addresses_file(plan, npu)
        path.write_text(json.dumps(addresses(plan, npu)))
        own = {"WEFT_ADDRESSES": path, "WEFT_NPU": npu}
        lines = [f"export {name}={value}\n" for name, value in own.items()]
        (FILES / f"{plan.host(npu)}.sh").write_text("".join(lines))


def mpi_hosts(plan: LabPlan, name: str, order: Sequence[int]) -> Path:
    """A file of hosts by rank, for mpiexec."""
    path = FILES / f"mpi-hosts-{name}"
    path.write_text("".join(f"{plan.host(npu)}\n" for npu in order))
    return path


def addresses_file(plan: LabPlan, npu: int) -> Path:
    return FILES / f"{plan.host(npu)}.json"


def addresses(plan: LabPlan, npu: int) -> dict[str, Any]:
    """The peers of an NPU, by rank: address here, address there, links there and back."""
    ranks = plan.topology.ranks.tolist()
    peers: dict[str, list[dict[str, Any]]] = {}
    for way in plan.ways:
        if npu in way.ends:
            side = way.ends.index(npu)
            there, back = way.links if side == 0 else way.links[::-1]
            peers.setdefault(str(ranks[way.ends[1 - side]]), []).append(
                {
                    "local": way.addresses[side],
                    "remote": way.addresses[1 - side],
                    "links_there": list(there),
                    "links_back": list(back),
                }
            )
    hosts = [host_address(member) for member in plan.topology.members.tolist()]
    return {"npu": npu, "host": host_address(npu), "hosts": hosts, "peers": peers}


def search_path() -> str:
    """Where commands are looked for: also where Weft's own is."""
    scripts = os.path.dirname(sys.executable)
    return os.pathsep.join([os.environ.get("PATH", os.defpath), scripts])


def environment(plan: LabPlan, order: Sequence[int]) -> dict[str, str]:
    """The variables of a command in the lab, without those that tell its rank."""
    first = host_address(order[0])
    own = {
        "WEFT_RENDEZVOUS": f"{first}:{RENDEZVOUS_PORT}",
        "WEFT_SCALE": f"{plan.scale:g}",
        "MASTER_ADDR": first,
        "MASTER_PORT": _MASTER_PORT,
        "GLOO_SOCKET_IFNAME": NPU_DEVICE,
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": NPU_DEVICE,
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "MPIR_CVAR_NOLOCAL": 1,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": _LAUNCHER,
        "HYDRA_HOST_FILE": FILES / "mpi-hosts-numbered",
        "HYDRA_IFACE": NPU_DEVICE,
        "PATH": search_path(),
    }
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


def rank_environment(plan: LabPlan, rank: int) -> dict[str, str]:
    """What one of the commands is told that run on every NPU."""
    own = {
        "WEFT_RANK": rank,
        "WEFT_RANKS": len(plan.topology.members),
        "RANK": rank,
        "WORLD_SIZE": len(plan.topology.members),
        "LOCAL_RANK": 0,
        "LOCAL_WORLD_SIZE": 1,
    }
    return {name: str(value) for name, value in own.items()}

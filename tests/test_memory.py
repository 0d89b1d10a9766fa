"""How much memory there is: cgroups below the root, limits of the process, and what it uses."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from weft import memory

MIB = 1 << 20
FREE = 1000 * MIB


class Machine:
    """Files as the kernel shows them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.put("proc/meminfo", f"MemTotal: 9999999 kB\nMemAvailable: {FREE // 1024} kB\n")
        self.put("proc/self/status", "Name:\tweft\nVmSize:\t 1024 kB\nVmData:\t 512 kB\n")

    def put(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def second(self, own: str, mounted: str = "/") -> None:
        """Be in a cgroup of version 2."""
        self.put("proc/self/cgroup", f"0::{own}\n")
        mount = f"30 23 0:26 {mounted} /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
        self.put("proc/self/mountinfo", "22 1 0:5 / /proc rw - proc proc rw\n" + mount)

    def first(self, own: str, mounted: str = "/") -> None:
        """Be in a cgroup of version 1, as on machines that have both."""
        self.put("proc/self/cgroup", f"9:cpu,cpuacct:/other\n4:memory:{own}\n0::/\n")
        self.put(
            "proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
            f"35 31 0:32 {mounted} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )

    def limit(self, folder: str, **said: int | str) -> None:
        for name, value in said.items():
            self.put(f"sys/fs/cgroup/{folder}/memory.{name}", f"{value}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(memory, "_ROOT", tmp_path)
    return Machine(tmp_path)


def test_without_limits(machine: Machine) -> None:
    assert memory.available() == FREE
    machine.second("/a/b")
    machine.limit("a/b", max="max", current=MIB)
    assert memory.available() == FREE


@pytest.mark.parametrize("tight", ["", "a", "a/b"])
def test_any_cgroup_above_may_be_the_tightest(machine: Machine, tight: str) -> None:
    machine.second("/a/b")
    for folder in ("", "a", "a/b"):
        room = 100 if folder == tight else 500
        machine.limit(folder, max=room * MIB, current=60 * MIB, high="max")
    assert memory.available() == 40 * MIB


def test_cache_counts_as_free(machine: Machine) -> None:
    machine.second("/a")
    stat = f"anon {20 * MIB}\ninactive_file {30 * MIB}\nactive_file {10 * MIB}"
    machine.limit("a", max=100 * MIB, current=60 * MIB, stat=stat)
    assert memory.available() == 80 * MIB


def test_high_is_a_limit_too(machine: Machine) -> None:
    machine.second("/a")
    machine.limit("a", max=100 * MIB, high=70 * MIB, current=60 * MIB)
    assert memory.available() == 10 * MIB


def test_more_used_than_allowed(machine: Machine) -> None:
    machine.second("/a")
    machine.limit("a", max=50 * MIB, current=60 * MIB)
    assert memory.available() == 0


def test_the_first_version(machine: Machine) -> None:
    machine.first("/jobs/7")
    stat = f"inactive_file 1\ntotal_inactive_file {5 * MIB}\ntotal_active_file {5 * MIB}"
    huge = 9223372036854771712
    machine.limit("memory", limit_in_bytes=huge, usage_in_bytes=900 * MIB)
    machine.limit("memory/jobs", limit_in_bytes=200 * MIB, usage_in_bytes=90 * MIB, stat=stat)
    machine.limit("memory/jobs/7", limit_in_bytes=300 * MIB, usage_in_bytes=90 * MIB)
    assert memory.available() == 120 * MIB


@pytest.mark.parametrize("own", ["/docker/7", "/docker/7/inner", "/../elsewhere"])
def test_a_container_whose_mount_begins_at_its_own_cgroup(machine: Machine, own: str) -> None:
    machine.first(own, mounted="/docker/7")
    machine.limit("memory", limit_in_bytes=200 * MIB, usage_in_bytes=90 * MIB)
    assert memory.available() == 110 * MIB


@pytest.mark.parametrize("limit", ["AS", "DATA"])
def test_what_the_process_uses_is_taken_off_its_own_limits(limit: str) -> None:
    """Of 512 MiB more than it uses, 300 MiB are taken: 212 MiB are left, give or take a few."""
    code = f"""
import resource
from weft import memory
name = {"VmSize" if limit == "AS" else "VmData"!r}
used = memory._kibibytes("proc/self/status")[name]
limit = used + (512 << 20)
resource.setrlimit(resource.RLIMIT_{limit}, (limit, limit))
before = memory.available()
taken = bytearray(300 << 20)
print(before, memory.available())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert 500 * MIB < before <= 512 * MIB
    assert 200 * MIB < after <= 212 * MIB


def test_this_machine() -> None:
    assert 0 < memory.available() <= resource.getpagesize() * memory.os.sysconf("SC_PHYS_PAGES")

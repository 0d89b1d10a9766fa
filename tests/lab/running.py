"""Starts labs as a user does, and finds out whether something is left of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import COMMAND, weft

SENDER = str(Path(__file__).parent / "sender.py")


def _may_be_made() -> bool:
    """Whether this machine has labs: root, the tools, and a kernel that lets them."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip"):
        return False
    return weft("lab", "ring:2", "--", "true").returncode == 0


needs_lab = pytest.mark.skipif(not _may_be_made(), reason="needs root and network namespaces")


def in_lab(*arguments: str, command: list[str]) -> tuple[dict[str, Any], str]:
    """Run a command in a lab; the figures, and what was printed."""
    done = weft("lab", *arguments, "--json", "--", *command)
    assert done.returncode == 0, (done.stdout, done.stderr)
    figures = json.loads(done.stdout)
    assert figures["exit_code"] == 0
    return figures, done.stderr


def sent(*transfers: str) -> list[str]:
    """A command that sends, such as ``0>1:100000`` or over the second way ``0>1.1:100000``."""
    return [sys.executable, SENDER, *transfers]


def carried(figures: dict[str, Any], least: int) -> list[str]:
    """The links that carried so many bytes."""
    return sorted(row["link_name"] for row in figures["per_link"] if row["sent_bytes"] >= least)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "lab", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


SAY_NETWORK = ["sh", "-c", "readlink /proc/self/ns/net; sleep 300 & sleep 300"]


def networks_said(lab: subprocess.Popen[str], ranks: int) -> set[str]:
    """The namespaces in which `SAY_NETWORK` runs."""
    assert lab.stdout is not None
    found = [re.findall(r"net:\[\d+\]", lab.stdout.readline()) for _ in range(ranks)]
    return {name for names in found for name in names}


def nothing_left(networks: set[str], patience_s: float = 20) -> bool:
    """Whether no process is in these namespaces, and none of them has a name."""

    def gone() -> bool:
        named = Path("/proc/self/mountinfo").read_text()
        return not (networks & _used()) and not any(name in named for name in networks)

    return _comes_true(gone, patience_s)


def _used() -> set[str]:
    found = set()
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(os.readlink(link))
        except OSError:
            continue  # it just ended
    return found


def _comes_true(condition: Callable[[], bool], patience_s: float) -> bool:
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def devices() -> list[str]:
    """The network devices outside of labs."""
    return sorted(os.listdir("/sys/class/net"))

"""The judge and the planners where threads or memory are not to be had."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import COMMAND

# New threads get stacks as large as the limit says, for which there is no room.
NO_THREADS = """
import resource, os, sys
resource.setrlimit(resource.RLIMIT_STACK, (64 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1]))
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy's own complain aloud
os.execv(sys.argv[1], sys.argv[1:])
"""


def without_threads(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", NO_THREADS, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_there_are_no_threads_to_be_had() -> None:
    """That what the next tests rely on works."""
    code = "import threading; threading.Thread(target=print).start()"
    assert "can't start new thread" in without_threads(sys.executable, "-c", code).stderr


@pytest.mark.parametrize(
    ("job", "output"),
    [
        (["torus:8x8", "all-gather", "--method", "matching", "--chunks", "4"], "traces"),
        (["mesh:8x8", "all-to-all"], "table.json"),
        (["torus:32x32", "all-gather", "--method", "rounds"], "log.weft"),
        (["mesh:6x6", "all-reduce", "--method", "steiner"], "store.weft"),
        (["mesh:16x16", "all-reduce", "--method", "periodic", "--chunks", "64"], "trees.weft"),
    ],
)
def test_one_thread_does_it_all(tmp_path: Path, job: list[str], output: str) -> None:
    target = str(tmp_path / output)
    args = ["synth", *job, "--size", "1MiB", "--threads", "4"]
    if output.endswith(".json"):
        args, also = [*args, "-o", str(tmp_path / "folder")], ["convert", str(tmp_path / "folder")]
    else:
        args, also = [*args, "-o", target], ["show", target]
    for rest in (args, [*also, target] if also[0] == "convert" else also, ["verify", target]):
        done = without_threads(*COMMAND, *rest)
        assert (done.returncode, done.stderr) == (0, "")


# Judges over and over, each time with a little more memory to be had. That may be enough or not,
# but it must not end the process.
STARVED = """
import resource, sys
import numpy as np
import weft
from weft.judge import verify
from weft import _core

def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

topology, method, chunks = sys.argv[1], sys.argv[2], int(sys.argv[3])
algorithm = weft.synthesize(topology, "all-gather", "64MiB", chunks=chunks, method=method).algorithm
if method != "rounds":
    algorithm.transfers
outcomes = set()
assert verify(algorithm)
for step in range(60):
    limit = used() + step * (512 << 10)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        outcomes.add(bool(verify(algorithm)))
    except MemoryError:
        outcomes.add(None)
    except weft.InputError as error:
        assert "memory" in str(error)
        outcomes.add(None)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert outcomes <= {None, True}, outcomes
"""


@pytest.mark.parametrize(
    "case", [("mesh:10x10", "direct", "2"), ("torus:32x32", "rounds", "1")], ids=str
)
def test_memory_that_is_not_to_be_had_is_an_error(case: tuple[str, ...]) -> None:
    # What is freed goes back at once, so that it must be had again.
    given = {"MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_TRIM_THRESHOLD_": "0"}
    done = subprocess.run(
        [sys.executable, "-c", STARVED, *case],
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a compiler")
def test_what_threads_throw_reaches_the_caller(tmp_path: Path) -> None:
    """With room for four threads, and for none but the caller's."""
    here = Path(__file__).parent
    program, core = str(tmp_path / "check"), str(here.parents[1] / "cpp")
    build = ["c++", "-std=c++20", "-pthread", f"-I{core}", str(here / "threads_check.cpp")]
    subprocess.run([*build, "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"4\n"
    assert without_threads(program).stdout == "1\n"

"""The kernels' own tests, in C++: `make test-cpp`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def has_doctest() -> bool:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        return False
    command = [compiler, "-E", "-x", "c++", "-include", "doctest/doctest.h", os.devnull]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not has_doctest(), reason="doctest (Debian: doctest-dev) is not installed")
def test_kernels():
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    if not shutil.which("cmake") and not (Path(sys.executable).parent / "cmake").exists():
        pytest.skip("CMake is not installed")
    done = subprocess.run(["make", "test-cpp"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]

"""Runs the real command, as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-c", "from weft.cli import main; main()"]


def weft(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args], capture_output=True, text=True, cwd=cwd, timeout=600, check=False
    )


def refused(*args: str, cwd: Path | None = None) -> str:
    """What stderr says: one sentence, exit code 2, nothing else."""
    done = weft(*args, cwd=cwd)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines
    if not lines[0].startswith("Usage:"):
        assert len(lines) == 1, done.stderr
    return lines[-1]

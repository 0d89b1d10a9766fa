"""What the Makefile installs into its environment: ``python tools/install.py core|dev|docs``.

``core`` installs what Weft needs to run and builds it, ``dev`` what its tests and linters need,
``docs`` what its pages need. The core is built in place: a change compiles only what it touches.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import deque
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
STEP = re.compile(r"\[\s*(?:(\d+)/(\d+)|(\d+)%)\] (?:Building|Linking)")
REPORTS = 10  # where the output is no terminal
LAST_LINES = 60


def main(what: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if what != "core":
        install(f"what {what} needs", project["project"]["optional-dependencies"][what])
        return
    install("what Weft needs to run", project["project"]["dependencies"])
    install("what its core is built with", project["build-system"]["requires"])
    install("", backend_requirements())
    build()


def install(title: str, requirements: list[str]) -> None:
    if requirements:
        if title:
            print(f"Installing {title}: {', '.join(requirements)}", flush=True)
        subprocess.run([*PIP, "--quiet", *requirements], check=True)


def backend_requirements() -> list[str]:
    """CMake and Ninja, if the machine has none: only the build backend knows."""
    from scikit_build_core.build import get_requires_for_build_editable

    return list(get_requires_for_build_editable({}))


def build() -> None:
    """Compile the core, counting files; print the compiler's words only if it fails."""
    print("Building Weft's core (C++; some minutes the first time)", flush=True)
    command = [*PIP, "--verbose", "--no-build-isolation", "--no-deps", "--editable", str(ROOT)]
    lines: deque[str] = deque(maxlen=LAST_LINES)
    shown = -1
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            lines.append(line)
            step = STEP.search(line)
            if step is None:
                continue
            done, total, percent = (int(part) if part else 0 for part in step.groups())
            shown = report(percent or done * 100 // max(total, 1), shown)
    if running.returncode:
        sys.exit("".join(["\n", *lines, "Weft's core could not be built: see above"]))
    if shown >= 0 and sys.stdout.isatty():
        print()


def report(percent: int, shown: int) -> int:
    """Say how far the build is, a line every few percent where there is no terminal."""
    if sys.stdout.isatty():
        print(f"\r  compiled {percent:3d} %", end="", flush=True)
    elif percent // REPORTS == shown // REPORTS:
        return shown
    else:
        print(f"  compiled {percent} %", flush=True)
    return percent


if __name__ == "__main__":
    main(sys.argv[1])

"""The command on good input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weft as package
from tests.cli.command import COMMAND, weft

KEYS = {
    *("topology", "npus", "collective", "size_bytes", "chunks", "time_us", "lower_bound_us"),
    *("bound_kind", "ideal_us", "efficiency", "algbw_GBps", "busbw_GBps", "transfers"),
    *("synthesis_s", "method", "seed", "latency_model", "verified"),
}


@pytest.mark.parametrize(
    "command", [["--help"], ["-h"], ["synth", "--help"], ["verify", "-h"], ["topo", "show", "-h"]]
)
def test_help(command: list[str]) -> None:
    done = weft(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage:")


def test_version() -> None:
    done = weft("--version")
    assert done.returncode == 0
    assert package.__version__ in done.stdout


def test_the_package_runs() -> None:
    command = [sys.executable, "-m", "weft", "topo", "show", "ring:4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ring:4" in done.stdout


def test_the_script_is_installed() -> None:
    script = shutil.which("weft", path=os.path.dirname(sys.executable))
    assert script is not None
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert package.__version__ in done.stdout


def test_synth_prints_a_table() -> None:
    done = weft("synth", "mesh:4x4", "all-gather", "--size", "16MiB")
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("all-gather on mesh:4x4", "lower bound", "efficiency", "bus bandwidth", "yes"):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("collective", "chunks", "cut", "shown"),
    [
        ("broadcast", 3, "1MiB in 3 chunks of up to 341.3KiB", "3 chunks, of up to"),
        ("reduce", 1, "1MiB in 1 chunk of 1MiB", "1 chunk, of up to"),
        ("reduce", 1024, "1MiB in 1,024 chunks of 1KiB", "1,024 chunks, of up to"),
        ("gather", 4, "1MiB in 4 chunk(s) per share", "4 chunk(s) per share, of up to"),
    ],
)
def test_what_is_all_of_one_root_has_no_shares(
    collective: str, chunks: int, cut: str, shown: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "a.weft")
    args = ("switch:4", collective, "--size", "1MiB", "--chunks", str(chunks), "-o", path)
    assert f"│ {cut} " in weft("synth", *args).stdout
    assert shown in " ".join(weft("show", path).stdout.replace("│", " ").split())


def test_synth_prints_json() -> None:
    args = ["--size", "1GiB", "--bandwidth", "50GiB/s", "--latency", "0.5us", "--chunks", "1"]
    args += ["--latency-model", "blocking", "--seed", "3", "--trials", "2", "--threads", "1"]
    done = weft("synth", "mesh:5x5", "all-gather", *args, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert facts.keys() >= KEYS
    assert facts["time_us"] == pytest.approx(9606)
    assert facts["lower_bound_us"] == pytest.approx(9606)
    assert facts["efficiency"] == pytest.approx(facts["lower_bound_us"] / facts["time_us"])
    assert facts["algbw_GBps"] == pytest.approx((1 << 30) / 9606e-6 / 1e9)
    assert facts["busbw_GBps"] == pytest.approx(facts["algbw_GBps"] * 24 / 25)
    assert (facts["npus"], facts["chunks"], facts["seed"]) == (25, 1, 3)
    assert facts["transfers"] == 25 * 24
    assert facts["size_bytes"] == 1 << 30
    assert facts["latency_model"] == "blocking"
    assert facts["verified"] is True


def test_one_npu_needs_no_transfer() -> None:
    facts = json.loads(weft("synth", "ring:1", "all-reduce", "--size", "1B", "--json").stdout)
    assert (facts["time_us"], facts["efficiency"], facts["transfers"]) == (0, 1, 0)


def test_without_a_link() -> None:
    args = ["synth", "mesh:3x3", "all-reduce", "--size", "9kB", "--without-link", "3-4"]
    done = weft(*args, "--without-npu", "8", "--json")
    assert json.loads(done.stdout)["npus"] == 8
    assert json.loads(done.stdout)["verified"] is True


def test_save_and_verify(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    args = ["synth", "ring:4", "all-reduce", "--size", "1MiB", "-o", str(folder)]
    assert weft(*args).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == [f"weft.{n}.et" for n in range(4)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    done = weft("verify", str(folder))
    assert (done.returncode, done.stdout) == (0, f"{folder}: verified\n")
    done = weft("verify", str(folder), "--json")
    assert json.loads(done.stdout)["verified"] is True
    # Once more into the same folder: what Weft wrote, Weft may replace.
    assert weft(*args, "--seed", "1").returncode == 0


def test_a_wrong_algorithm(tmp_path: Path) -> None:
    from tests.judge.mutate import change, drop

    right = package.synthesize("ring:4", "all-gather", 4096).algorithm
    for name, wrong in {
        "dropped": drop(right, 0),
        "early": change(right, len(right.transfers) - 1, shift=-1),
    }.items():
        folder = tmp_path / name
        package.formats.write(wrong, folder)
        done = weft("verify", str(folder))
        assert done.returncode == 1, done.stderr
        assert done.stdout.startswith(f"{folder}: ")
        assert "verified" not in done.stdout
        assert len(done.stdout.splitlines()) == 1
        facts = json.loads(weft("verify", str(folder), "--json").stdout)
        assert facts["verified"] is False
        assert facts["violation"]


def test_topo_show(tmp_path: Path) -> None:
    done = weft("topo", "show", "mesh:4x4")
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("NPUs", "16", "diameter", "bisection", "into each NPU"):
        assert text in done.stdout
    for name in ("net.yaml", "net.json"):
        assert weft("topo", "show", "h100:2", "-o", str(tmp_path / name)).returncode == 0
        facts = json.loads(weft("topo", "show", str(tmp_path / name), "--json").stdout)
        assert facts["npus"] == 16
        args = ["synth", str(tmp_path / name), "all-gather", "--size", "1MiB", "--json"]
        assert json.loads(weft(*args).stdout)["verified"] is True


def test_a_closed_pipe_is_no_error() -> None:
    command = " ".join(f"'{part}'" for part in COMMAND)
    done = subprocess.run(
        ["bash", "-c", f"{command} topo show mesh:4x4 --json | true"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


def _heed_interrupts() -> None:
    """Background jobs of a shell begin with interrupts ignored, and hand that down."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


ENDINGS = {signal.SIGINT: (130, "weft: interrupted"), signal.SIGTERM: (143, "weft: terminated")}


def _started(args: list[str]) -> subprocess.Popen[str]:
    """The command, once it is at work, in a thread of its own."""
    running = subprocess.Popen(
        [*COMMAND, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    while running.poll() is None and len(os.listdir(f"/proc/{running.pid}/task")) == 1:
        time.sleep(0.01)
    return running


@pytest.mark.parametrize(
    ("number", "patience"), [(signal.SIGINT, 1.0), (signal.SIGINT, 3.0), (signal.SIGTERM, 1.0)]
)
@pytest.mark.parametrize(
    "job",
    [
        ["mesh:80x80", "all-gather", "--chunks", "4"],
        ["mesh:30x30", "all-reduce", "--parallel", "a=30,b=30", "--along", "a"],
        ["leaf-spine:16x16x4,multicast", "all-gather", "--chunks", "8", "--method", "matching"],
    ],
)
def test_interrupt(tmp_path: Path, job: list[str], patience: float, number: signal.Signals) -> None:
    args = ["synth", *job, "--size", "1GiB", "-o", str(tmp_path / "out")]
    with _started(args) as running:
        time.sleep(patience)
        assert running.poll() is None
        running.send_signal(number)
        out, err = running.communicate(timeout=300)
    assert (running.returncode, err.strip(), out) == (*ENDINGS[number], "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ENDINGS)
def test_two_interrupts(number: signal.Signals) -> None:
    """Whoever does not wait for the first to be heeded gets no crash to see."""
    args = ["compare", "mesh:24x24", "all-reduce", "--sizes", "1KiB", "--chunks", "8"]
    with _started(args) as running:
        time.sleep(1)
        running.send_signal(number)
        time.sleep(0.02)
        running.send_signal(number)
        out, err = running.communicate(timeout=300)
    assert (running.returncode, err.strip(), out) == (*ENDINGS[number], "")


@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize(
    "module", ["click", "weft.cli.synth", "weft.synthesis", "numpy", "weft._core", "weft.bounds"]
)
def test_interrupt_while_importing(module: str, number: signal.Signals) -> None:
    """No import is broken off: modules in C may abort then."""
    code = f"""
import os, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), {int(number)})
                sum(range(1000))  # a signal is heeded at the next step
            except KeyboardInterrupt:
                print("broken off")
                raise
sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = ["synth", "ring:4", "all-gather", "--size", "4KiB"]
from weft.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        preexec_fn=_heed_interrupts,
        check=False,
    )
    assert (done.returncode, done.stderr.strip(), done.stdout) == (*ENDINGS[number], "")


def test_termination_that_is_ignored_stays_so() -> None:
    args = ["synth", "ring:4", "all-gather", "--size", "4KiB", "--json"]
    code = "import os, signal; from weft.cli import interrupts, main; interrupts.heed_termination()"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; os.kill(os.getpid(), signal.SIGTERM); main()", *args],
        capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize("how", ["synth", "export"])
def test_interrupt_while_saving(tmp_path: Path, how: str, number: signal.Signals) -> None:
    """The folder being written disappears again, whichever thread writes it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    synth = ["synth", "mesh:40x40", "all-gather", "--size", "1GiB", "--chunks", "1"]
    args = [*synth, "-o", str(folder / "out")]
    if how == "export":
        store = str(tmp_path / "algorithm.weft")
        assert weft(*synth, "-o", store).returncode == 0
        args = ["export", "astra-sim", store, "-o", str(folder / "out")]
    with _started(args) as running:
        while running.poll() is None and not list(folder.iterdir()):
            time.sleep(0.01)
        running.send_signal(number)
        _, err = running.communicate(timeout=300)
    assert (running.returncode, err.strip()) == ENDINGS[number]
    assert list(folder.iterdir()) == []


def test_nothing_heavy_is_imported() -> None:
    """`import weft` and `weft --help` must answer at once."""
    for code in ("import weft", "import sys; sys.argv[1:] = ['--help']; from weft.cli import main"):
        run = "\ntry: main()\nexcept SystemExit: pass" if "main" in code else ""
        check = "\nimport sys; print([m for m in ('numpy', 'rich') if m in sys.modules])"
        done = subprocess.run(
            [sys.executable, "-c", code + run + check], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "[]"


def test_public_names() -> None:
    assert package.__all__ == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    assert set(package.__all__) == set(package._HOME)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing

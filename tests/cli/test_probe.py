"""``weft probe``: on real processes, with good and bad input."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from tests.cli.command import COMMAND, refused
from tests.cli.command import weft as command

QUICK = ("--time", "100ms", "--repeats", "1")


def test_a_file_that_can_be_planned_on(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    where = ("--ranks", "3", "--transport", "tcp", "-o", str(path))
    done = command("probe", *where, *QUICK, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    net = weft.load_topology(path)
    rates = [one["bandwidth_GBps"] for one in found["links"]]
    assert net.bandwidth / 1e9 == pytest.approx(rates)
    assert net.notes[0] == f"probed over TCP, median of 1: {found['structure']}"
    assert net.labels is not None
    assert net.labels.hosts[0] == socket.gethostname()
    assert weft.synthesize(net, "all-reduce", "1MiB").verdict


def test_a_network_that_is_given(tmp_path: Path) -> None:
    """Its links stay as they are, and --scale turns rates into those at full size."""
    path = tmp_path / "net.json"
    given = ("--topology", "ring:3", "--scale", "0.001", "-o", str(path))
    done = command("probe", *given, *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    assert "probed ring:3" in done.stdout
    net, ring = weft.load_topology(path), weft.load_topology("ring:3")
    assert net.src.tolist() == ring.src.tolist()
    assert (net.bandwidth > 10**9).all()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "--ranks or --topology"),
        (("--ranks", "1"), "1 ranks"),
        (("--ranks", "3", "--topology", "ring:4"), "4 NPUs, but there are 3"),
        (("--ranks", "2", "-o", ""), "--output is empty"),
        (("--ranks", "2", "-o", "net.txt"), "net.txt"),
        (("--ranks", "2", "-o", "none/net.yaml"), "none"),
        (("--ranks", "2", "--time", "10"), "unit"),
        (("--ranks", "2", "--time", "0"), "more than 0"),
        (("--ranks", "2", "--repeats", "0"), "1 or more"),
        (("--ranks", "2", "--rank", "0"), "go together"),
        (("--ranks", "2", "--transport", "udp"), "transport"),
    ],
)
def test_bad_input(args: tuple[str, ...], words: str, tmp_path: Path) -> None:
    assert words in refused("probe", *args, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def together(ranks: int, *args: str) -> list[subprocess.CompletedProcess[str]]:
    """The command on ranks that meet over TCP."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
    words = [*COMMAND, "probe", *args, "--ranks", str(ranks), "--rendezvous", place]
    started = [
        subprocess.Popen(
            [*words, "--rank", str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    said = [one.communicate(timeout=120) for one in started]
    return [
        subprocess.CompletedProcess(words, one.returncode, *texts)
        for one, texts in zip(started, said, strict=True)
    ]


def test_ranks_of_several_hosts(tmp_path: Path) -> None:
    """Rank 0 writes and prints; if it cannot write, all end alike."""
    path = tmp_path / "net.yaml"
    done = together(3, *QUICK, "-o", str(path))
    assert [one.returncode for one in done] == [0] * 3, done[0].stderr
    assert [bool(one.stdout) for one in done] == [True, False, False]
    assert weft.load_topology(path).npus == 3
    bad = together(2, *QUICK, "-o", str(tmp_path / "none" / "net.yaml"))
    assert [one.returncode for one in bad] == [2] * 2
    assert all("none" in one.stderr for one in bad)


def test_under_mpiexec(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which(
        "mpiexec"
    )
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    path = tmp_path / "net.yaml"
    words = [mpiexec, "-n", "4", *COMMAND, "probe", "--topology", "switch:4", *QUICK]
    done = subprocess.run(
        [*words, "-o", str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert weft.load_topology(path).switches == 1

"""A lab as users start it: what commands are told, how they end, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cli.command import refused, weft
from tests.lab.running import (
    SAY_NETWORK,
    devices,
    in_lab,
    needs_lab,
    networks_said,
    nothing_left,
    start,
)

FAKE_MPIEXEC = """#!/bin/sh
while read host; do "$HYDRA_LAUNCHER_EXEC" -x "$host" echo '"on $(hostname) at $WEFT_NPU"'; done \\
    < "$HYDRA_HOST_FILE"
"""


@needs_lab
def test_commands_are_told_who_they_are() -> None:
    words = "echo $WEFT_RANK/$WEFT_RANKS $RANK/$WORLD_SIZE $(hostname) $WEFT_RENDEZVOUS $WEFT_SCALE"
    done = weft("lab", "ring:3", "--scale", "1e-3", "--", "sh", "-c", words)
    assert done.returncode == 0
    told = sorted(done.stdout.splitlines(), key=lambda line: line[:2] != "0/")
    where = "198.19.0.1:29400 0.001"
    assert told[0] == f"0/3 0/3 npu0 {where}"
    assert sorted(told[1:]) == [f"[{r}] {r}/3 {r}/3 npu{r} {where}" for r in (1, 2)]
    assert "Links of ring:3" in done.stderr


@needs_lab
def test_mpiexec_starts_its_ranks_on_all_hosts(tmp_path: Path) -> None:
    script = tmp_path / "mpiexec"
    script.write_text(FAKE_MPIEXEC)
    script.chmod(0o755)
    done = weft("lab", "line:3", "--", str(script))
    assert done.stdout.splitlines() == [f"on npu{npu} at {npu}" for npu in range(3)]
    _, said = in_lab("line:3", "--once", command=["sh", "-c", "hostname; getent hosts npu2"])
    assert said.split()[:3] == ["npu0", "198.19.0.3", "npu2"]


@needs_lab
@pytest.mark.parametrize(("words", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_a_rank_that_fails_ends_the_others(words: str, code: int) -> None:
    done = weft("lab", "ring:3", "--", "sh", "-c", f"[ $RANK = 1 ] && {words}; sleep 300")
    assert done.returncode == code
    assert f"weft: rank 1 ended with exit code {code}" in done.stderr


@needs_lab
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_lab_that_is_ended(number: signal.Signals) -> None:
    before = devices()
    lab = start("ring:2", "--", *SAY_NETWORK)
    networks = networks_said(lab, 2)
    assert len(networks) == 2
    assert os.readlink("/proc/self/ns/net") not in networks
    lab.send_signal(number)
    _, errors = lab.communicate(timeout=60)
    assert lab.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert "Traceback" not in errors
    assert nothing_left(networks)
    assert devices() == before


@needs_lab
def test_nothing_is_left_when_the_first_process_inside_is_killed() -> None:
    lab = start("ring:2", "--", *SAY_NETWORK)
    networks = networks_said(lab, 2)
    children = Path(f"/proc/{lab.pid}/task/{lab.pid}/children").read_text().split()
    (inside,) = children
    os.kill(int(inside), signal.SIGKILL)
    lab.communicate(timeout=60)
    assert lab.returncode == 137
    assert nothing_left(networks)


@needs_lab
def test_labs_side_by_side_do_not_meet() -> None:
    labs = [start("ring:2", "--", *SAY_NETWORK) for _ in range(2)]
    networks = [networks_said(lab, 2) for lab in labs]
    assert not networks[0] & networks[1]
    labs[0].terminate()
    labs[0].communicate(timeout=60)
    assert nothing_left(networks[0])
    assert not nothing_left(networks[1], patience_s=0)
    labs[1].kill()
    labs[1].communicate(timeout=60)
    assert nothing_left(networks[1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ring:4"], "there is no command to run"),
        (["ring:4", "--", "no-such-command"], "there is no command 'no-such-command'"),
        (["no-such-network", "--", "true"], "no-such-network"),
        (["ring:4", "--scale", "x", "--", "true"], "x"),
        (["ring:4", "--scale", "0", "--", "true"], "--scale is 0"),
        (["ring:4", "--plan", "no-such-file", "--", "true"], "no-such-file"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str) -> None:
    assert words in refused("lab", *arguments)


def test_json_of_the_command_is_its_own() -> None:
    """An error is a sentence, although --json stands after the two dashes."""
    assert "no-such-command" in refused("lab", "ring:4", "--", "no-such-command", "--json")
    done = weft("lab", "ring:4", "--json", "--", "no-such-command")
    assert json.loads(done.stdout)["exit_code"] == 2


def test_users_without_the_right_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.errors import InputError
    from weft.lab import in_own_space

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match="a lab needs root"):
        in_own_space(lambda: 0)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="a lab needs the command ip"):
        in_own_space(lambda: 0)

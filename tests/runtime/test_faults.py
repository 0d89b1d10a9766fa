"""Ranks that die, hang or disagree: all others raise, and nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.examples import factor
from tests.runtime.work import Said, endless, odd_one, two_ways, wrong_buffer
from weft.runtime import (
    Communicator,
    Ranks,
    StalledError,
    local,
)

PLAN = weft.synthesize("mesh:2x2", "all-reduce", "256KiB").algorithm
OTHER = weft.synthesize("mesh:2x2", "all-reduce", "256KiB", chunks=1).algorithm


def survivors(ranks: Ranks, victim: int, after_s: float, number: int) -> list[Said]:
    """What the other ranks say."""
    for pipe in ranks._pipes:
        pipe.send((endless, (PLAN, victim, after_s, number)))
    found = []
    for rank, pipe in enumerate(ranks._pipes):
        if rank != victim:
            assert pipe.poll(30), f"rank {rank} hangs"
            right, said = pipe.recv()
            assert right, said
            found.append(said)
    ranks.processes[victim].kill()
    return found


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_killed_rank(transport: str) -> None:
    rng = random.Random(transport)
    for _ in range(2 * factor):
        victim = rng.randrange(4)
        with local(4, transport, timeout_s=5) as ranks:
            for kind, words, peer, usable in survivors(
                ranks, victim, rng.random() * 0.1, signal.SIGKILL
            ):
                assert (kind, peer) == ("LostError", victim), words
                assert not usable
        assert not any(name.startswith("weft") for name in os.listdir("/dev/shm"))


@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize("victim", [0, 3])
def test_a_rank_that_hangs(transport: str, victim: int) -> None:
    with local(4, transport, timeout_s=1) as ranks:
        for kind, words, peer, usable in survivors(ranks, victim, 0.05, signal.SIGSTOP):
            assert kind == "StalledError"
            assert peer == victim, words
            assert not usable


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"plan": 1}, "different plan"),
        ({"count": 65}, "65"),
        ({"dtype": "int32"}, "different dtype: f32 and i32"),
        ({"op": "max"}, "different op: sum and max"),
    ],
)
def test_ranks_that_disagree(how: dict[str, Any], words: str) -> None:
    with local(4, timeout_s=5) as ranks:
        for kind, said, _, usable in ranks.run(odd_one, 2, [PLAN, OTHER], how):
            assert kind == "DisagreementError"
            assert words in said
            assert not usable


def test_a_plan_that_was_agreed_on_is_compared_again() -> None:
    with local(4, timeout_s=3) as ranks:
        assert "DisagreementError" in ranks.run(two_ways, PLAN, OTHER)


def test_a_rank_with_a_wrong_buffer_tells_the_others() -> None:
    with local(4, timeout_s=20) as ranks:
        found = ranks.run(wrong_buffer, PLAN)
        assert "64 and 63 elements" in found[1]
        assert all("rank 1 failed" in found[rank] for rank in (0, 2, 3))


def test_a_rank_that_never_comes(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'meet'}"
    with pytest.raises(StalledError, match="rank 1 did not come"):
        Communicator.tcp(0, 2, address, timeout_s=0.3)
    with pytest.raises(StalledError, match="nobody listens"):
        Communicator.tcp(1, 2, f"unix:{tmp_path / 'other'}", timeout_s=0.3)

"""What is shown while something takes long: which phase, how much of it, never backwards."""

from __future__ import annotations

import threading
import time

import pytest

from weft import synthesize
from weft.cli import progress as progress_module
from weft.cli.progress import Sight, run
from weft.progress import Tracker


class Heard(Tracker):
    """Writes down the phases."""

    def __init__(self) -> None:
        super().__init__()
        self.phases: list[str] = []

    def enter(self, phase: str) -> None:
        self.phases.append(phase)
        super().enter(phase)


def test_phases_are_named() -> None:
    heard = Heard()
    synthesize("mesh:3x3", "all-reduce", "9KiB", chunks=2, progress=heard)
    planning = [phase for phase in heard.phases if phase.startswith("planning")]
    assert planning[0] == "planning (matching, 18 chunks)"
    assert "planning (trees, 18 chunks)" in planning
    assert heard.phases[-3:] == ["trying classical algorithms", "verifying", "bounding"]


def test_trials_side_by_side_are_one_phase() -> None:
    heard = Heard()
    synthesize("mesh:2x2", "broadcast", "1KiB", chunks=1, trials=5, threads=2, progress=heard)
    assert "planning (trials 2 to 3 of 5)" in heard.phases
    assert "planning (trials 4 to 5 of 5)" in heard.phases
    later = heard.phases[heard.phases.index("planning (trials 2 to 3 of 5)") :]
    assert not any("chunk" in phase for phase in later)


def test_what_is_shown_never_goes_backwards() -> None:
    progress = Tracker()
    sight = Sight("reading")
    assert sight.look(progress.now()) == ("reading", None)
    progress.enter("planning")
    assert sight.look(progress.now()) == ("planning", None)
    progress.begin(4)
    shares = [sight.look(progress.now())[1]]
    for _ in range(4):
        progress.advance()
        shares.append(sight.look(progress.now())[1])
    assert shares == [0, 0.25, 0.5, 0.75, 0.99]
    progress.begin(100)
    assert sight.look(progress.now()) == ("planning, stage 2", 0)
    progress.enter("verifying")
    assert sight.look(progress.now()) == ("verifying", None)


def test_a_step_stands_before_the_phase() -> None:
    progress = Tracker()
    sight = Sight("comparing")
    progress.begin_step("3 of 20: ring")
    assert sight.look(progress.now()) == ("3 of 20: ring", None)
    progress.enter("verifying")
    assert sight.look(progress.now())[0] == "3 of 20: ring: verifying"


def test_kernels_do_no_more_than_they_said() -> None:
    """A stage's whole is known when it begins: what is added later would take the bar back."""
    for spec, kind, method in (
        ("mesh:4x4", "all-gather", "matching"),
        ("mesh:4x4", "all-reduce", "trees"),
        ("torus:4x4", "all-to-all", "symmetric"),
        ("mesh:10x10", "all-to-all", "unicast"),
    ):
        progress = Tracker()
        synthesize(spec, kind, "1MiB", chunks=1, method=method, progress=progress)
        assert progress.done <= progress.total


def test_stages_of_a_large_all_to_all() -> None:
    """Routes are found, and then scheduled: two stages, each with its own whole."""

    class Begun(Heard):
        def enter(self, phase: str) -> None:
            if self.stage:
                self.phases.append(f"{self.stage} stages, {self.done} of {self.total}")
            super().enter(phase)

    begun = Begun()
    synthesize("mesh:10x10", "all-to-all", "1MiB", chunks=1, method="unicast", progress=begun)
    assert begun.phases[0] == "planning (unicast, 10,000 chunks)"
    stages, done, total = (int(word) for word in begun.phases[1].split() if word.isdigit())
    assert stages >= 2
    assert done == total > 0


def test_an_interrupt_as_the_work_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is still at work when the interpreter ends would abort the process."""
    begin = threading.Thread.start

    def start(self: threading.Thread) -> None:
        begin(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(progress_module, "ignore_more", lambda: None)
    cleared_up = []

    def work(_progress: Tracker) -> None:
        try:
            while True:
                time.sleep(0.001)
        finally:
            cleared_up.append(True)

    with pytest.raises(KeyboardInterrupt):
        run("working", work)
    assert cleared_up

"""Long calls of the API: a hook hears how far they are, and Ctrl-C ends them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import weft
from weft.progress import Progress, Tracker, all_ended, run
from weft.threads import in_threads

PATIENCE_S = 20  # an interrupt is answered within a second, but machines may be slow


def test_a_hook_hears_of_phases_in_the_waiting_thread() -> None:
    heard: list[tuple[Progress, threading.Thread]] = []

    def work(report: Tracker) -> threading.Thread:
        report.enter("digging")
        report.begin(5)
        report.advance()
        while not heard or heard[-1][0].done == 0:
            time.sleep(0.001)
        report.enter("filling")
        return threading.current_thread()

    worker = run(work, lambda seen: heard.append((seen, threading.current_thread())))
    assert Progress("digging", 1, 1, 5) in [seen for seen, _ in heard]
    assert heard[-1][0] == Progress("filling", 0, 0, 0)
    assert {thread for _, thread in heard} == {threading.current_thread()}
    assert worker is not threading.current_thread()


def test_synthesis_tells_its_hook() -> None:
    heard: list[weft.Progress] = []
    result = weft.synthesize("ring:4", "all-gather", "1MiB", progress=heard.append)
    assert result.verified
    assert heard[-1].phase == "bounding"


def test_what_a_hook_raises_ends_the_work() -> None:
    def hook(_: Progress) -> None:
        raise TimeoutError("enough")

    ended = []

    def work(report: Tracker) -> None:
        try:
            while True:
                report.check()
                time.sleep(0.001)
        finally:
            ended.append(True)

    with pytest.raises(TimeoutError, match="enough"):
        run(work, hook)
    assert ended
    assert all_ended(PATIENCE_S)


def test_work_that_begins_threads_can_be_ended() -> None:
    """The interrupt reaches the thread that works, never one that it is just about to begin."""

    def work(_: Tracker) -> None:
        while True:
            in_threads(str, range(4), 4)

    def hook(_: Progress) -> None:
        raise TimeoutError("enough")

    for _ in range(15):
        with pytest.raises(TimeoutError, match="enough"):
            run(work, hook)
        assert all_ended(PATIENCE_S)


def test_errors_of_the_work_are_raised() -> None:
    with pytest.raises(weft.InputError, match="unknown collective"):
        weft.synthesize("ring:4", "all-father", "1MiB")


def test_work_within_work_shares_its_progress_and_its_thread() -> None:
    def outer(report: Tracker) -> tuple[bool, bool]:
        here = threading.current_thread()
        return run(lambda inner: (inner is report, threading.current_thread() is here), None)

    assert run(outer, None) == (True, True)


def test_the_progress_of_a_caller_is_used_in_its_thread() -> None:
    report = Tracker()
    here = threading.current_thread()
    assert run(lambda own: (own is report, threading.current_thread() is here), report) == (
        True,
        True,
    )


def test_no_thread_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert run(lambda _: 7, None) == 7


# An interpreter that is interrupted in an import may end by the signal, whoever caught it.
WARM = "weft.compare('ring:4', 'all-to-all', '1KiB')"
BIG = "big = weft.synthesize('mesh:32x32', 'all-gather', '1GiB', chunks=1, method='rounds')"
LONG_CALLS = {
    "synthesize": (WARM, "weft.synthesize('mesh:24x24', 'all-to-all', '64MiB', chunks=1)"),
    "compare": (WARM, "weft.compare('mesh:16x16', 'all-reduce', '1KiB:1GiB')"),
    "verify": (BIG, "while True: weft.verify(big.algorithm)"),
    "simulate": (BIG, "while True: weft.simulate(big)"),
    "save": (BIG, "while True: big.save(folder + '/traces')"),
    "load": (
        BIG + "; big.save(folder + '/a.weft')",
        "while True: weft.load(folder + '/a.weft').time",
    ),
    "convert": (
        BIG + "; big.save(folder + '/a.weft')",
        "while True: weft.convert(folder + '/a.weft', folder + '/traces')",
    ),
    "bound": (WARM, "while True: weft.bound('mesh:20x20', 'all-to-all', '1GiB')"),
    "lower": (
        "from weft.workload import *\n"
        "save_transformer(Transformer(tp=16, dp=16, batch=16), folder + '/w')",
        "while True: weft.lower(folder + '/w', 'mesh:16x16')",
    ),
    "python": ("", "run(forever, None)"),
}
SCRIPT = """
import sys
import time
import weft
from weft.progress import run

folder = sys.argv[1]

def forever(report):
    while True:
        time.sleep(0.001)

{prepare}
try:
    print("begun", flush=True)
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(("prepare", "call"), LONG_CALLS.values(), ids=LONG_CALLS)
def test_ctrl_c_is_answered_soon(prepare: str, call: str, tmp_path: Path) -> None:
    def heed_interrupts() -> None:  # shells let background jobs ignore them
        signal.signal(signal.SIGINT, signal.default_int_handler)

    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(prepare=prepare, call=call), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        time.sleep(2)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        assert running.stdout.readline() == "interrupted\n"
        assert time.monotonic() - began < PATIENCE_S
        code = running.wait(2 * PATIENCE_S)
        assert code == 0
    assert not list(tmp_path.glob(".*")), "something half written was left behind"

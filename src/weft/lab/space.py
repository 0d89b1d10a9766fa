"""A space of its own: processes, networks and mounts that end with the process that made them.

A lab leaves nothing behind, however it ends, because nothing of it is outside: the first process of
a PID namespace takes all others with it, and network namespaces, their devices and mounts last as
long as something uses them. Names of namespaces are in mounts of the lab too, so labs do not meet.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from weft.errors import InputError, WeftError

NAMES = Path("/run/netns")  # where iproute2 looks for namespaces
FILES = Path("/dev/shm/weft-lab")

_NEW_MOUNTS, _NEW_HOSTNAME, _NEW_IPC = 0x20000, 0x4000000, 0x8000000  # CLONE_* of sched.h
_NEW_PIDS, _NEW_NETWORK = 0x20000000, 0x40000000
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_BIND, _RECURSIVELY, _PRIVATE = 0x1000, 0x4000, 0x40000  # MS_* of mount.h
_TOOLS = ("ip", "tc", "sysctl", "unshare")
_GRACE_S = 10  # for the processes of a lab to end by themselves
_INTERRUPTED, _NOBODY_READS = 130, 141

_libc = ctypes.CDLL(None, use_errno=True)


def check_machine() -> None:
    """Raise if this is no machine for a lab."""
    if sys.platform != "linux":
        raise InputError(f"a lab needs Linux and its network namespaces; this is {sys.platform}")
    if os.geteuid() != 0:
        raise InputError("a lab needs root, to make network namespaces; run it with sudo")
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            raise InputError(f"a lab needs the command {tool} (iproute2, procps, util-linux)")


def in_own_space(work: Callable[[], int]) -> int:
    """Run `work` in a child that has processes, networks and mounts of its own.

    Gives its exit code. Whatever ends the child, or this process, ends all that runs in there.

    Raises
    ------
    WeftError
        With the message of the one that `work` raised.
    """
    check_machine()
    sys.stdout.flush()
    sys.stderr.flush()
    alive, hold = os.pipe()
    said, say = os.pipe()
    child = _fork_into_new_pids()
    if child == 0:
        os.close(hold)
        os.close(said)
        os._exit(_guarded(work, alive, say))
    os.close(alive)
    os.close(say)
    os.write(hold, b"!")
    try:
        status = _waited(child)
    finally:
        os.close(hold)
        with os.fdopen(said) as pipe:
            message = pipe.read()
    if message:
        raise WeftError(message)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _fork_into_new_pids() -> int:
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        _call("unshare", _NEW_PIDS)
        child = os.fork()
        if child:
            _call("setns", own, _NEW_PIDS)  # later children stay here
        return child
    finally:
        os.close(own)


def _guarded(work: Callable[[], int], alive: int, say: int) -> int:
    """In the child: give the exit code, tell the parent of an error."""
    try:
        _call("prctl", _DEATH_SIGNAL, signal.SIGKILL)
        if os.read(alive, 1):  # otherwise the parent died before
            _settle()
            return work()
    except WeftError as error:
        os.write(say, str(error).encode())
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        return _NOBODY_READS
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
    return 2


def _settle() -> None:
    _call("unshare", _NEW_MOUNTS | _NEW_HOSTNAME | _NEW_IPC | _NEW_NETWORK)
    _mount("none", "/", "", _RECURSIVELY | _PRIVATE)
    _mount("proc", "/proc", "proc")
    NAMES.mkdir(parents=True, exist_ok=True)  # as iproute2 does
    for folder in (NAMES, FILES.parent):
        _mount("tmpfs", str(folder), "tmpfs")
    FILES.mkdir()


def end_all_others() -> None:
    """Kill whatever still runs in this space; only for the process that is first in one."""
    if not FILES.is_dir() or os.getpid() != 1:
        raise RuntimeError("not in a space of its own")
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def replace_file(path: str, content: Path) -> None:
    """Let processes of this space see other content in a file that all have."""
    _mount(str(content), path, "", _BIND)


def _mount(source: str, target: str, kind: str, flags: int = 0) -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), flags, None)


def _waited(child: int) -> int:
    try:
        return os.waitpid(child, 0)[1]
    except BaseException:
        os.kill(child, signal.SIGTERM)
        end = time.monotonic() + _GRACE_S
        while time.monotonic() < end:
            if os.waitpid(child, os.WNOHANG)[0]:
                raise
            time.sleep(0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def _call(name: str, *arguments: bytes | int | None) -> None:
    """A call of the C library, which Python 3.11 does not have."""
    if getattr(_libc, name)(*arguments) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise InputError(f"a lab cannot be made here: {name} failed with '{reason}'; it needs root")

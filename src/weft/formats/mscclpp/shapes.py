"""The operations of a plan by name, and how those that move data use what they name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """How the chunks that an operation names are used.

    Attributes
    ----------
    sources, targets
        What each chunk is, from the first on: ``l`` of this GPU, ``r`` of another, and the same
        in capitals if it is in packets. With a ``+`` there may be more like the last. ``w`` is the
        same place of all GPUs of a switch channel.
    adds
        Whether the sources are added up and the sum goes to all targets; else the k-th source
        goes to the k-th target.
    spreads
        Whether the one source goes to all targets.
    signals, flushes
        Whether a signal follows, and whether the port then waits until all is done.
    """

    sources: str
    targets: str
    adds: bool = False
    spreads: bool = False
    signals: bool = False
    flushes: bool = False


MOVES = {
    "copy": Shape("l", "l"),
    "put": Shape("l+", "r+"),
    "pws": Shape("l+", "r+", signals=True),
    "pwsf": Shape("l+", "r+", signals=True, flushes=True),
    "get": Shape("r+", "l+"),
    "re": Shape("ll+", "l", adds=True),
    "res": Shape("ll+", "lr+", adds=True),
    "rre": Shape("lr+", "l", adds=True),
    "rres": Shape("lr+", "lr+", adds=True),
    "ppkt": Shape("l+", "R+"),
    "rppkt": Shape("L", "R+", adds=True),
    "cpkt": Shape("l", "L"),
    "upkt": Shape("L", "l"),
    "repkt": Shape("lL+", "l", adds=True),
    "respkt": Shape("lL+", "lR+", adds=True),
    "recpkt": Shape("lL+", "lL", adds=True),
    "recspkt": Shape("lL+", "lLR+", adds=True),
    "glres": Shape("w", "w", adds=True),
    "gstore": Shape("l", "w", spreads=True),
    "gstorepkt": Shape("L", "W", spreads=True),
}
BY_PORT = frozenset({"put", "pws", "pwsf", "ppkt", "rppkt"})
SIGNALS = ("signal", "rlxsignal")
ON_CHANNELS = (*SIGNALS, "wait", "rlxwait", "flush")
OTHERS = ("nop", "barrier", "sem_acquire", "sem_release", "pipeline")
NOT_RUN = ("glre",)

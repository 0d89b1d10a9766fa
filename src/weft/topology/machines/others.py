"""Files of a cluster that describe no network, known so that the refusal can say what to take."""

from __future__ import annotations

import re

from weft.documents import Document

_MEASUREMENT = "a measurement, not what joins the GPUs or hosts"
_OTHERS = (
    (
        r"<graphs[\s>]",
        "holds the rings and trees that NCCL chose, not what joins the GPUs; expected what NCCL "
        "writes to NCCL_TOPO_DUMP_FILE",
    ),
    (
        r"NCCL INFO ",
        "is a log of NCCL; expected what NCCL writes to NCCL_TOPO_DUMP_FILE",
    ),
    (r"^#.*\bbusbw\b|^# nThread|\"nccl_version\"", f"is an output of nccl-tests: {_MEASUREMENT}"),
    (r"^# OSU ", f"is an output of the OSU micro-benchmarks: {_MEASUREMENT}"),
    (
        r"^ *#bytes +#iterations|RDMA_\w{1,16} \w{1,16} Test",
        f"is an output of perftest: {_MEASUREMENT}",
    ),
    (r"^memcpy [CS]|nvbandwidth", f"is an output of nvbandwidth: {_MEASUREMENT}"),
    (
        r"P2P=\w{1,16} (?:Bandwidth|Latency)",
        f"is an output of p2pBandwidthLatencyTest: {_MEASUREMENT}",
    ),
)


def what_else(document: Document) -> str | None:
    """What a file is that no reader takes; None if that is not known."""
    head = document.text[:65536]
    found = (what for pattern, what in _OTHERS if re.search(pattern, head, re.MULTILINE))
    return next(found, None)

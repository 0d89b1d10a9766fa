"""The time that ASTRA-sim will print for a bundle: its traces are run as it runs them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft import _core
from weft.arrays import Int64
from weft.export.astra_sim._forms import Form
from weft.replay.astra_sim import dimensions_of
from weft.topology.astra import AstraNetwork

MOST_MESSAGES = 1 << 24  # more would take gigabytes


def predicted_ns(form: Form, traces: Iterable[bytes], ranks: Int64) -> int | None:
    """When the last of `ranks` finishes on the congestion-aware backend.

    None if there are too many messages to find out.
    """
    if len(form.rows) > MOST_MESSAGES:
        return None
    custom = _core.RunRules.custom
    parts = [_core.read_rank(trace, rank, len(ranks), custom) for rank, trace in enumerate(traces)]
    (shape,) = form.shapes
    network = AstraNetwork([shape.name], [shape.size], [shape.gb], [shape.ns])
    graph = _core.RunGraph(parts)
    devices = ranks.astype(np.int32)
    run = _core.run_astra_traces(graph, False, True, devices, dimensions_of(network))
    return int(run.finish.max()) // 1000

"""A training step from end to end: how much of its communication computing does not hide."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from papers.figures import Bars
from papers.report import VERIFIED, Experiment, Setup, Table
from weft.cost import CostModel
from weft.replay import simulate_traces
from weft.replay.trace_run import KINDS
from weft.topology import load_topology
from weft.workload import Transformer, save_transformer

METHODS = ("auto", "ring", "direct", "rhd", "double-binary-tree", "themis")


@dataclass(frozen=True)
class Step:
    """A training step on a network, with collectives by one method."""

    network: str
    spec: str
    bandwidth: str
    layout: str
    model: Transformer
    method: str

    @property
    def name(self) -> str:
        return f"{self.network}, {self.layout}"

    @property
    def collectives(self) -> str:
        return "Weft" if self.method == "auto" else self.method


@dataclass(frozen=True)
class Measured:
    """How a step went: times in picoseconds; `compute` of the rank that computes most."""

    step: Step
    time: int
    compute: int
    verified: bool

    @property
    def exposed(self) -> int:
        """Communication that computing does not hide."""
        return self.time - self.compute


def steps(quick: bool) -> list[Step]:
    """Two layouts on two networks, by every method."""
    if quick:
        tiny = Transformer(tp=2, dp=2, layers=1, hidden=128, seq=64, batch=2)
        return [
            Step("2D Mesh 2x2", "mesh:2x2", "50GB/s", "tp 2, dp 2", tiny, method)
            for method in METHODS[:3]
        ]
    model = Transformer(layers=4, hidden=4096, seq=2048)
    layouts = {
        "dp 64": replace(model, dp=64, batch=64),
        "tp 8, dp 8": replace(model, tp=8, dp=8, batch=8),
    }
    networks = (
        ("2D Mesh 8x8", "mesh:8x8", "50GB/s"),
        ("3D-RFS 2x4x8", "ring:2*fc:4*switch:8", "200GB/s,100GB/s,50GB/s"),
    )
    return [
        Step(*network, layout, laid_out, method)
        for network in networks
        for layout, laid_out in layouts.items()
        for method in METHODS
    ]


def measure(step: Step) -> Measured:
    """Make the step's traces, lower their collectives, and run them."""
    network = load_topology(step.spec, step.bandwidth, "0.5us")
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder) / "step"
        save_transformer(step.model, traces)
        run = simulate_traces(traces, network, CostModel("blocking"), method=step.method)
    kernels = run.kind == KINDS.index("compute")
    held = np.zeros(run.ranks, dtype=np.int64)
    np.add.at(held, run.rank[kernels], (run.end - run.start)[kernels])
    assert run.lowered is not None
    judged = all(algorithm["verified"] for algorithm in run.lowered["algorithms"])
    return Measured(step, run.time, int(held.max()), judged and run.finished)


def training_setup(quick: bool) -> Setup:
    """The experiment."""

    def conclude(found: Sequence[Measured]) -> Experiment:
        best = {one.step.name: one.time for one in found if one.step.method == "auto"}
        rows = [
            (
                one.step.name,
                one.step.collectives,
                one.time / 1e9,
                one.compute / 1e9,
                one.exposed / 1e9,
                one.time / best[one.step.name],
                one.verified,
            )
            for one in found
        ]
        columns = ("step", "collectives", "time", "compute", "exposed communication")
        return Experiment(
            "training",
            "A training step",
            _text(found[0].step.model),
            [Table("Times in ms:", (*columns, "time over Weft's", VERIFIED), rows)],
            Bars(
                "A training step: compute, and communication that it does not hide",
                "ms",
                [f"{one.step.name}: {one.step.collectives}" for one in found],
                {
                    "compute": [one.compute / 1e9 for one in found],
                    "exposed communication": [one.exposed / 1e9 for one in found],
                },
                stacked=True,
            ),
        )

    return Setup(steps(quick), measure, conclude)


def _text(model: Transformer) -> str:
    return (
        f"One step of a transformer of {model.layers} layers, width {model.hidden}, "
        f"{model.seq} tokens a sequence, one sequence a data-parallel rank, "
        f"{model.flops / 1e12:g} TFLOP/s an NPU, made by `weft workload transformer`: forward, "
        "backward, All-Reduce of activations among tensor-parallel ranks and of gradients among "
        "data-parallel ones, which overlaps with the rest of the backward pass. Collectives are "
        "lowered to messages by `weft lower`, and the traces run on the network event by event. "
        "Each collective is planned as if it were alone, and where several overlap links serve "
        "first come first: there another method can end before Weft's. The paper's own models are "
        "not at hand: this is the same experiment on another model."
    )

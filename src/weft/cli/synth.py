"""``weft synth``: synthesize, verify and bound an algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weft.cli.options import NetworkOptions, topology_options

if TYPE_CHECKING:
    from weft.result import Result


@click.command()
@topology_options("TOPOLOGY")
@click.argument("collective")
@click.option("--size", required=True, metavar="SIZE", help="Largest buffer on an NPU: 64MiB, 1GB.")
@click.option(
    "--chunks",
    default="auto",
    metavar="K",
    show_default=True,
    help="Chunks each NPU's share is cut in.",
)
@click.option("--root", type=int, metavar="NPU", help="For rooted patterns; the first by default.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same result.")
@click.option(
    "--trials", type=int, default=1, show_default=True, help="Seeds to try; the best is kept."
)
@click.option("--threads", type=int, help="By default one a core; never changes the result.")
@click.option(
    "--latency-model",
    default="pipelined",
    metavar="pipelined|blocking",
    show_default=True,
    help="Whether α occupies the link (blocking, as in TACOS) or not (as in ASTRA-sim).",
)
@click.option(
    "--switching",
    default="cut-through",
    metavar="cut-through|store-and-forward",
    show_default=True,
    help="How a hop crosses switches.",
)
@click.option(
    "--alignment",
    default="16B",
    metavar="SIZE",
    show_default=True,
    help="Chunk boundaries fall on multiples of this.",
)
@click.option("-o", "--output", metavar="DIR", help="Save as Chakra execution traces, one a rank.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def synth(
    network: NetworkOptions,
    collective: str,
    size: str,
    chunks: str,
    root: int | None,
    seed: int,
    trials: int,
    threads: int | None,
    latency_model: str,
    switching: str,
    alignment: str,
    output: str | None,
    as_json: bool,
) -> None:
    """Synthesize the algorithm for COLLECTIVE on TOPOLOGY; verify it; bound it.

    TOPOLOGY is a spec such as mesh:8x8, torus:4x4x4, ring:4*fc:8*switch:4, leaf-spine:8x4x2, a
    machine such as dgx1, h100:4, tpuv4:4x4x4, or a topology file. Switches that copy or have
    small buffers: dgx2,multicast,buffer=1MiB.

    COLLECTIVE is all-gather, reduce-scatter, all-reduce, broadcast, reduce, gather or scatter.

    \b
    Example:
      weft synth mesh:8x8 all-reduce --size 1GiB --bandwidth 50GB/s --latency 0.5us
    """  # noqa: D301 - click reads the control character
    from weft.api import synthesize
    from weft.cli import progress
    from weft.units import parse_size

    if output is not None:
        _check_output(output)
    result = progress.run(
        "synthesizing",
        lambda report: synthesize(
            network.load(),
            collective,
            size,
            chunks=_chunk_count(chunks),
            root=root,
            seed=seed,
            trials=trials,
            threads=threads,
            latency_model=latency_model,  # type: ignore[arg-type]  # checked by CostModel
            switching=switching,  # type: ignore[arg-type]
            alignment=parse_size(alignment),
            progress=report,
        ),
    )
    if output is not None:
        result.save(output)  # in this thread: an interrupt must reach it, so that it cleans up
    if as_json:
        import json

        click.echo(json.dumps(result.to_dict(), indent=2))
    else:
        _print_table(result, output)
    if not result.verified:
        raise click.exceptions.Exit(1)


def _check_output(folder: str) -> None:
    """Say that a folder cannot be written before the work, not after it."""
    from pathlib import Path

    from weft.errors import InputError
    from weft.formats import chakra

    if not folder:
        raise InputError("--output is empty; give the folder to write")
    chakra.check_replaceable(Path(folder))


def _chunk_count(text: str) -> int | None:
    from weft.errors import InputError

    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit():
        raise InputError(f"--chunks is '{text}'; expected a whole number or auto")
    return int(text[:30])  # enough digits to be refused; Python would refuse thousands itself


def _print_table(result: Result, output: str | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = f"{result.collective.kind} on {result.topology.name}"
    table = Table(title=Text(title), show_header=False)
    for name, value in _rows(result):
        table.add_row(Text(name), Text(value))
    if output is not None:
        table.add_row(Text("saved in"), Text(output))
    Console().print(table)


def _rows(result: Result) -> list[tuple[str, str]]:
    from weft.units import format_size, format_time

    figures = result.to_dict()
    chunks = result.collective.chunks_per_share
    bound = f"{format_time(result.bound.time)} ({result.bound.kind})"
    ideal = f"; {format_time(result.bound.ideal)} with any chunks"
    models = f"{figures['latency_model']} α" + (
        f", {figures['switching']}" if result.topology.switches else ""
    )
    verified = "yes" if result.verified else f"NO: {result.verdict.violation}"
    return [
        ("size", f"{format_size(result.collective.size)} in {chunks} chunk(s) a share"),
        ("time", f"{format_time(result.algorithm.time)} ({models})"),
        ("algorithm bandwidth", f"{result.algbw_GBps:.4g} GB/s"),
        ("bus bandwidth", f"{result.busbw_GBps:.4g} GB/s"),
        ("lower bound", bound + ideal),
        ("efficiency", f"{result.efficiency:.2%} of the lower bound's speed"),
        ("transfers", f"{len(result.transfers):,}"),
        ("synthesis", f"{result.synthesis_s:.3f} s ({figures['method']}, seed {figures['seed']})"),
        ("verified", verified),
    ]

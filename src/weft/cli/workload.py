"""``weft workload``: make up workloads."""

from __future__ import annotations

from typing import Any

import click

from weft.cli.printing import json_option, say, say_json


@click.group()
def workload() -> None:
    """Make up workloads: training steps as Chakra traces, one file a rank."""


@workload.command()
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder to write.")
@click.option("--npus", type=int, metavar="N", help="Ranks; dp follows from it if not given.")
@click.option("--tp", default=1, help="Ranks that share a layer.")
@click.option("--dp", type=int, help="Ranks that share the batch; by default what --npus leaves.")
@click.option("--pp", default=1, help="Stages that share the layers.")
@click.option("--ep", default=1, help="Ranks of dp that share the experts.")
@click.option("--layers", default=4)
@click.option("--hidden", default=1024, help="Width of the model.")
@click.option("--seq", default=1024, help="Tokens in a sequence.")
@click.option("--batch", type=int, metavar="N", help="Sequences in a step; by default one each.")
@click.option("--microbatches", default=1)
@click.option("--experts", default=0, help="In each layer; 0: none.")
@click.option("--top-k", default=2, help="Experts a token goes to.")
@click.option("--schedule", default="1f1b", metavar="1f1b|gpipe", help="Of the pipeline.")
@click.option(
    "--sync",
    default="all-reduce",
    metavar="all-reduce|reduce-scatter",
    help="How gradients are summed.",
)
@click.option("--flops", default="100TFLOP/s", metavar="RATE", help="Speed of a rank.")
@json_option
def transformer(
    output: str,
    npus: int | None,
    tp: int,
    dp: int | None,
    pp: int,
    batch: int | None,
    microbatches: int,
    flops: str,
    as_json: bool,
    **others: Any,
) -> None:
    """One training step of a transformer: forward, backward, gradients summed.

    Ranks are laid out with tp varying fastest, then dp, then pp, as in weft synth --parallel
    tp=..,dp=..,pp=... The process groups are written beside the traces, in comm_group.json.

    \b
    Examples:
      weft workload transformer -o step --npus 16 --tp 4
      weft workload transformer -o step --tp 2 --dp 2 --pp 2 --microbatches 4
      weft workload transformer -o step --dp 8 --ep 4 --experts 8 --sync reduce-scatter
    """  # noqa: D301 - click reads the control character
    from weft.units import parse_flops
    from weft.workload import Transformer, save_transformer
    from weft.workload.transformer_model import data_parallel

    copies = data_parallel(npus, tp, dp, pp)
    model = Transformer(
        tp=tp,
        dp=copies,
        pp=pp,
        batch=copies * microbatches if batch is None else batch,
        microbatches=microbatches,
        flops=parse_flops(flops),
        **others,
    )
    nodes = save_transformer(model, output)
    if as_json:
        say_json({"output": output, "ranks": model.ranks, "nodes": nodes})
    else:
        say(f"{output}: {model.ranks} traces, {nodes:,} nodes")

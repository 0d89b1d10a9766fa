"""``weft workload``: make up workloads."""

from __future__ import annotations

from typing import Any

import click

from weft.cli.options import option
from weft.cli.printing import json_option, say, say_json


@click.group()
def workload() -> None:
    """Make up workloads: training steps as Chakra traces, one file per rank."""


@workload.command()
@option("-o, --output DIR", "The folder to write.", required=True)
@option("--npus N", "Ranks; dp follows from it if not given.", type=int)
@option("--tp", "Ranks that share a layer.", default=1)
@option("--dp", "Ranks that share the batch; by default what --npus leaves.", type=int)
@option("--pp", "Stages that share the layers.", default=1)
@option("--ep", "Ranks of dp that share the experts.", default=1)
@option("--layers", default=4)
@option("--hidden", "Width of the model.", default=1024)
@option("--seq", "Tokens in a sequence.", default=1024)
@option("--batch N", "Sequences in a step; by default one each.", type=int)
@option("--microbatches", default=1)
@option("--experts", "In each layer; 0: none.", default=0)
@option("--top-k", "Experts a token goes to.", default=2)
@option("--schedule 1f1b|gpipe", "Of the pipeline.", default="1f1b")
@option("--sync all-reduce|reduce-scatter", "How gradients are summed.", default="all-reduce")
@option("--flops RATE", "Speed of a rank.", default="100TFLOP/s")
@json_option
def transformer(
    output: str,
    npus: int | None,
    dp: int | None,
    batch: int | None,
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

    copies = data_parallel(npus, others["tp"], dp, others["pp"])
    if batch is None:
        batch = copies * others["microbatches"]
    model = Transformer(dp=copies, batch=batch, flops=parse_flops(flops), **others)
    nodes = save_transformer(model, output)
    if as_json:
        say_json({"output": output, "ranks": model.ranks, "nodes": nodes})
    else:
        say(f"{output}: {model.ranks} traces, {nodes:,} nodes")

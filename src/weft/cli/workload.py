"""``weft workload``: make up workloads."""

from __future__ import annotations

import click

from weft.cli.printing import json_option, say, say_json


@click.group()
def workload() -> None:
    """Make up workloads: training steps as Chakra traces, one file a rank."""


@workload.command()
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder to write.")
@click.option("--npus", type=int, metavar="N", help="Ranks; dp follows from it if not given.")
@click.option("--tp", type=int, default=1, show_default=True, help="Ranks that share a layer.")
@click.option("--dp", type=int, help="Ranks that share the batch; by default what --npus leaves.")
@click.option("--pp", type=int, default=1, show_default=True, help="Stages that share the layers.")
@click.option(
    "--ep", type=int, default=1, show_default=True, help="Ranks of dp that share the experts."
)
@click.option("--layers", type=int, default=4, show_default=True)
@click.option("--hidden", type=int, default=1024, show_default=True, help="Width of the model.")
@click.option("--seq", type=int, default=1024, show_default=True, help="Tokens in a sequence.")
@click.option("--batch", type=int, metavar="N", help="Sequences in a step; by default one each.")
@click.option("--microbatches", type=int, default=1, show_default=True)
@click.option("--experts", type=int, default=0, show_default=True, help="In each layer; 0: none.")
@click.option("--top-k", type=int, default=2, show_default=True, help="Experts a token goes to.")
@click.option(
    "--schedule", default="1f1b", metavar="1f1b|gpipe", show_default=True, help="Of the pipeline."
)
@click.option(
    "--sync",
    default="all-reduce",
    metavar="all-reduce|reduce-scatter",
    show_default=True,
    help="How gradients are summed.",
)
@click.option(
    "--flops", default="100TFLOP/s", metavar="RATE", show_default=True, help="Speed of a rank."
)
@json_option
def transformer(
    output: str,
    npus: int | None,
    tp: int,
    dp: int | None,
    pp: int,
    ep: int,
    layers: int,
    hidden: int,
    seq: int,
    batch: int | None,
    microbatches: int,
    experts: int,
    top_k: int,
    schedule: str,
    sync: str,
    flops: str,
    as_json: bool,
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
        ep=ep,
        layers=layers,
        hidden=hidden,
        seq=seq,
        batch=copies * microbatches if batch is None else batch,
        experts=experts,
        top_k=top_k,
        microbatches=microbatches,
        schedule=schedule,
        sync=sync,
        flops=parse_flops(flops),
    )
    nodes = save_transformer(model, output)
    if as_json:
        say_json({"output": output, "ranks": model.ranks, "nodes": nodes})
    else:
        say(f"{output}: {model.ranks} traces, {nodes:,} nodes")

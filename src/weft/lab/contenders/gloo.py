"""The collectives of gloo, by torch.distributed."""

from __future__ import annotations

import os

from weft.lab.contenders.data import given, wanted
from weft.lab.contenders.gate import arguments, pass_gate


def main() -> None:
    """Run one collective as often as the lab asks."""
    import torch
    import torch.distributed as dist

    collective, size = arguments()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    source = torch.from_numpy(given(collective, rank, ranks, size))
    right = torch.from_numpy(wanted(collective, rank, ranks, size))
    target = torch.empty_like(right)

    def work() -> None:
        if collective == "all-reduce":
            dist.all_reduce(target)
        elif collective == "all-gather":
            dist.all_gather(list(target.chunk(ranks)), source)
        else:
            dist.all_to_all_single(target, source)

    def prepare() -> None:
        if collective == "all-reduce":
            target.copy_(source)
        else:
            target.fill_(-1)

    pass_gate(work, prepare, lambda: int((target != right).sum()))
    # Its store would wait for the others, who may have ended.
    os._exit(0)


if __name__ == "__main__":
    main()

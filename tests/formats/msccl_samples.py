"""MSCCL-XML written by hand: small builders, and rings and all-pairs of any size."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "msccl"
SAMPLES = sorted(path.name for path in DATA.glob("*.xml"))


def step(number, kind, src="i0", dst="i0", cnt=1, dep=(-1, -1), hasdep=0):
    """A step; places are such as ``i3``."""
    return (
        f'<step s="{number}" type="{kind}" srcbuf="{src[0]}" srcoff="{src[1:]}" '
        f'dstbuf="{dst[0]}" dstoff="{dst[1:]}" cnt="{cnt}" '
        f'depid="{dep[0]}" deps="{dep[1]}" hasdep="{hasdep}"/>'
    )


def block(number, steps, send=-1, recv=-1, chan=0):
    inner = "\n".join(steps)
    return f'<tb id="{number}" send="{send}" recv="{recv}" chan="{chan}">\n{inner}\n</tb>'


def gpu(number, blocks, i=0, o=0, s=0):
    inner = "\n".join(blocks)
    return f'<gpu id="{number}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">\n{inner}\n</gpu>'


def algo(coll, gpus, chunks, inplace=1, channels=1, more=""):
    inner = "\n".join(gpus)
    return (
        f'<algo name="test" proto="Simple" nchannels="{channels}" nchunksperloop="{chunks}" '
        f'ngpus="{len(gpus)}" coll="{coll}" inplace="{inplace}"{more}>\n{inner}\n</algo>\n'
    )


def ring_all_reduce(n):
    """One chunk per rank goes round twice, with fused steps: 2 (n - 1) messages per GPU."""
    gpus = []
    for rank in range(n):
        places = [f"i{(rank - hop) % n}" for hop in range(2 * n - 1)]
        kinds = ["s", *["rrs"] * (n - 2), "rrcs", *["rcs"] * (n - 2), "r"]
        steps = [step(t, kind, places[t], places[t]) for t, kind in enumerate(kinds)]
        gpus.append(gpu(rank, [block(0, steps, (rank + 1) % n, (rank - 1) % n)], i=n))
    return algo("allreduce", gpus, n)


def all_pairs_all_to_all(n):
    """Every GPU sends a chunk to every other, from blocks of their own."""
    gpus = []
    for rank in range(n):
        others = [peer for peer in range(n) if peer != rank]
        blocks = [
            block(t, [step(0, "r", "i0", f"o{peer}")], recv=peer, chan=(rank - peer) % n // 32)
            for t, peer in enumerate(others)
        ]
        blocks += [
            block(
                n - 1 + t,
                [step(0, "s", f"i{peer}", f"o{rank}")],
                send=peer,
                chan=(peer - rank) % n // 32,
            )
            for t, peer in enumerate(others)
        ]
        blocks += [block(2 * n - 2, [step(0, "cpy", f"i{rank}", f"o{rank}")])]
        gpus.append(gpu(rank, blocks, i=n, o=n))
    return algo("alltoall", gpus, n, inplace=0, channels=-(-n // 32))


def one_step_all_reduce(n):
    """Everybody sends all to everybody, who adds it up once all is there and nothing is sent."""
    gpus = []
    for rank in range(n):
        blocks = []
        for t, peer in enumerate(p for p in range(n) if p != rank):
            steps = [step(0, "s", "i0", "s0", hasdep=1), step(1, "r", "s0", f"s{t}", hasdep=1)]
            blocks.append(block(t, steps, send=peer, recv=peer))
        waits = [(t, 1) for t in range(n - 1)]
        sums = [step(t, "nop", dep=wait, cnt=0) for t, wait in enumerate(waits[:-1])]
        sums.append(step(n - 2, "re", "s0", "i0", dep=waits[-1]))
        sums += [step(n - 2 + t, "re", f"s{t}", "i0") for t in range(1, n - 1)]
        gpus.append(gpu(rank, [*blocks, block(n - 1, sums)], i=1, s=n - 1))
    return algo("allreduce", gpus, 1)

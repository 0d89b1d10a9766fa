"""One-shot: an All-Reduce in as few rounds as the network is wide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft import _core
from weft.algorithm import Buffer, place
from weft.classical.planner import classical
from weft.collective import Collective
from weft.cost import CostModel
from weft.planners.sends import Sends
from weft.ragged import positions
from weft.reachability import unreachable
from weft.topology.model import Topology

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
_NONE = -1
_STEPS = 3  # of a round: a copy of what is there, what is added to it, and the message


@classical(
    "one-shot", 215, ("all-reduce",), "all is sent to all by shortest paths and added up there"
)
def one_shot(topology: Topology, demand: Collective) -> Sends:
    """What every NPU has goes to every other by a shortest path, and each adds up for itself.

    What goes the same way is added up on the way, and what is the same for several takers is
    sent once: along a line of NPUs each passes on the sum of all that lies behind it.
    """
    if demand.ranks == 1:
        return Sends.of([], [], [], [], [])
    streams = _Streams.of(topology, demand)
    messages, message_of = streams.messages()
    return _rows(demand, streams, messages, message_of)


@dataclass(frozen=True, eq=False)
class _Streams:
    """What NPUs pass on towards takers: a row for each NPU on the way to each taker.

    Attributes
    ----------
    npu, towards
        Who passes something on, and to whom.
    after
        How many rounds the part that came farthest has travelled.
    parts
        A number that stands for the set of parts that are added up.
    behind
        The row of `towards` for the same taker; -1 if that is the taker.
    """

    npu: Numbers
    towards: Numbers
    after: Numbers
    parts: NDArray[np.uint64]
    behind: Numbers

    @classmethod
    def of(cls, topology: Topology, demand: Collective) -> _Streams:
        members, npus = np.array(sorted(demand.group), dtype=np.int32), topology.npus
        taker, source = (a.reshape(-1) for a in np.meshgrid(members, members, indexing="ij"))
        taker, source = taker[taker != source], source[taker != source]
        chunks = demand.chunks
        reach = np.full(len(taker), chunks.reach[0])
        found = _core.forward(topology.core, CostModel().core, chunks.core, source, taker, reach)
        if found.lost >= 0:
            raise unreachable(topology, chunks)
        offsets, src, dst = found.hop_offsets, found.src, found.dst
        hops = np.diff(offsets)
        cell, row = np.unique(
            np.repeat(taker, hops).astype(np.int64) * npus + src, return_inverse=True
        )
        # Sets of parts are distinguished by sums of random numbers, one per part.
        number = np.random.default_rng(0).integers(1, 2**63, npus, dtype=np.uint64)
        parts, after = np.zeros(len(cell), dtype=np.uint64), np.zeros(len(cell), dtype=np.int64)
        towards = np.zeros(len(cell), dtype=np.int64)
        np.add.at(parts, row, number[np.repeat(source, hops)])
        np.maximum.at(after, row, positions(hops))
        towards[row] = dst
        onwards = cell - cell % npus + towards
        behind = np.searchsorted(cell, onwards).clip(max=len(cell) - 1)
        behind = np.where(cell[behind] == onwards, behind, _NONE)
        return cls(cell % npus, towards, after, parts, behind)

    def messages(self) -> tuple[Numbers, Numbers]:
        """One row of each that are the same message; and the number of every row's message."""
        order = np.lexsort((self.parts, self.towards, self.npu))
        keys = [column[order] for column in (self.npu, self.towards, self.parts)]
        differs = np.ones(len(order), dtype=np.bool_)
        differs[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.cumsum(differs) - 1
        return order[differs], number


def _rows(demand: Collective, streams: _Streams, messages: Numbers, message_of: Numbers) -> Sends:
    """Messages lie apart where they arrive, and so do sums to be passed on."""
    count, chunk = len(messages), np.arange(len(demand.chunks))
    npu, towards, after = streams.npu[messages], streams.towards[messages], streams.after[messages]
    number = np.full(len(message_of) + 1, _NONE)  # one more, for takers
    number[messages] = np.arange(count)
    passed_on = number[streams.behind]
    inner, last = passed_on >= 0, streams.behind < 0
    # What goes into each message: the NPU's own part, if it has one, then what it was sent.
    own = np.flatnonzero(np.isin(npu, demand.group))
    into = np.concatenate([own, passed_on[inner]])
    slot = np.concatenate([np.full(len(own), _NONE), message_of[inner]])
    order = np.argsort(into, kind="stable")
    into, slot = into[order], slot[order]
    _, first, inputs = np.unique(into, return_index=True, return_counts=True)
    sums = count + np.arange(count)
    read = np.where(inputs > 1, sums, slot[first])  # a sum of one is sent as it lies there
    add = np.ones(len(into), dtype=np.bool_)
    add[first] = False
    several = inputs[into] > 1
    into, slot, add = into[several], slot[several], add[several]

    def rows(step: Numbers, src: Numbers, dst: Numbers, add: Flags, *slots: Numbers) -> Sends:
        places = [_place(column[:, None], chunk) for column in slots]
        return Sends.of(step[:, None], chunk, src[:, None], dst[:, None], add[:, None], *places)

    home = streams.towards[last]
    end = np.full(len(home), _STEPS * (int(after.max()) + 1))
    return Sends.together(
        [
            rows(_STEPS * after[into] + add, npu[into], npu[into], add, slot, sums[into]),
            rows(_STEPS * after + 2, npu, towards, npu < 0, read, np.arange(count)),
            rows(end, home, home, home >= 0, message_of[last], np.full(len(home), _NONE)),
        ]
    )


def _place(slot: Numbers, chunk: Numbers) -> Numbers:
    """Where each chunk lies: at home if the slot is none."""
    apart = place(Buffer.SCRATCH, 0) + slot * len(chunk) + chunk
    return np.where(slot == _NONE, chunk, apart)

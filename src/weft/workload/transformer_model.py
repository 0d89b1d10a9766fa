"""A transformer in parallel: how much each rank computes and sends. See ``docs/workloads.md``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from weft.collective import layout_groups
from weft.errors import InputError, unknown_name
from weft.units import MAX_BYTES, MAX_FLOPS

SCHEDULES = ("1f1b", "gpipe")
SYNCS = ("all-reduce", "reduce-scatter")

MAX_RANKS = 1 << 16
MAX_NODES = 10**8  # of all traces together
MAX_NUMBER = 10**12  # of anything that is counted

_OPTIMIZER_OPS = 12  # a parameter, of Adam
_STATE_BYTES = 16  # a parameter: what Adam reads and writes in 32 bits


@dataclass(frozen=True)
class Part:
    """One half of a layer on one rank.

    Attributes
    ----------
    parameters
        How many there are.
    ops
        Of a microbatch, forward; backward takes twice as many.
    """

    name: str
    parameters: int
    ops: int


@dataclass(frozen=True)
class Transformer:
    """One training step of a stack of transformer layers.

    Attributes
    ----------
    tp, dp, pp
        Ranks that share a layer (tensor-parallel), that share the batch (data-parallel), and
        stages that share the layers (pipeline).
    ep
        Ranks of a data-parallel group that share the experts; divides `dp`.
    layers, hidden, seq, batch
        Layers, width, tokens in a sequence, sequences in a step over all ranks.
    experts, top_k
        Experts in each layer, 0 for none, and how many each token goes to.
    microbatches
        In how many parts a rank's share of the batch goes through the pipeline.
    schedule
        ``1f1b`` or ``gpipe``.
    sync
        How gradients are summed: ``all-reduce``, or ``reduce-scatter`` and an All-Gather of the
        parameters that each rank has updated.
    flops
        Operations that a rank does in a second.
    bytes
        Of a number: activations, parameters, gradients.
    """

    tp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    layers: int = 4
    hidden: int = 1024
    seq: int = 1024
    batch: int = 8
    experts: int = 0
    top_k: int = 2
    microbatches: int = 1
    schedule: str = "1f1b"
    sync: str = "all-reduce"
    flops: int = 100 * 10**12
    bytes: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "experts" else 1
            most = MAX_FLOPS if field.name == "flops" else MAX_NUMBER
            if isinstance(value, int) and not least <= value <= most:
                raise InputError(f"{field.name} is {value}; expected {least} to {most}")
        if self.schedule not in SCHEDULES:
            raise unknown_name("schedule", self.schedule, SCHEDULES)
        if self.sync not in SYNCS:
            raise unknown_name("gradient sync", self.sync, SYNCS)
        if self.ranks > MAX_RANKS:
            raise InputError(f"tp·dp·pp makes {self.ranks} ranks; expected {MAX_RANKS} at most")
        self._check_division()
        self._check_size()

    def _check_division(self) -> None:
        if self.layers < self.pp:
            raise InputError(f"{self.layers} layers cannot fill {self.pp} pipeline stages")
        if self.batch % (self.dp * self.microbatches):
            raise InputError(
                f"a batch of {self.batch} does not divide among dp {self.dp} times "
                f"{self.microbatches} microbatches"
            )
        if self.dp % self.ep:
            raise InputError(f"ep {self.ep} does not divide dp {self.dp}")
        if self.ep > 1 and self.experts == 0:
            raise InputError(f"ep {self.ep} shares experts, but there are none; say how many")
        if self.experts % self.ep:
            raise InputError(f"ep {self.ep} does not divide {self.experts} experts")
        if self.experts and self.top_k > self.experts:
            raise InputError(f"top_k {self.top_k} is more than {self.experts} experts")
        if self.hidden % self.tp:
            raise InputError(f"tp {self.tp} does not divide hidden {self.hidden}")

    def _check_size(self) -> None:
        """Refuse what a trace could not say, or what would fill disks."""
        nodes = self.ranks * (self.layers // self.pp + 1) * (self.microbatches + 1) * 10
        if nodes > MAX_NODES:
            raise InputError(f"the traces would have about {nodes} nodes; at most {MAX_NODES}")
        largest = max(
            *(4 * (part.parameters * self.bytes + part.ops) for part in (self.attention, self.mlp)),
            self.routed_bytes * 4,
            _STATE_BYTES * self.parameters(0),
        )
        if largest > MAX_BYTES:
            raise InputError("the model is too large: a node would have more than 2^60 operations")

    @property
    def ranks(self) -> int:
        return self.tp * self.dp * self.pp

    def groups(self, *along: str) -> list[tuple[int, ...]]:
        """The groups of ranks along dimensions of tp, ep, edp (dp = ep·edp) and pp."""
        sizes = {"tp": self.tp, "ep": self.ep, "edp": self.dp // self.ep, "pp": self.pp}
        return layout_groups(sizes, along, range(self.ranks))

    def stage_layers(self, stage: int) -> range:
        """The layers of a stage: as even as may be, the first stages having one more."""
        each, more = divmod(self.layers, self.pp)
        first = stage * each + min(stage, more)
        return range(first, first + each + (stage < more))

    @cached_property
    def tokens(self) -> int:
        """Of a microbatch on one rank."""
        return self.seq * (self.batch // (self.dp * self.microbatches))

    @property
    def activation_bytes(self) -> int:
        """What a layer hands to the next, and what is summed among tensor-parallel ranks."""
        return self.tokens * self.hidden * self.bytes

    @property
    def routed_bytes(self) -> int:
        """What a rank sends to experts: each token to `top_k` of them."""
        return self.activation_bytes * self.top_k

    @cached_property
    def attention(self) -> Part:
        """Four square matrices; projections, scores and their use."""
        square = 8 * self.tokens * self.hidden**2
        ops = square + 4 * self.tokens * self.seq * self.hidden
        return Part("attention", 4 * self.hidden**2 // self.tp, ops // self.tp)

    @cached_property
    def mlp(self) -> Part:
        """Two matrices, to four times the width and back; one such pair an expert."""
        here, used = (self.experts // self.ep, self.top_k) if self.experts else (1, 1)
        ops = 16 * self.tokens * used * self.hidden**2
        return Part("mlp", 8 * self.hidden**2 // self.tp * here, ops // self.tp)

    def parameters(self, stage: int) -> int:
        """Of all layers of a stage, on one rank."""
        return len(self.stage_layers(stage)) * (self.attention.parameters + self.mlp.parameters)

    def optimizer_ops(self, stage: int) -> int:
        return _OPTIMIZER_OPS * self.updated(stage)

    def optimizer_bytes(self, stage: int) -> int:
        return _STATE_BYTES * self.updated(stage)

    def updated(self, stage: int) -> int:
        """Parameters that one rank updates: all it has, or its share where they are scattered."""
        if self.sync == "all-reduce":
            return self.parameters(stage)
        layers = len(self.stage_layers(stage))
        sharing = self.dp // self.ep  # `ep` is 1 without experts
        shares = -(-self.attention.parameters // self.dp), -(-self.mlp.parameters // sharing)
        return layers * sum(shares)

    def duration_us(self, ops: int) -> int:
        """Whole microseconds, at least one: traces have no less."""
        return max(1, (ops * 10**6 + self.flops // 2) // self.flops)


def data_parallel(npus: int | None, tp: int, dp: int | None, pp: int) -> int:
    """Ranks that share the batch, from what is said of the others."""
    if npus is None:
        return 1 if dp is None else dp
    if min(npus, tp, pp) < 1 or npus % (tp * pp) or dp not in (None, npus // (tp * pp)):
        product = "·".join(f"{n}" for n in (tp, dp, pp) if n is not None)
        raise InputError(f"{npus} NPUs do not divide into tp, dp and pp of {product}")
    return npus // (tp * pp)

"""``weft run``: which algorithms at which sizes, and on which ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from weft.cli.demands import DemandOptions
from weft.cli.options import NetworkOptions, gathered, given, option
from weft.errors import InputError, unknown_name

if TYPE_CHECKING:
    from weft.algorithm import Algorithm
    from weft.formats import Hints
    from weft.progress import Tracker
    from weft.runtime.bench import Job, Measured

TRANSPORTS = ("shm", "tcp", "mpi")
_OF_FILES = ("named", "size", "sizes", "chunks", "root", "pattern")


@dataclass(frozen=True)
class Where:
    """On which ranks, and how they reach each other."""

    transport: str | None
    timeout: float
    rank: int | None
    ranks: int | None
    rendezvous: str | None
    address: str
    addresses: str | None

    @property
    def kind(self) -> str:
        """The transport that is meant."""
        from weft.runtime.mpi import under_mpiexec

        if self.transport is not None:
            if self.transport not in TRANSPORTS:
                raise unknown_name("transport", self.transport, TRANSPORTS)
            return self.transport
        if self.rank is not None:
            return "tcp"
        return "mpi" if under_mpiexec() else "shm"

    def to_dict(self) -> dict[str, Any]:
        return {"transport": self.kind}

    def check(self) -> None:
        """Raise if what is said does not go together."""
        if not self.timeout > 0:
            raise InputError(f"--timeout is {self.timeout:g}; expected more than 0 seconds")
        if self.kind == "mpi":  # a lab tells everybody a rendezvous
            if self.rank is not None or self.ranks is not None:
                raise InputError(
                    "--rank is for TCP and shared memory; mpiexec numbers ranks itself"
                )
            return
        together = {"--rank": self.rank, "--ranks": self.ranks, "--rendezvous": self.rendezvous}
        missing = [flag for flag, value in together.items() if value is None]
        if 0 < len(missing) < len(together):
            raise InputError(
                f"--rank, --ranks and --rendezvous go together; {missing[0]} is missing"
            )

    def measure(self, jobs: list[Job], npus: int, report: Tracker) -> list[Measured]:
        """Run all jobs; nothing where another rank has the results."""
        from weft.runtime.bench import measured_by, measured_locally

        if self.kind != "mpi" and self.rank is None:
            return measured_locally(jobs, npus, self.kind, self.timeout, report)
        with self.communicator() as communicator:
            return measured_by(communicator, jobs, report)

    def communicator(self) -> Any:
        from weft.runtime import Communicator, addresses_of

        if self.kind == "mpi":
            return Communicator.mpi(timeout_s=self.timeout)
        assert self.rank is not None
        assert self.ranks is not None
        assert self.rendezvous is not None
        args = self.rank, self.ranks, self.rendezvous
        if self.kind == "shm":
            return Communicator.shared_memory(*args, timeout_s=self.timeout)
        how = dict[str, Any](address=self.address)
        if self.addresses is not None:
            how = addresses_of(self.addresses)
        return Communicator.tcp(*args, **how, timeout_s=self.timeout)


where_options = gathered(
    "where",
    Where,
    option(
        "--transport shm|tcp|mpi",
        "How ranks reach each other: memory that they share, TCP, or MPI (weft[mpi]), which it is "
        "by default under mpiexec.",
    ),
    option("--timeout SECONDS", "For how long nothing may move.", default=30.0),
    option("--rank R", "Be this rank of several hosts' ranks.", type=int, envvar="WEFT_RANK"),
    option("--ranks N", "How many ranks there are, with --rank.", type=int, envvar="WEFT_RANKS"),
    option(
        "--rendezvous HOST:PORT", "Where rank 0 listens, with --rank.", envvar="WEFT_RENDEZVOUS"
    ),
    option("--address HOST", "Where others reach this rank, with --rank.", default="127.0.0.1"),
    option(
        "--addresses FILE",
        "With --rank: the addresses between which connections go, as weft lab writes them.",
        envvar="WEFT_ADDRESSES",
    ),
)
"""Which rank of which this process is; the command gets it as `where`."""


@dataclass(frozen=True)
class Sources:
    """The algorithms to run: a file, or what is synthesized."""

    network: NetworkOptions
    demands: DemandOptions
    kind: str | None
    search: Mapping[str, Any]

    @property
    def title(self) -> str:
        assert self.network.spec is not None
        return self.network.spec

    @property
    def is_file(self) -> bool:
        return self.demands.collective is None and self.demands.plan is None

    def measured(
        self, where: Where, how: Mapping[str, Any], report: Tracker, *, traced: bool
    ) -> list[Measured]:
        """Read or synthesize, run, and check."""
        from weft.runtime.bench import jobs_of
        from weft.runtime.program import Programs

        where.check()
        plans = [self._file(report)] if self.is_file else list(self._synthesized(report))
        sizes = None
        if self.is_file and self.demands.sizes is not None:
            from weft.comparison.sizes import parse_sizes

            sizes = parse_sizes(self.demands.sizes)
        jobs = jobs_of(plans, sizes, traced=traced, **how)
        return where.measure(jobs, Programs(plans[0]).npus, report)

    def _file(self, report: Tracker) -> Algorithm:
        from weft.api import load, verify
        from weft.judge import WrongAlgorithmError

        self._check_file()
        hints = self._hints()
        algorithm = load(self.title, hints, kind=self.kind, progress=report)
        report.enter("verifying")
        verdict = verify(algorithm, progress=report)
        if not verdict:
            raise WrongAlgorithmError(f"the algorithm is wrong: {verdict.violation}", verdict)
        return algorithm

    def _check_file(self) -> None:
        """Raise if what is said goes with a network, or there is no such file."""
        for flag in given(SimpleNamespace(**vars(self.network) | {"spec": None})):
            raise InputError(f"{flag} is for a network; {self.title} is run as an algorithm")
        d = self.demands
        others = {name: value for name, value in vars(d).items() if name not in _OF_FILES}
        for flag in given(SimpleNamespace(**others | {"group": d.group[1:]})):
            raise InputError(f"{flag} is for a COLLECTIVE; {self.title} is run as an algorithm")
        if not Path(self.title).exists() and not self.kind:
            raise InputError(
                f"{self.title} is no file; to synthesize on a network of this name, name a "
                "COLLECTIVE too"
            )

    def _hints(self) -> Hints:
        """What the command line says of the file."""
        from weft.cli.inputs import InputOptions
        from weft.collective import parse_chunks

        d = self.demands
        group = d.group[0] if d.group else None
        chunks = None if d.chunks is None else parse_chunks(d.chunks)
        said = InputOptions(
            self.title, self.kind, d.named, d.size, chunks, group, d.root, d.pattern
        )
        return said.hints()

    def _synthesized(self, report: Tracker) -> Iterator[Algorithm]:
        from weft.collective import DEFAULT_ALIGNMENT
        from weft.synthesis import synthesize

        if self.kind is not None or self.demands.named is not None:
            raise InputError("--from and --collective are for files; COLLECTIVE is given")
        topology = self.network.load()
        if self.demands.sizes is not None:
            if self.demands.size is not None:
                raise InputError("--size and --sizes both say how much; give one of them")
            plans = self.demands.sweep(topology, DEFAULT_ALIGNMENT)
        else:
            plans = [self.demands.load(topology, DEFAULT_ALIGNMENT)]
        for number, plan in enumerate(plans, start=1):
            if len(plans) > 1:
                report.begin_step(f"plan {number} of {len(plans)}")
            result = synthesize(
                topology, plan.collectives, chunks=plan.chunks, progress=report, **self.search
            )
            yield result.algorithm

"""What tests of readers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.errors import InputError
from weft.topology import Topology, load_topology
from weft.topology.files import read_machine
from weft.topology.labels import Wishes
from weft.topology.machines import Machine

EXAMPLES = Path(__file__).parent / "examples"
GB = 10**9


def wires(machine: Machine) -> set[tuple[str, str, str, int | None, int]]:
    """Links as (kind, from, to, nominal rate, count), with parts by kind and name."""
    names = [f"{part.kind} {part.name}" for part in machine.parts]
    return {
        (c.kind, names[c.src], names[c.dst], c.rate and c.rate.nominal, c.count)
        for c in machine.cables
    }


def both_ways(
    *rows: tuple[str, str, str, int | None, int],
) -> set[tuple[str, str, str, int | None, int]]:
    """Each of these links, and the one back."""
    return {*rows, *((kind, b, a, rate, count) for kind, a, b, rate, count in rows)}


def machine_of(path: Path, **wishes: object) -> Machine:
    """The machine that a file describes."""
    machine = read_machine(path, Wishes(**wishes))  # type: ignore[arg-type]
    assert machine is not None
    return machine


def write(tmp_path: Path, text: str | bytes, name: str = "host.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(path: Path, **options: str) -> str:
    """The sentence with which a file is refused, without the folder."""
    with pytest.raises(InputError) as error:
        load_topology(path, **options)  # type: ignore[arg-type]
    text = str(error.value)
    assert "\n" not in text
    return text.replace(f"{path.parent}/", "")


def links(topology: Topology) -> dict[tuple[int, int], int]:
    """Rates in GB/s by ends."""
    columns = (topology.src, topology.dst, topology.bandwidth)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(a, b): rate // GB for a, b, rate in rows}

"""What tests of readers of fabrics share."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.errors import FormatError, WeftError
from weft.topology import Topology, load_topology
from weft.topology.files import read_machine
from weft.topology.machines import Machine

EXAMPLES = Path(__file__).parent / "examples"
GB = 10**9


def machine_of(path: Path) -> Machine:
    machine = read_machine(path)
    assert machine is not None
    return machine


def write(folder: Path, text: str, name: str = "fabric.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refused(path: Path, **options: str) -> str:
    """The sentence with which a file is refused, without its folder."""
    with pytest.raises(WeftError) as error:
        load_topology(path, **options)  # type: ignore[arg-type]
    assert isinstance(error.value, FormatError)
    assert "\n" not in str(error.value)
    return str(error.value).replace(f"{path.parent}/", "")


def wires(machine: Machine) -> dict[tuple[str, str], tuple[str, int | None, int]]:
    """Kind, GB/s and number of the cables between two parts, by their names; each way once."""
    found = {}
    for cable in machine.cables:
        ends = machine.parts[cable.src].name, machine.parts[cable.dst].name
        rate = cable.rate and cable.rate.nominal // GB
        found[ends] = cable.kind, rate, cable.count
    assert all(found[b, a] == what for (a, b), what in found.items())
    assert len(found) == len(machine.cables)
    return {ends: what for ends, what in found.items() if ends[0] < ends[1]}


def named_links(topology: Topology) -> dict[tuple[str, str], int]:
    """GB/s from one node to another, by their names; each way once."""
    assert topology.labels is not None
    names = topology.labels.names
    columns = (topology.src, topology.dst, topology.bandwidth)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    found = {(names[a], names[b]): rate // GB for a, b, rate in rows}
    assert all(found[b, a] == rate for (a, b), rate in found.items())
    return {ends: rate for ends, rate in found.items() if ends[0] < ends[1]}


def survives(path: Path) -> bool:
    """Whether a damaged file is read; a refusal is one sentence with the file's name."""
    error = None
    try:
        load_topology(path)
    except WeftError as raised:
        error = str(raised)
    assert error is None or error.startswith(str(path)), error
    assert error is None or ("\n" not in error and len(error) < 1000), error
    return error is None

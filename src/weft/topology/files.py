"""Networks on disk: YAML or JSON of one schema, and ASTRA-sim's own files.

The schema is in ``docs/topology-files.md``. Reading back what was written gives the same
network in every column.
"""

from __future__ import annotations

import codecs
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from weft.errors import FormatError, InputError
from weft.topology.astra import build_astra, is_astra
from weft.topology.model import Topology
from weft.topology.places import PlacedError, line_of, load_yaml
from weft.topology.schema import Columns, Link, TopologyFile, build, convert, explain
from weft.units import exact_bandwidth, exact_latency, exact_size

SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 256 << 20
MAX_LISTED_LINKS = 1000
"""Networks with more links are written as columns: smaller, and quicker to read."""


def read_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a network; the content, not the suffix, tells Weft's schema from ASTRA-sim's."""
    where = Path(path)
    data = _read_bytes(where)
    text = _decode(where, data)
    try:
        return _build(where, data, text)
    except PlacedError as fault:
        line = line_of(text, fault.path) if fault.line is None else fault.line
        place = f"{where}:" if line is None else f"{where} line {line}:"
        raise FormatError(f"{place} {fault.message}") from None


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: is a directory, not a topology file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"{path}: cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise FormatError(f"{path}: is larger than {MAX_BYTES >> 20} MiB, the most Weft reads")
    return data.removeprefix(codecs.BOM_UTF8)


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path} line {line}: is not UTF-8 text") from None


def _build(path: Path, data: bytes, text: str) -> Topology:
    if path.suffix.lower() != ".json":
        return _build_plain(path, load_yaml(text))
    try:
        record = msgspec.json.decode(data, type=TopologyFile)
    except (msgspec.DecodeError, RecursionError) as error:
        return _build_other_json(path, data, error)
    return build(record, path.stem)


def _build_other_json(path: Path, data: bytes, why_not_ours: Exception) -> Topology:
    """JSON that is not a valid file of ours: another kind, broken, or ours with a mistake."""
    try:
        plain = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise _malformed(data, error) from None
    except RecursionError:
        raise PlacedError("nests too deep for a topology") from None
    if _is_ours(plain) and isinstance(why_not_ours, msgspec.ValidationError):
        raise explain(why_not_ours)
    return _build_plain(path, plain)


def _build_plain(path: Path, plain: Any) -> Topology:
    if is_astra(plain):
        return build_astra(plain)
    if not _is_ours(plain):
        kind = plain.get("weft") if isinstance(plain, dict) else None
        found = f"it says 'weft: {kind}'" if kind is not None else "it has no 'weft: topology'"
        raise PlacedError(f"is not a topology file: {found}", ("weft",))
    return build(convert(plain), path.stem)


def _is_ours(plain: Any) -> bool:
    return isinstance(plain, dict) and plain.get("weft") == "topology"


def _malformed(data: bytes, error: msgspec.DecodeError) -> PlacedError:
    """The line of a JSON error: msgspec names the byte, or says that the data ends too early."""
    reason, _, byte = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
    end = int(byte.rstrip(")")) if byte else len(data)
    return PlacedError(f"not valid JSON: {reason}", line=data.count(b"\n", 0, end) + 1)


def write_topology(topology: Topology, path: str | os.PathLike[str]) -> None:
    """Write a network as ``.yaml``, ``.yml`` or ``.json``; the file appears whole or not at all."""
    where = Path(path)
    suffix = where.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{where}: a topology is written to a {', '.join(SUFFIXES)} file")
    record = _record(topology)
    if suffix == ".json":
        data = msgspec.json.format(msgspec.json.encode(record), indent=1 if record.links else -1)
    else:
        data = _to_yaml(record).encode()
    _replace(where, data + b"\n")


def _record(topology: Topology) -> TopologyFile:
    record = TopologyFile(
        weft="topology",
        version=1,
        npus=topology.npus,
        name=topology.name,
        switches=topology.switches,
        removed=sorted(topology.removed),
        buffer=_buffer(topology),
        multicast=_multicast(topology),
        link_count=topology.links,
    )
    if topology.links <= MAX_LISTED_LINKS:
        record.links = _links(topology)
    else:
        record.columns = Columns(
            topology.src.tolist(),
            topology.dst.tolist(),
            _column(topology.bandwidth),
            _column(topology.latency),
        )
    return record


def _buffer(topology: Topology) -> str | dict[str, str | int | float] | None:
    """One size for all switches where they have the same; by switch if not."""
    sizes = [exact_size(size) for size in topology.buffers.values()]
    if len(sizes) == topology.switches and len(set(sizes)) == 1:
        return sizes[0]
    names = (_switch_name(topology, switch) for switch in topology.buffers)
    return dict(zip(names, sizes, strict=True)) or None


def _multicast(topology: Topology) -> bool | list[str]:
    if len(topology.copying) in (0, topology.switches):
        return bool(topology.copying)
    return [_switch_name(topology, switch) for switch in sorted(topology.copying)]


def _switch_name(topology: Topology, node: int) -> str:
    return f"s{node - topology.npus}"


def _column(values: NDArray[np.int64]) -> int | list[int]:
    """All values, or the one that they all are."""
    return int(values[0]) if (values == values[0]).all() else list(map(int, values))


def _links(topology: Topology) -> list[Link]:
    """One item a link, or a pair of neighbours in the list that differ in direction only."""

    def node(number: int) -> int | str:
        return number if number < topology.npus else _switch_name(topology, number)

    links: list[Link] = []
    columns = (topology.src, topology.dst, topology.bandwidth, topology.latency)
    for src, dst, rate, delay in zip(*(column.tolist() for column in columns), strict=True):
        link = Link(node(src), node(dst), exact_bandwidth(rate), exact_latency(delay))
        if links and links[-1] == Link(link.dst, link.src, link.bandwidth, link.latency):
            links[-1].both = True
        else:
            links.append(link)
    return links


def _to_yaml(record: TopologyFile) -> str:
    """One link a line, or columns wrapped; PyYAML would take seconds for either."""
    head = msgspec.to_builtins(record)
    links, columns = head.pop("links", None), head.pop("columns", None)
    # ASCII with escapes: PyYAML leaves some line breaks bare otherwise, and reads them as blanks.
    text: str = yaml.safe_dump(head, sort_keys=False, default_flow_style=False)
    if columns is not None:
        return text + "\n".join(["columns:", *(_to_yaml_column(*c) for c in columns.items())])
    if not links:
        return text + "links: []"
    rows = (", ".join(f"{k}: {'true' if v is True else v}" for k, v in li.items()) for li in links)
    return text + "\n".join(["links:", *(f"  - {{{row}}}" for row in rows)])


def _to_yaml_column(name: str, values: int | list[int]) -> str:
    if isinstance(values, int):
        return f"  {name}: {values}"
    lines = (", ".join(map(str, values[i : i + 16])) for i in range(0, len(values), 16))
    return f"  {name}: [\n    " + ",\n    ".join(lines) + "]"


def _replace(path: Path, data: bytes) -> None:
    """Write beside the target, then rename."""
    scratch = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".weft-", delete=False) as file:
            scratch = Path(file.name)
            file.write(data)
        # A temporary file is private; the result should be as readable as any new file.
        mask = os.umask(0)
        os.umask(mask)
        scratch.chmod(0o666 & ~mask)
        scratch.replace(path)
    except OSError as error:
        if scratch is not None:
            scratch.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None

"""Networks on disk: YAML or JSON of one schema, and ASTRA-sim's own files.

The schema is in ``docs/topology-files.md``. Reading back what was written gives the same
network in every column.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from weft.documents import (
    Document,
    PlacedError,
    check_new_file,
    convert,
    new_file,
    read_document,
)
from weft.errors import InputError, unknown_name
from weft.quoting import brief
from weft.topology.astra import build_astra, is_astra
from weft.topology.builders import SUFFIXES
from weft.topology.infragraph import infragraph_of, is_own, network_of_infragraph
from weft.topology.labels import Wishes
from weft.topology.machines import READERS, Machine, network_of, reader_of
from weft.topology.machines.others import what_else
from weft.topology.model import Topology
from weft.topology.rates import NOMINAL
from weft.topology.schema import WORDS, Columns, Link, Nodes, TopologyFile, build
from weft.units import exact_bandwidth, exact_latency, exact_size

FORMS = ("weft", "infragraph")
"""Forms in which networks are written."""
MAX_LISTED_LINKS = 1000
"""Networks with more links are written as columns: smaller, and quicker to read."""


def read_topology(path: str | os.PathLike[str], wishes: Wishes | None = None) -> Topology:
    """Read a network: the content, not the suffix, tells what kind of file it is.

    Parameters
    ----------
    wishes
        What is said of a machine beside its file.
    """
    return read_document(path, "topology", lambda document: _build(document, wishes or Wishes()))


def read_machine(path: str | os.PathLike[str], wishes: Wishes | None = None) -> Machine | None:
    """The machine or fabric that a file of a cluster describes; None if the file is a network."""

    def build(document: Document) -> Machine | None:
        reader = reader_of(document)
        return None if reader is None else reader.read(document, wishes or Wishes())

    return read_document(path, "topology", build)


def _build(document: Document, wishes: Wishes) -> Topology:
    reader = reader_of(document)
    if reader is not None:
        machine = reader.read(document, wishes)
        try:
            return network_of(machine, wishes)
        except InputError as error:
            raise PlacedError(str(error)) from None
    if wishes.any:
        raise PlacedError(
            "is a network of its own: --nvlink, and rates by kind of link, are for files of "
            "machines"
        )
    if wishes.rates != NOMINAL:
        raise PlacedError(
            f"says itself what its links carry; leave out --rates {wishes.rates}, which is for "
            "machines by name and files of machines"
        )
    if is_own(document):
        return network_of_infragraph(document.plain(), document.path.stem)
    if document.suffix == ".json":
        with suppress(msgspec.DecodeError, RecursionError):  # the quick way
            record = msgspec.json.decode(document.data, type=TopologyFile)
            return build(record, document.path.stem)
    if document.suffix not in SUFFIXES and not re.search(r"\bweft[\"']?\s*:", document.text):
        return _foreign(document)
    plain = document.plain()
    if is_astra(plain):
        return build_astra(plain)
    kind = plain.get("weft") if isinstance(plain, dict) else None
    if kind != "topology":
        found = "has no 'weft: topology'" if kind is None else f"says 'weft: {brief(kind)}'"
        other = what_else(document)
        raise PlacedError(other or f"is not a topology file: it {found}", ("weft",))
    return build(convert(plain, TopologyFile, WORDS), document.path.stem)


def _foreign(document: Document) -> Topology:
    """A file that is not named like Weft's own and has no mark of them: ASTRA-sim's, or none."""
    plain = None
    with suppress(PlacedError):
        plain = document.plain()
    if is_astra(plain):
        return build_astra(plain)
    known = ", ".join(reader.title for reader in READERS.values())
    raise PlacedError(
        what_else(document)
        or f"is not a topology file: neither Weft's own nor one of these: {known}"
    )


def check_topology_file(path: str | os.PathLike[str], form: str = FORMS[0]) -> Path:
    """Raise, before any work, if a network could not be written there; gives the path."""
    if form not in FORMS:
        raise unknown_name("form of a topology", form, FORMS)
    where = Path(path)
    if where.suffix.lower() not in SUFFIXES:
        raise InputError(f"{where}: a topology is written to a {', '.join(SUFFIXES)} file")
    check_new_file(where)
    return where


def write_topology(topology: Topology, path: str | os.PathLike[str], form: str = FORMS[0]) -> None:
    """Write a network as ``.yaml``, ``.yml`` or ``.json``; the file appears whole or not at all.

    Parameters
    ----------
    form
        ``weft`` for a file of Weft's own, ``infragraph`` for InfraGraph 3.
    """
    where = check_topology_file(path, form)
    record = _record(topology)
    if form == "infragraph":
        data = _plain(infragraph_of(topology, record), where)
    elif where.suffix.lower() == ".json":
        data = msgspec.json.format(msgspec.json.encode(record), indent=1 if record.links else -1)
    else:
        data = _to_yaml(record).encode()
    new_file(where, data + b"\n")


def _plain(values: dict[str, Any], where: Path) -> bytes:
    """Plain values as the suffix says."""
    if where.suffix.lower() == ".json":
        return msgspec.json.format(msgspec.json.encode(values), indent=1)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(values, Dumper=dumper, sort_keys=False).encode().rstrip(b"\n")


def _record(topology: Topology) -> TopologyFile:
    record = TopologyFile(
        weft="topology",
        version=1,
        npus=topology.npus,
        name=topology.name,
        switches=topology.switches,
        removed=sorted(topology.removed),
        dimensions=list(topology.dimensions),
        changes=list(topology.changes),
        buffer=_buffer(topology),
        multicast=_able(topology, topology.copying),
        adding=_able(topology, topology.adding),
        link_count=topology.links,
    )
    if topology.labels is not None:
        labels = topology.labels
        record.notes = list(labels.notes)
        record.nodes = Nodes(list(labels.kinds), list(labels.names), list(labels.hosts))
        record.wiring = labels.wiring
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
    names = (topology.node_name(switch) for switch in topology.buffers)
    return dict(zip(names, sizes, strict=True)) or None


def _able(topology: Topology, switches: frozenset[int]) -> bool | list[str]:
    if len(switches) in (0, topology.switches):
        return bool(switches)
    return [topology.node_name(switch) for switch in sorted(switches)]


def _column(values: NDArray[np.int64]) -> int | list[int]:
    """All values, or the one that they all are."""
    return int(values[0]) if (values == values[0]).all() else list(map(int, values))


def _links(topology: Topology) -> list[Link]:
    """One item a link, or a pair of neighbours in the list that differ in direction only."""

    def node(number: int) -> int | str:
        return number if number < topology.npus else topology.node_name(number)

    links: list[Link] = []
    rows = zip(*(column.tolist() for column in topology.columns), strict=True)
    for src, dst, rate, delay in rows:
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
    parts = {key: head.pop(key, None) for key in ("nodes", "wiring")}
    # ASCII with escapes: PyYAML leaves some line breaks bare otherwise, and reads them as blanks.
    text: str = yaml.safe_dump(head, sort_keys=False, default_flow_style=False)
    for key, names in parts.items():
        if names is not None:
            text += "\n".join([f"{key}:", *(_to_yaml_column(*c) for c in names.items()), ""])
    if columns is not None:
        return text + "\n".join(["columns:", *(_to_yaml_column(*c) for c in columns.items())])
    if not links:
        return text + "links: []"
    rows = (", ".join(f"{k}: {'true' if v is True else v}" for k, v in li.items()) for li in links)
    return text + "\n".join(["links:", *(f"  - {{{row}}}" for row in rows)])


def _to_yaml_column(name: str, values: int | list[int] | list[str]) -> str:
    if isinstance(values, int):
        return f"  {name}: {values}"
    # ASCII with escapes, which YAML has too; it allows no bare DEL.
    texts = [json.dumps(value).replace("\x7f", "\\u007f") for value in values]
    lines = (", ".join(texts[i : i + 16]) for i in range(0, len(texts), 16))
    return f"  {name}: [\n    " + ",\n    ".join(lines) + "]"

"""Write an algorithm as Chakra traces that Weft reads: a ring All-Gather among four NPUs."""

import json
import sys
from pathlib import Path

from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node

NPUS, SIZE = 4, 1 << 20
COMM_SEND, COMM_RECV = 5, 6


def steps(values):
    return [value - before for before, value in zip([0, *values], values, strict=False)]


def append(file, message):
    content = message.SerializeToString()
    length = len(content)
    while length >= 0x80:
        file.write(bytes([length & 0x7F | 0x80]))
        length >>= 7
    file.write(bytes([length]) + content)


def metadata(npu, chunks):
    found = GlobalMetadata(version="0.0.4")
    found.attr.add(name="weft.version", int64_val=2)
    found.attr.add(name="weft.npu", int64_val=npu)
    if npu == 0:
        demand = {"kind": "all-gather", "ranks": NPUS, "size": SIZE}
        header = {"npus": NPUS, "rows": NPUS * (NPUS - 1), "demands": [demand]}
        found.attr.add(name="weft.header", string_val=json.dumps(header))
        found.attr.add(name="weft.groups").sint64_list.values.extend(steps(range(NPUS)))
    found.attr.add(name="weft.chunk").sint64_list.values.extend(steps(chunks))
    return found


def node(number, kind, peer, row):
    made = Node(id=number, type=kind, name="send" if kind == COMM_SEND else "recv")
    made.attr.add(name="comm_dst" if kind == COMM_SEND else "comm_src", int32_val=peer)
    made.attr.add(name="comm_size", int64_val=SIZE // NPUS)
    made.attr.add(name="comm_tag", int32_val=row)
    return made


def trace(npu):
    """In step s, every NPU passes on the chunk it got in the step before; row s * NPUS + source."""
    before, after = (npu - 1) % NPUS, (npu + 1) % NPUS
    nodes, received = [], None
    for step in range(NPUS - 1):
        rows = [(step * NPUS + npu, COMM_SEND, after), (step * NPUS + before, COMM_RECV, before)]
        ready = received
        for row, kind, peer in sorted(rows):
            nodes.append(node(len(nodes), kind, peer, row))
            if kind == COMM_RECV:
                received = nodes[-1].id
            elif ready is not None:
                nodes[-1].data_deps.append(ready)
    return [metadata(npu, [(npu - step) % NPUS for step in range(NPUS - 1)]), *nodes]


folder = Path(sys.argv[1])
folder.mkdir()
for npu in range(NPUS):
    with (folder / f"weft.{npu}.et").open("wb") as file:
        for message in trace(npu):
            append(file, message)

"""Reads MSCCL-XML: from the document to rows that can be judged."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from weft.algorithm import Algorithm, Buffer, Linearized, cells_of, linearize
from weft.collective import Collective
from weft.collective.slots import output_slots
from weft.documents import naming
from weft.formats.derivation import Buffers, derive
from weft.formats.imported import Hints, Imported
from weft.formats.limits import count_limit
from weft.formats.msccl.document import Document, read_document
from weft.formats.msccl.pattern import Setting, collective_of, setting_of, unit_of
from weft.formats.msccl.program import Translation, private_counts, units_of
from weft.formats.msccl.steps import check, match, waits

_ROOT = re.compile(rb"<algo[\s/>]")


def recognise(_path: Path, head: bytes) -> bool:
    """Whether a file is XML with an <algo> in it."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" and bool(_ROOT.search(head))


def read(path: Path, hints: Hints) -> Imported:
    """Read a file; the algorithm is not judged yet."""
    document = read_document(path)
    check(document)
    setting = setting_of(document, hints)
    units = units_of(document)
    gpus = document.gpus
    scratch = gpus.scratch + private_counts(document, units)
    most = count_limit(document.size)
    if int((gpus.inputs + gpus.outputs + scratch).sum()) > most:
        document.fail("<algo>", f"has more than {most} slots in all; no runtime loads that")
    inputs, outputs = gpus.inputs.tolist(), gpus.outputs.tolist()
    buffers = Buffers(inputs, outputs, scratch.tolist(), setting.in_place)
    translate = partial(Translation, document, units, match(document), waits(document))
    if setting.kind is None:
        unit = unit_of(document, hints)
        with naming(path):
            collective, translation = derive(buffers, unit, translate)
    else:
        collective = collective_of(document, setting, hints)
        translation = translate(cells_of(collective, len(gpus), **vars(buffers)))
    with naming(path):
        linear = linearize(translation.program, translation)
    if setting.kind is not None and not setting.in_place:
        _check_outputs(translation, collective)
    algorithm = _algorithm(document, setting, collective, linear)
    return Imported(algorithm, path, lambda row: translation.origin(int(linear.action[row])))


def _check_outputs(translation: Translation, collective: Collective) -> None:
    """Out of place, a result that nobody writes is not there, not even an NPU's own chunk."""
    counts = output_slots(collective.chunks, collective.ranks).counts
    written = np.zeros(len(translation.cells.npu), dtype=np.bool_)
    written[translation.program.dst] = True
    for gpu, (row, count) in enumerate(
        zip(translation.cells.slots[Buffer.OUTPUT], counts.tolist(), strict=True)
    ):
        for slot in np.flatnonzero(~written[row[:count]])[:1]:
            translation.document.fail(f"GPU {gpu}", f"never writes output[{slot}], and inplace=0")


def _algorithm(
    document: Document, setting: Setting, collective: Collective, linear: Linearized
) -> Algorithm:
    """The rows among the NPUs of the group."""
    provenance: dict[str, str | int | float | bool] = {
        "format": "msccl",
        "name": document.algo.get("name", "")[:200],
        "protocol": document.algo.get("proto", "")[:20],
    }
    if setting.kind is None:
        provenance["collective"] = "derived from what the algorithm does"
    rows = linear.transfers
    if setting.group != tuple(range(len(setting.group))):
        npu = np.array(setting.group, dtype=np.int32)
        rows = replace(rows, src=npu[rows.src], dst=npu[rows.dst])
        collective = _among(collective, setting.group)
    return Algorithm((collective,), rows, provenance=provenance)


def _among(collective: Collective, group: tuple[int, ...]) -> Collective:
    """The same collective, whose rank r is the group's r-th NPU."""
    npu = np.array(group, dtype=np.int32)
    parts = collective.parts
    if parts is not None:
        # Sets are ascending; the numbers of their NPUs may come in another order.
        sets = [np.sort(npu[parts.members(i)]) for i in range(len(parts.set_offsets) - 1)]
        parts = replace(parts, set_members=np.concatenate(sets))
    root = None if collective.root is None else group[collective.root]
    return replace(collective, group=group, root=root, parts=parts)

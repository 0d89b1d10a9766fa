"""The producer that the page on the schema shows writes traces that Weft reads and verifies."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.formats import chakra_schema

import weft
from weft.formats import write
from weft.judge import verify

EXAMPLE = Path(__file__).parents[2] / "examples" / "chakra_producer.py"


def test_the_producer_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "chakra.schema.protobuf.et_def_pb2"
    monkeypatch.setitem(sys.modules, name, chakra_schema)
    for depth in range(1, name.count(".") + 1):
        parent = ".".join(name.split(".")[:depth])
        monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    folder = tmp_path / "ring"
    monkeypatch.setattr(sys, "argv", ["chakra_producer.py", str(folder)])
    runpy.run_path(str(EXAMPLE))
    algorithm = weft.load(folder)
    assert verify(algorithm)
    assert len(algorithm.transfers) == 12
    write(algorithm, tmp_path / "again")
    assert verify(weft.load(tmp_path / "again"))

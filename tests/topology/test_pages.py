"""The page of networks says what the networks are, and has them all."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from weft.topology.builders import FACTORS
from weft.topology.fabrics import FABRICS
from weft.topology.presets import MACHINES

SCRIPT = Path(__file__).parents[2] / "docs" / "figures" / "networks.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("networks", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # its dataclass looks for it there
    spec.loader.exec_module(module)
    return module


def test_every_network_has_a_section(script: ModuleType) -> None:
    built = {entry.name for entry in script.BUILDERS}
    assert built == {*(kind.name for kind in (*FACTORS, *FABRICS)), "products", "dragonfly-routers"}
    assert {entry.name for entry in script.MACHINES} == {kind.name for kind in MACHINES}
    assert all(entry.source for entry in script.MACHINES)


def test_the_page_and_its_pictures_are_up_to_date(script: ModuleType) -> None:
    stale = [
        str(path.relative_to(SCRIPT.parents[2]))
        for path, text in script.files().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run python docs/figures/networks.py"

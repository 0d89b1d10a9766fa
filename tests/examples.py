"""How many random examples a test tries; ``pytest --examples N`` tries N times as many."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

factor = 1


def examples(count: int, **more: Any) -> settings:
    """Settings for a test whose usual number of examples is `count`."""
    return settings(max_examples=count * factor, **more)

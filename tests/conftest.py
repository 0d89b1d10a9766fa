"""Random tests: no deadline, the same examples in CI each time, and more of them on request."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests import examples


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--examples",
        type=int,
        default=1,
        metavar="N",
        help="try N times as many random examples in each property-based test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Runs before any test module is imported, so that `examples.examples` knows the factor."""
    examples.factor = config.getoption("--examples")
    settings.register_profile(
        "weft",
        max_examples=100 * examples.factor,
        deadline=None,  # how fast the machine is must not decide
        suppress_health_check=[HealthCheck.too_slow],
        derandomize="CI" in os.environ,
    )
    settings.load_profile("weft")

"""Benchmarks measure and take long: they run only where `-m` asks for them."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "benchmark" in (config.getoption("markexpr") or ""):
        return
    measuring = [item for item in items if item.get_closest_marker("benchmark")]
    if measuring:
        config.hook.pytest_deselected(items=measuring)
        items[:] = [item for item in items if item not in measuring]

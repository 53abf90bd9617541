"""Which tests may run side by side (``scripts/test`` uses two workers)."""

import pytest

ONE_AT_A_TIME = (
    "tests/chaos/",
    "tests/cli/",
    "tests/daemon/",
    "tests/executors/",
    "tests/rpc/",
    "tests/scenarios/",
)
"""Folders whose tests start processes or measure time: all on one worker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups tests: those that start processes together, the others file by file."""
    for item in items:
        path = item.nodeid.split("::")[0]
        group = "processes" if path.startswith(ONE_AT_A_TIME) else path
        item.add_marker(pytest.mark.xdist_group(group))

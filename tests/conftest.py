"""Which tests run: those marked ``long`` with ``--long``, and only they; the others without. Which may run
side by side: `scripts/test` uses four workers, each takes file by file.

xdist's own ``loadgroup`` does nothing under pytest 9.2 (pytest-xdist issue 1386): its scheduler is told here.
"""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import leftovers
import pytest
from examples import BUILD, PROFILE, QUICK, examples
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from nqspy.model import site as site_module
from nqspy.model.events import Event
from nqspy.model.requests import Request
from nqspy.model.site import Site

# No test is timed: the machine may be busy. A build server draws the same examples each time, so that no
# landing hangs on a die; whoever runs the tests himself draws others, and finds what is left.
settings.register_profile("nqspy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
for _name in (BUILD, QUICK):
    settings.register_profile(
        _name, settings.get_profile("nqspy"), derandomize=True, database=None, max_examples=examples(100)
    )
settings.load_profile(PROFILE)

# Whoever begins a run in the background has it ignore these; what the tests begin must not.
for _number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY = {
    "tests/decider/test_decider_process.py",
    "tests/daemon/test_daemon_swap.py",
    "tests/executors/test_executors_kernel.py",
}
"""Files that fill the machine's memory, or switch swap on and off: one after another on one worker."""

LONGEST = (
    "scenarios/test_scenarios_quotas.py", "daemon/test_daemon_replay.py", "engine/test_engine_starvation.py",
    "chaos/test_chaos_storm.py", "sim/test_sim_compare.py", "clients/test_clients_snakemake.py",
    "engine/test_engine_cron_minutes.py", "decider/test_decider_process.py", "corpus/test_corpus_worlds.py",
    "chaos/test_chaos_gang.py", "cli/test_cli_exits_new.py", "report/test_report_order.py",
)  # fmt: skip
"""Files that take longest come first, so that no worker is left with one at the end: some that compute, some
that wait."""

APART = {"tests/sim/test_sim_batch.py"}
"""Files of long tests that share nothing: each goes to whoever is free, for they come late in a run."""


HOUSE = "tests/house/"
"""Its tests read the same files: on one worker each is parsed once."""


class ByFile(LoadFileScheduling):
    """A file's tests stay together but for those of `APART`, and so do the files of `MEMORY` and `HOUSE`."""

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        if path in APART:
            return nodeid
        if path.startswith(HOUSE):
            return HOUSE
        return "memory" if path in MEMORY else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Called by xdist when tests are shared out."""
    return ByFile(config, log)


_TELL = site_module.misfit


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that do not fit are told, as they are to people."""
    monkeypatch.setattr(site_module, "misfit", _TELL)


@pytest.fixture(scope="session", autouse=True)
def _misfits_raise() -> Iterator[None]:
    """An event that does not fit its request's state is told and left out; in tests it is a bug."""

    def refuse(site: Site, request: Request, event: Event) -> None:
        raise AssertionError(f"{event} does not fit {request}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_module, "misfit", refuse)
        yield


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that leaves processes behind has failed, whichever test it was."""
    factory = getattr(session.config, "_tmp_path_factory", None)
    if hasattr(session.config, "workerinput") or factory is None or factory._basetemp is None:
        return
    if left := leftovers.of(factory.getbasetemp()):
        leftovers.end(left)
        lines = "\n".join(f"  {pid} {command}" for pid, command in sorted(left.items()))
        print(f"\nprocesses left behind by the tests (killed now):\n{lines}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--long``: the tests that take minutes, which are left out otherwise."""
    parser.addoption("--long", action="store_true", help="run the tests marked long, and only them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Either the long tests or the others."""
    wanted = bool(config.getoption("--long"))
    left = [item for item in items if (item.get_closest_marker("long") is not None) != wanted]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if (item.get_closest_marker("long") is not None) == wanted]
    if hasattr(config, "workerinput"):
        places = _places({item.path for item in items})
        items.sort(key=lambda item: places[item.path])


def _places(files: set[Path]) -> dict[Path, tuple[float, Path]]:
    """Where a file comes in a run: folders are mixed, as some compute where others wait; of each the largest
    comes first, so that no worker has a long one left at the end."""
    found = {}
    for folder in {path.parent for path in files}:
        mine = [path for path in files if path.parent == folder]
        mine.sort(key=lambda path: (-path.stat().st_size, path))
        found |= {path: ((rank + 0.5) / len(mine), path) for rank, path in enumerate(mine)}
    first = [Path(__file__).parent / name for name in LONGEST]
    return found | {path: (place - len(first), path) for place, path in enumerate(first)}


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Eight thousand tests stay until the end; a worker spent a tenth of its time on circles in them."""
    gc.freeze()
    gc.set_threshold(20_000, 20)

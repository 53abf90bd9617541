"""The screen of `nqspy gangster` at a terminal: keys, what they send, and what a refusal looks like."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from nqspy.cli.umbrella.gangster import Gangster
from nqspy.model.errors import Unreachable


def job(id: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id, "class": "production", "rank": 2, "user": "anne", "pid": 4711, "command": "icl3", "pes": 2,
        "base": 0, "circuit": None, "places": ["0-1"], "state": "R", "ran_s": 60,
    } | more  # fmt: skip


JOBS = [
    job("1.vm", places=["2-3"], base=2, **{"class": "interactive", "rank": 4}),
    job("2.vm", ran_s=600),
    job("3.vm", places=[], base=None, state="N", ran_s=0),
]


class Daemon:
    """A daemon that answers with these jobs and notes what it is told."""

    def __init__(self, jobs: list[dict[str, Any]] = JOBS, refusal: str = "") -> None:
        self.jobs, self.refusal, self.told, self.looks = jobs, refusal, [], 0
        self.away = False

    def __call__(self, cmd: str, **fields: Any) -> dict[str, Any]:
        if self.away:
            raise Unreachable("no nqsd here")
        if cmd == "gangster":
            self.looks += 1
            return {
                "pes": 8, "shape": [2, 2, 2], "pes_per_node": 1, "offline": [], "hidden": [], "further": 0,
                "classes": ["interactive", "production", "standby"], "jobs": self.jobs,
            }  # fmt: skip
        self.told.append((cmd, fields))
        return {"done": [], "failed": [{"text": self.refusal}] if self.refusal else []}


def pressed(daemon: Daemon, *keys: str, size: tuple[int, int] = (80, 24)) -> str:
    """Return the screen as text after these keys, each once the screen is at rest."""

    async def press() -> str:
        app = Gangster(daemon, every=3600)
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete()
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
                await app.workers.wait_for_complete()
            await pilot.pause()
            if not app.is_running:
                return ""
            strips = [app.screen._compositor.render_strips()][0]
            return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    return asyncio.run(press())


def words(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines() if line.strip()]


def test_the_screen_has_map_table_prompt_and_keys():
    found = words(pressed(Daemon()))
    assert found[0] == "b. CLAS JOB-USER PID COMMAND #PE BASE W ST H:MM"
    assert found[1] == "b. Int b - anne 4711 icl3 2 010 - R 00:01"
    assert "Prod c - anne 4711 icl3 2 - - N 00:00" in " / ".join(found)
    assert found[-2] == "gangster:"
    assert found[-1].startswith("c class")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("s", ("suspend", {"ids": ["1.vm"], "resume": False})),
        ("r", ("suspend", {"ids": ["1.vm"], "resume": True})),
        ("down s", ("suspend", {"ids": ["2.vm"], "resume": False})),
        ("down down up s", ("suspend", {"ids": ["2.vm"], "resume": False})),
        ("c s t right enter", ("modify", {"ids": ["1.vm"], "values": {"job_class": "standby"}})),
        ("c enter", None),
        ("c s escape", None),
        ("h s", None),
        ("question_mark escape", None),
    ],
)
def test_a_key_sends_its_command_about_the_selected_job(keys, told):
    daemon = Daemon()
    pressed(daemon, *keys.split())
    assert daemon.told == ([] if told is None else [told])
    assert daemon.looks == 1 + (told is not None), "it looks again after a command, and not otherwise"


def test_a_refusal_is_shown_behind_the_prompt():
    found = words(pressed(Daemon(refusal="1.vm is not yours"), "s"))
    assert found[-2] == "gangster: 1.vm is not yours"


def test_the_last_screen_stays_while_the_daemon_is_away():
    daemon = Daemon()

    async def look() -> tuple[str, int]:
        app = Gangster(daemon, every=3600)
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()
            daemon.away = True
            app.look()
            await app.workers.wait_for_complete()
            await pilot.pause()
            return str(app.query_one("#said").render()), app.query_one("#rows").option_count

    said, rows = asyncio.run(look())
    assert "no nqsd here" in said
    assert rows == 4


def test_the_selection_stays_with_its_job_when_others_come_and_go():
    daemon = Daemon()

    async def look() -> list[tuple[str, dict[str, Any]]]:
        app = Gangster(daemon, every=3600)
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.press("down")
            daemon.jobs = [job("0.vm", **{"class": "a", "rank": 9}), *JOBS[1:]]
            app.look()
            await app.workers.wait_for_complete()
            await pilot.press("s")
            await app.workers.wait_for_complete()
            return daemon.told

    assert asyncio.run(look()) == [("suspend", {"ids": ["2.vm"], "resume": False})]


def test_no_jobs_and_no_classes_are_no_failure():
    daemon = Daemon([])
    assert words(pressed(daemon, "s", "c", "down", "r"))[0].startswith(".. CLAS")
    assert daemon.told == []
    assert pressed(daemon, "q") == ""


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_of_the_table_is_cut_at_the_edge(width):
    many = [job("4.vm", user="u" * 40, command="c" * 40, pes=100_000), *JOBS]
    shown = pressed(Daemon(many), size=(width, 24))
    rows = [line for line in words(shown) if " - " in line]
    assert len(rows) == 4
    assert all(row.endswith((":01", ":10", ":00", ".vm")) for row in rows)


def test_only_this_screen_loads_textual():
    code = "import sys; import nqspy.cli.nqspy; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

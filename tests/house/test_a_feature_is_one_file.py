"""A feature is one file and a line in the list: its settings, how it stands, its reasons and what it promised
are there for everybody who uses the command language, over a kill and a new home."""

import shutil

import pytest
from daemon.live import ONE_QUEUE, ROOT, Live, until
from house.feature.placing import add_to


@pytest.fixture
def tree(tmp_path):
    """A copy of nqspy with one file and one line more."""
    copy = tmp_path / "tree"
    shutil.copytree(ROOT / "nqspy", copy / "nqspy", ignore=shutil.ignore_patterns("__pycache__"))
    assert len(add_to(copy / "nqspy" / "core")) == 2
    return copy


@pytest.fixture
def homes(tree, tmp_path):
    """Makes homes of that tree; nothing runs on behind them."""
    made = []

    def home(name):
        live = Live(tmp_path / name, tmp_path / f"{name}-work")
        live.environment["PYTHONPATH"] = str(tree)
        made.append(live)
        return live

    yield home
    for each in made:
        each.close()


def test_it_is_set_shown_kept_explained_and_remembered(homes, tmp_path):
    live = homes("one").site(ONE_QUEUE).start()
    wrong = live.run("qmgr", "-c", "set rest on work=1 pause=0")
    assert wrong.status == 1
    assert "pause is at least 1s, not 0s" in wrong.err
    live.run("qmgr", "-c", "set rest on work=1 pause=1:00:00").ok()
    told = [" ".join(line.split()) for line in live.run("qmgr", "-c", "show rest").ok().lines]
    assert told[:3] == ["rest on", "work 1", "pause 1:00:00"]
    assert "how long it rests" in live.run("qmgr", "-c", "help set rest").ok().out

    job = live.qsub("sleep 2\necho rested\n")
    live.until(job, lambda found: found["state"] == "suspended", "rest")
    why = live.why(job)["reason"]
    assert (why["code"], why["who"]) == ("SUSPENDED", "rest")
    said = live.run("qstat", "--why", job).ok().out
    assert "goes on when it has rested" in said
    assert "its rest must be over" in said
    assert "an operator must" not in said
    rests = until(lambda: rests_of(live, job), "it is shown until when it rests")

    live.kill()
    live.start()
    assert rests_of(live, job) == rests, "what was promised is remembered"
    assert live.job(job)["state"] == "suspended"

    snap = tmp_path / "snap.qmgr"
    live.run("qmgr", "-c", f"snap {snap}").ok()
    assert "set rest on work=1 pause=1:00:00" in snap.read_text()
    other = homes("two").site("").start()
    other.run("qmgr", str(snap)).ok()
    assert other.run("qmgr", "-c", "snap").ok().out == live.run("qmgr", "-c", "snap").ok().out
    assert "Rest" in other.run("qmgr", "-c", "show all").ok().lines

    live.run("qmgr", "-c", "set rest off").ok()
    assert live.ended(job)["exit_status"] == 0
    until(lambda: live.events("promised")[-1]["value"] is None, "nothing is promised any more")


def rests_of(live: Live, job: str) -> str:
    rows = [line.split(maxsplit=1) for line in live.run("qmgr", "-c", "show rest").ok().lines]
    return dict(each for each in rows if len(each) == 2).get(job, "")

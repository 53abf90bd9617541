"""One run: a daemon, clients, faults by a seed; then calm, and the judgement. CI and ``scripts/chaos`` use it
alike."""

import gzip
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from chaos.faults import Storm
from chaos.jobs import furnish
from chaos.judge import History, StormJudge, open_site
from chaos.ledger import Ledger
from chaos.people import Person, join
from daemon.live import ROOT, Live
from engine.harness import observable
from shadow.judge import Shadow
from small_disk import small_disk

from nqspy.daemon.failpoints import OF_COMMIT
from nqspy.daemon.home import Home
from nqspy.daemon.tools import examine
from nqspy.engine import lifecycle
from nqspy.executors import records
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site

SITE = """\
set machine pes=8
set grace 1
set usage half_life=876000000h
set backup every=1:00 keep=2
create batch_queue fast priority=20 run_limit=2 order=fcfs reserve=all workdir=submit
set default wall_limit=20
set default rerun_output replace
create batch_queue slow priority=10 run_limit=1 order=fcfs reserve=all workdir=submit
create batch_queue lists priority=30 run_limit=1 workdir=submit
create batch_queue parking priority=5 workdir=submit
enable queue fast
enable queue slow
enable queue lists
enable queue parking
start queue fast
start queue slow
start queue lists
"""
CALM = 300.0
"""Seconds within which everything must have ended once nothing fails any more."""
KNOWN = (
    "could not be written for", "no job could be submitted for", "the end of request", "there is trouble",
    "a pass", "MB free",
    "no backup could be made", "old, passes integrity_check", "in the future: the clock was wrong",
)  # fmt: skip
"""What `nqspy doctor` may find after a storm: alarms, a small disk, a backup's age by the stepped clock."""
SMALL_DISK = 192 << 20
MOST_NEAR = 40
"""Events around a pass that are shown, at most."""


def storm(
    seed: int, seconds: float, folder: Path, say: Callable[[str], None] = lambda text: None, clients: int = 6,
    kinds: tuple[str, ...] = (), strikes: int = 0,
) -> Ledger:  # fmt: skip
    """Runs and judges; what is wrong stands in the ledger's violations. ``kinds``: of faults; empty: all. It
    lasts longer where fewer than ``strikes`` have been tried by then, as on a busy machine."""
    with small_disk(folder / "home", f"size={SMALL_DISK}", required=False) as small:
        exits = {name: (ROOT / "exits" / f"{name}.py").read_text() for name in ("machine_gun", "dependency")}
        live = Live(folder / "home", folder / "work").site(SITE, exits)
        live.accepts_trouble = True
        furnish(live.work)
        ledger = Ledger(live.work)
        if not small:
            say("the disk is not filled: a small file system cannot be mounted here (not root)")
        try:
            faults = Storm(live, ledger, Random(seed), small)
            faults.start()
            people = [Person(live.home, ledger, number, seed) for number in range(clients)]
            for person in people:
                person.start()
            blow(faults, seconds, kinds, (0.1, 2.0), say, strikes)
            faults.calm()
            for error in join(people):
                ledger.broken("client", "", repr(error))
            _drain(live, ledger)
            StormJudge(ledger, *close_books(live, ledger)).all()
        finally:
            live.close()
            if small and ledger.violations:  # the disk goes, and nothing else says as much as the journal
                shutil.copy2(live.home / "nqs.db", folder)
                shutil.copytree(live.home / "log", folder / "log")
    ledger.counts["seconds"] = round(ledger.clock())
    return ledger


def blow(
    faults: Storm, seconds: float, kinds: tuple[str, ...], pauses: tuple[float, float],
    say: Callable[[str], None], strikes: int = 0,
) -> None:  # fmt: skip
    """Have faults of these kinds strike, pauses between them; tell of it twice a minute."""
    ledger, begun = faults.ledger, time.monotonic()
    told, due = begun, begun + 1
    while time.monotonic() < begun + seconds or len(ledger.strikes) < strikes:
        faults.look()
        if time.monotonic() >= due:
            faults.strike(kinds)
            due = time.monotonic() + faults.chance.uniform(*pauses)
        if time.monotonic() > told + 30:
            told = time.monotonic()
            say(f"{ledger.clock():.0f} s: {len(ledger.strikes)} faults, {ledger.counts['called']} calls, "
                f"{ledger.counts['acknowledged']} acknowledged, {len(ledger.violations)} broken")  # fmt: skip
        time.sleep(0.05)


def _drain(live: Live, ledger: Ledger) -> None:
    """Lets go of all that clients held, and waits until nothing is left."""
    for bar in (bar for promise in ledger.promises.values() for bar in promise.bars):
        if bar.until is None and bar.why != "deleted":
            bar.until = ledger.length()
    live.set("start queue parking", "set queue slow run_limit=8", "set queue fast run_limit=8")
    end = time.monotonic() + CALM
    while time.monotonic() < end:
        left = live.client.requests()
        if not left:
            return
        for row in (each.data for each in left):
            if row["state"] == "suspended":
                live.client.call("suspend", ids=[row["id"]], resume=True)
            elif row["state"] == "held" and set(row["held"]) - {"s"}:
                live.client.call("release", ids=[row["id"]], letter="u")
            elif row["state"] == "held" and (row["reason"] or {}).get("code") == "DEPENDENCY":
                _give_up(live, ledger, row["id"], row["name"])
            elif row.get("array"):  # it waits for its held indices
                live.client.call("release", ids=[row["id"]], letter="u")
        time.sleep(0.1)
    for each in live.client.requests()[:5]:
        ledger.broken("does not end", str(each.data["name"]), f"{each.data['state']}: {each.data['reason']}")


def _give_up(live: Live, ledger: Ledger, id: str, token: str) -> None:
    for promise in [p for t, p in ledger.promises.items() if t == token or t.startswith(f"{token}i")]:
        promise.asked.add("delete")
        ledger.tell(promise, "its dependency can never be met: deleted")
    live.client.call("delete", ids=[id], force=True)
    ledger.count("dependencies never met")


def close_books(live: Live, ledger: Ledger) -> tuple[History, Site]:
    """Stops the daemon and looks at what it leaves; gives what the judges need."""
    _examine(live, ledger)
    ledger.counts["backups"] = sum(" INFO backup " in line for line in live.log.splitlines())
    live.restart()  # as much for the sweep of the spool as to see that it comes up sound
    live.stop()
    _look_into_spool(live, ledger)
    for pid in live.leftovers():
        ledger.broken("orphan", "", Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " "))
    _read_logs(live, ledger)
    history, site = open_site(live.home / "nqs.db")
    _replay(ledger, history, site)
    _judge_passes(ledger, history)
    return history, site


def _look_into_spool(live: Live, ledger: Ledger) -> None:
    """Nothing stays but output of requests that were lost for good or could not be delivered."""
    folders = list((live.home / "spool").glob("[0-9]*.[0-9]*"))
    kept = [
        folder
        for folder in folders
        if os.path.lexists(folder / "kept") or (records.read(str(folder), "done") or {}).get("kept")
    ]
    ledger.counts["outputs kept in the spool"] = len(kept)
    if left := [folder.name for folder in folders if folder not in kept]:
        ledger.broken("spool", "", f"folders of ended attempts: {left[:10]}")


def _examine(live: Live, ledger: Ledger) -> None:
    for finding in examine(Home(live.home)):
        known = any(text in finding.text for text in KNOWN)
        if finding.state == "bad" and not known:
            ledger.broken("doctor", "", f"{finding.what}: {finding.text}")


def _replay(ledger: Ledger, history: History, rows: Site) -> None:
    """The journal must give the same site as the rows."""
    site = Site()
    for recorded in history.events:
        lifecycle.apply(site, recorded)
    check_site(rows)
    told, found = observable(site), observable(rows)
    for key, value in told.items():
        if found[key] != value:
            ledger.broken(
                "replay", "", f"{key}: the journal gives {value!s:.200}, the rows {found[key]!s:.200}"
            )


def _judge_passes(ledger: Ledger, history: History) -> None:
    """Report each pass that differs from the manual's rules, with what happened while it was decided."""
    verdict = Shadow(Site(), pause=None).take_all(history.events)
    ledger.count("passes judged by the rules", verdict.passes)
    for each in verdict.differences:
        decided: Any = history.events[each.n - 1].event
        near = [r for r in history.events[decided.as_of :] if r.n <= each.n or r.at == each.at][:MOST_NEAR]
        lines = [f"pass {each.n} at {each.at} (as of {decided.as_of}): request {each.seq}: {each.text}"]
        lines += [f"    near   {r.n} at {r.at} {r.event}" for r in near]
        token = history.stories[each.seq].token if each.seq in history.stories else ""
        ledger.broken("rules", token, "\n".join(lines))


def _read_logs(live: Live, ledger: Ledger) -> None:
    logs = sorted((live.home / "log").glob("nqsd.log*"))
    for path in logs:
        name, packed = path.name, path.suffix == ".gz"
        text = gzip.decompress(path.read_bytes()).decode() if packed else path.read_text()
        ledger.count("injected errors", sum(text.count(f": {action}") for action in OF_COMMIT))
        for record in re.split(r"\n(?=\d{4}-)", text):
            if "guard.Overrun" in record:
                # Wall time runs on while the daemon is stopped: the exit in whose call that was is cut off.
                ledger.count("exits interrupted")
            elif "Traceback" in record:
                ledger.broken("traceback", "", f"{name}: {record[:2000]}")
    spawner = live.home / "spool" / "starter.log"
    if spawner.exists() and (text := spawner.read_text()):
        ledger.broken("spawner", "", text[-1500:])

"""One run of applications by class: callers, kills of daemon, spawner and shepherds by a seed; then calm, and
the judgement. The suite and ``scripts/chaos gang`` use it alike."""

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from chaos.faults import STARTING, Storm
from chaos.gang_judge import GangJudge
from chaos.gang_people import Caller
from chaos.gang_programs import furnish as furnish_programs
from chaos.jobs import furnish
from chaos.ledger import Ledger
from chaos.people import join
from chaos.run import CALM, blow, close_books
from daemon.live import Live
from stillness import stands_still

from nqspy.model.errors import Refusal, Unreachable
from nqspy.rpc.client import Client

SITE = """\
set machine pes=8
set grace 1
create class rush priority=5 wait=1 do_not_disturb=1 pe_limit=4
create class interactive priority=4 wait=0 do_not_disturb=0
create class benchmark priority=3 wait=2 do_not_disturb=unlimited pe_limit=3 preempted=off
create class production priority=2 wait=3 do_not_disturb=1
create class standby priority=1 wait=20 do_not_disturb=0
set gang large_size=5 large_limit=8
create domain requests kind=command
set domain requests requests=6
create batch_queue apps order=class workdir=submit
create batch_queue scripts domain=requests workdir=submit
enable queue apps
enable queue scripts
start queue apps
start queue scripts
set default mpprun queue apps
"""
SLOTS = "set domain application depth=3 heartbeat=0.7 placement=slots\n"
"""For a site whose applications share PEs in turns."""
LOOKS = 8
"""How many looks in turn a process may stand still while its request is said to run; in turns more often."""
PEOPLE = 6
LONGEST = 25.0
UNTOLD = 330.0
"""Seconds that callers have to come back in once all has ended: they ask by themselves after 300."""


class Kills(Storm):
    """Nothing but kill -9: of the daemon at any moment and at points of its way, of spawner and shepherds."""

    def _arms(self, points: tuple[str, ...] = ()) -> str:
        if points or self.chance.random() < 0.1:
            return f"{self.chance.choice(points or STARTING)}=kill@{self.chance.randint(1, 4)}"
        if self.chance.random() < 0.4:
            at = round(2 ** self.chance.uniform(1, 8))
            point = self.chance.choice(("commit", "committed", "hand", "handed", "reply", "sighted"))
            return f"{point}=kill@{at}"
        return ""


class Frost(threading.Thread):
    """Looks every two seconds whether a process stands still whose request is said to run. ``enough`` ends
    it."""

    def __init__(self, live: Live, ledger: Ledger, looks: int) -> None:
        super().__init__(name="frost", daemon=True)
        self._looks = looks
        self.enough = threading.Event()
        self._live, self._ledger = live, ledger
        self._client = Client(live.home, timeout=60)
        self._seen: Counter[tuple[int, str]] = Counter()

    def run(self) -> None:
        while not self.enough.wait(2.0):
            try:
                self._look()
            except (Refusal, Unreachable):
                continue  # the daemon was killed
        self._client.close()

    def _look(self) -> None:
        before = self._running()
        still = {each for each in standing(self._live) if each[1] in before}
        still = {(pid, id) for pid, id in still if id in self._running()}
        self._ledger.count("looks for frozen ones")
        self._ledger.count("processes seen standing still, just gone on", len(still))
        self._seen = Counter({each: self._seen[each] + 1 for each in still})
        for (pid, id), times in self._seen.items():
            if times == self._looks:
                self._ledger.broken("frozen", "", f"process {pid} of {id}, which is said to run")

    def _running(self) -> set[str]:
        return {
            each["id"]
            for each in self._client.call("list_requests", ids=[], ended=False)
            if each["state"] == "running"
        }


def standing(live: Live) -> list[tuple[int, str]]:
    """Processes of requests of this home that stand still, with the requests' identifiers."""
    found = []
    for pid in live.leftovers():
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            ids = [word[11:].decode() for word in words if word.startswith(b"QSUB_REQID=")]
            if ids and stands_still(pid):
                found.append((pid, ids[0]))
        except OSError:
            continue  # it has ended
    return found


def storm(
    seed: int, seconds: float, folder: Path, say: Callable[[str], None] = lambda text: None,
    longest: float = LONGEST, slots: bool = False,
) -> Ledger:  # fmt: skip
    """Runs and judges; what is wrong stands in the ledger's violations. ``longest``: s of a program, at
    most; ``slots``: applications share PEs in turns."""
    live = Live(folder / "home", folder / "work").site(SITE + SLOTS * slots)
    live.accepts_trouble = True
    furnish(live.work)
    furnish_programs(live.work)
    ledger = Ledger(live.work)
    with tempfile.TemporaryDirectory(prefix="nqspy-gang-") as doors:
        people = [Caller(live, ledger, number, seed, Path(doors), longest) for number in range(PEOPLE)]
        try:
            faults = Kills(live, ledger, Random(seed), small=False)
            frost = Frost(live, ledger, LOOKS * (6 if slots else 1))
            faults.start()
            for thread in (*people, frost):
                thread.start()
            blow(faults, seconds, ("killed", "shepherd", "spawner"), (0.3, 7.0), say)
            faults.calm()
            for error in join([*people]):
                ledger.broken("caller", "", repr(error))
            _drain(live, ledger, people)
            frost.enough.set()
            frost.join()
            history, _ = close_books(live, ledger)
            calls = [call for person in people for call in person.calls]
            GangJudge(ledger, history, calls, 3 if slots else 1).all()
        finally:
            for person in people:
                person.leave()
            live.close()
    ledger.counts["seconds"] = round(ledger.clock())
    return ledger


def _drain(live: Live, ledger: Ledger, people: list[Caller]) -> None:
    """Waits until nothing is left; who is still there then does not end."""
    end = time.monotonic() + CALM
    while (left := live.client.requests()) and time.monotonic() < end:
        for person in people:
            person.returned()
        for row in (each.data for each in left if each.data["state"] == "held"):
            live.client.call("release", ids=[row["id"]], letter="s")  # its shepherds were killed too often
        time.sleep(0.1)
    for each in left[:5]:
        ledger.broken("does not end", str(each.data["name"]), f"{each.data['state']}: {each.data['reason']}")
    end = time.monotonic() + UNTOLD
    while {person.returned() for person in people} != {True} and time.monotonic() < end:
        time.sleep(0.1)
    for call in (call for person in people for call in person.calls if call.status is None):
        ledger.broken("does not return", call.promise.job.token, f"mpprun, process {call.process.pid}")
    for pid, id in standing(live):
        ledger.broken("frozen", "", f"process {pid} of {id}, at the end")

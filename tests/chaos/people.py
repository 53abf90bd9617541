"""Clients under whose load faults strike: each a thread with its own connection and its own requests.

They submit, list, hold, release, delete, move, rerun, suspend and ask; what they were told goes into the
ledger, and no more is known of it there.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from chaos.jobs import make_array, make_job
from chaos.ledger import Bar, Ledger, Promise

from nqspy.model.errors import Refusal, Unreachable
from nqspy.rpc.client import Client
from nqspy.rpc.submission import submission

PATIENCE = 240.0
"""Seconds after which an answer that does not come is given up."""
MOST_OPEN = 14
"""Requests of one client that have not ended."""
QUEUES = ("fast", "fast", "slow")
WORDS = ("ok", "any", "fail", "start")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a message: ``done``, ``refused`` or ``unknown``; ``doubt``: an earlier sending of it was
    not answered."""

    how: str
    result: Any = None
    code: str = ""
    doubt: bool = False


class Person(threading.Thread):
    """One client. ``enough`` ends it; ``pause``: most seconds between two deeds."""

    pause = 0.12

    def __init__(self, home: Path, ledger: Ledger, number: int, seed: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.ledger = ledger
        self.number = number
        self.chance = Random(f"{seed} {number}")
        self.enough = threading.Event()
        self.error: Exception | None = None
        self.open: list[Promise] = []
        self._client = Client(home, timeout=PATIENCE)
        self._count = 0

    def run(self) -> None:
        deeds = self.deeds()
        try:
            while not self.enough.wait(self.chance.uniform(0.0, self.pause)):
                deed = self.chance.choice(deeds)
                if deed.__name__.startswith("submit") and len(self.open) > MOST_OPEN:
                    deed = self.look
                deed()
        except Exception as error:
            self.error = error
        finally:
            self._client.close()

    def deeds(self) -> list[Callable[[], None]]:
        return [*[self.submit] * 10, *[self.submit_after] * 3, *[self.submit_list] * 2, self.submit_array,
                *[self.hold] * 3,
                *[self.release] * 3, *[self.delete] * 3, *[self.move] * 2, self.rerun, self.suspend,
                *[self.look] * 4]  # fmt: skip

    def ask(self, cmd: str, **fields: Any) -> Answer:
        """Sends a message until it is answered, as a client that is patient."""
        doubt, end = False, time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return Answer("done", self._client.call(cmd, **fields), doubt=doubt)
            except Refusal as refusal:
                self.ledger.count(f"refused {refusal.code}")
                return Answer("refused", str(refusal), refusal.code, doubt)
            except Unreachable:
                doubt = True
                self.enough.wait(0.1)
        return Answer("unknown", doubt=True)

    # ------------------------------------------------------------ submitting
    def _new(self, kind: str = "") -> Promise:
        self._count += 1
        token = f"c{self.number}x{self._count}"
        return Promise(make_job(token, self.ledger.work, self.chance, kind), self.number)

    def _item(self, promise: Promise, queue: str, **more: Any) -> dict[str, Any]:
        job, work = promise.job, self.ledger.work
        options: dict[str, Any] = {
            "shell": "/bin/sh", "workdir": work, "name": job.token, "queue": queue, "environment": {},
            "stdout": work / "out" / job.token, "stderr": work / "out" / f"{job.token}.err",
            **job.options, **more,
        }  # fmt: skip
        return submission(job.script, (), options)  # type: ignore[arg-type]

    def _submit(self, promises: list[Promise], items: list[dict[str, Any]]) -> None:
        key = promises[0].job.token
        for promise in promises:
            self.ledger.enter(promise)
            self.ledger.tell(promise, f"submitting, key {key}, after {promise.after}")
        answer = self.ask("submit", items=items, key=key, dry_run=False)
        while answer.code == "not_committed" and self.chance.random() < 0.6 and not self.enough.is_set():
            self.enough.wait(0.3)
            again = self.ask("submit", items=items, key=key, dry_run=False)
            answer = Answer(again.how, again.result, again.code, again.doubt or answer.doubt)
        for number, promise in enumerate(promises):
            self._take(promise, number, answer)

    def _take(self, promise: Promise, number: int, answer: Answer) -> None:
        if answer.how == "done":
            id = answer.result["ids"][number if promise.index is None else 0]
            promise.standing, promise.id = "acknowledged", id.replace("[]", f"[{promise.index}]")
            self.open.append(promise)
        elif answer.how == "refused" and not answer.doubt:
            promise.standing = "refused"
        self.ledger.count(promise.standing)
        self.ledger.tell(promise, f"submission {promise.standing}: {answer.result!s:.200}")

    def submit(self) -> None:
        """One request, now and then held from the beginning."""
        promise = self._new()
        held = self.chance.random() < 0.1
        if held:
            promise.bars.append(Bar("held at submission", self.ledger.length()))
        self._submit([promise], [self._item(promise, self.chance.choice(QUEUES), held=held)])

    def submit_after(self) -> None:
        """One that waits for another one."""
        if not self.open:
            return
        promise, other, word = self._new(), self.chance.choice(self.open), self.chance.choice(WORDS)
        promise.after = (other.job.token, word)
        item = self._item(promise, self.chance.choice(QUEUES), after=f"{other.id}:{word}")
        self._submit([promise], [item])

    def submit_list(self) -> None:
        """A list whose order counts, in a queue that runs one at a time."""
        promises = [self._new("plain") for _ in range(self.chance.randint(3, 8))]
        name = promises[0].job.token
        for number, promise in enumerate(promises):
            promise.line = (name, number)
        self._submit(promises, [self._item(promise, "lists") for promise in promises])

    def submit_array(self) -> None:
        """An array; each index is ordered about by itself."""
        self._count += 1
        token = f"c{self.number}x{self._count}"
        jobs = make_array(token, self.ledger.work, self.chance)
        promises = [Promise(job, self.number, index=index) for index, job in enumerate(jobs, 1)]
        out = self.ledger.work / "out" / f"{token}i%a"
        more = {"name": token, "array": f"1-{len(jobs)}", "stdout": out, "stderr": f"{out}.err"}
        self._submit(promises, [self._item(promises[0], self.chance.choice(QUEUES), **more)])

    # ------------------------------------------------------------ what was submitted
    def _one(self) -> Promise | None:
        some = [promise for promise in self.open if promise.line is None]
        return self.chance.choice(some[-8:]) if some else None

    def _order(self, promise: Promise, cmd: str, **fields: Any) -> bool:
        """Has something done to a request; True when it is said to be done."""
        name = f"{cmd} {fields.get('queue', '')}{' resume' if fields.get('resume') else ''}".strip()
        promise.asked.add(name)
        self.ledger.tell(promise, f"asking for {name}")
        answer = self.ask(cmd, ids=[promise.id], **fields)
        failed = (answer.result or {}).get("failed") if answer.how == "done" else None
        good = answer.how == "done" and not failed
        if failed and failed[0]["code"] == "unknown_request" and not answer.doubt:
            self.ledger.broken("forgotten", promise.job.token, f"{name}: {failed[0]['text']}")
        if good:
            promise.done.add(name)
        self.ledger.count(f"{cmd} done" if good else f"{cmd} not done")
        self.ledger.tell(promise, f"{name}: {'done' if good else f'{answer.how} {failed or answer!s:.200}'}")
        return good

    def _bar(self, promise: Promise, why: str) -> None:
        promise.bars.append(Bar(why, self.ledger.length()))

    def _unbar(self, promise: Promise) -> None:
        """Before anything that may let it begin is asked for."""
        for bar in promise.bars:
            if bar.until is None and bar.why != "deleted":
                bar.until = self.ledger.length()

    def hold(self) -> None:
        promise = self._one()
        if promise is not None and self._order(promise, "hold"):
            self._bar(promise, "held")

    def release(self) -> None:
        """Lets one go on that is held."""
        held = [each for each in self.open if any(bar.until is None for bar in each.bars)]
        if held:
            promise = self.chance.choice(held)
            parked = any(bar.why == "parked" and bar.until is None for bar in promise.bars)
            self._unbar(promise)
            self._order(promise, "release", letter="u")
            if parked:
                self._order(promise, "move", queue="fast")

    def delete(self) -> None:
        """Deletes one, running or not; the answer means that it will not begin any more."""
        promise = self._one()
        if promise is not None:
            if self._order(promise, "delete", kill=self.chance.random() < 0.3, force=True):
                self._bar(promise, "deleted")
            self.open.remove(promise)

    def move(self) -> None:
        """Moves one into a queue that starts nothing, or between queues."""
        promise = self._one()
        if promise is None or promise.index is not None:  # an array moves as a whole
            return
        queue = self.chance.choice(("fast", "slow", "parking"))
        if queue != "parking":
            self._unbar(promise)
        if self._order(promise, "move", queue=queue) and queue == "parking":
            self._bar(promise, "parked")

    def rerun(self) -> None:
        promise = self._one()
        if promise is not None:
            self._order(promise, "rerun")

    def suspend(self) -> None:
        """Stops one for a moment."""
        promise = self._one()
        if promise is not None and self._order(promise, "suspend"):
            self.enough.wait(self.chance.uniform(0.0, 0.5))
            self._order(promise, "suspend", resume=True)

    def look(self) -> None:
        """Asks after all of its requests; what was acknowledged must be known."""
        if not self.open:
            return
        answer = self.ask("list_requests", ids=[each.id for each in self.open], ended=False)
        if answer.how == "done":
            states = {row["id"]: row["state"] for row in answer.result}
            self.open = [each for each in self.open if states.get(each.id) != "ended"]
        elif answer.code == "unknown_request":
            self.ledger.broken("forgotten", self.open[0].job.token, str(answer.result))


def join(people: list[Person]) -> list[Exception]:
    for person in people:
        person.enough.set()
    for person in people:
        person.join(2 * PATIENCE)
    return [person.error for person in people if person.error is not None]

"""People who call `mpprun`, inside requests of a command domain and outside, submit jobs by class, and kill,
interrupt and delete some of them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.gang_programs import Wish, program, wish
from chaos.jobs import Job
from chaos.ledger import Ledger, Promise
from chaos.people import Person
from daemon.live import Live, command

MOST_OPEN = 6
"""Calls and requests of one person that have not ended."""
SCRIPT = """\
echo "{token} begin $NQSPY_ATTEMPT" >> {work}/marks
{calls}
wait
echo "{token} end $NQSPY_ATTEMPT" >> {work}/marks
"""
CALL = """\
( at={token}-{number}-a$NQSPY_ATTEMPT; ln -s {work}/program {work}/bin/$at
  {mpprun} {options} {work}/bin/$at {words} > {work}/out/$at
  echo "$at rc $?" >> {work}/marks ) &
"""


@dataclass(slots=True)
class Call:
    """An `mpprun` that was called: by whom it was ``struck`` (a signal), and how it ended."""

    promise: Promise
    wish: Wish
    process: "subprocess.Popen[bytes]"
    struck: int = 0
    status: int | None = None
    over: float = 0.0


class Caller(Person):
    """One who does all this. ``longest``: s that a program takes at most; ``folder``: for what `mpprun`
    keeps there."""

    pause = 0.8

    def __init__(
        self, live: Live, ledger: Ledger, number: int, seed: int, folder: Path, longest: float
    ) -> None:
        super().__init__(live.home, ledger, number, seed)
        self.calls: list[Call] = []
        self._longest = longest
        self._environment = live.environment | {"TMPDIR": str(folder)}

    def deeds(self) -> list[Callable[[], None]]:
        many = [*[self.call] * 8, *[self.job] * 4, *[self.script] * 3]
        deeds = [*many, *[self.strike] * 2, *[self.delete] * 2, *[self.look] * 3]
        return [self._unless_busy(each) if each in many else each for each in deeds]

    def _unless_busy(self, deed: Callable[[], None]) -> Callable[[], None]:
        def do() -> None:
            busy = len(self.open) + sum(each.status is None for each in self.calls)
            (deed if busy < MOST_OPEN else self.look)()

        return do

    def _promise(self, kind: str) -> Promise:
        self._count += 1
        return Promise(Job(f"g{self.number}x{self._count}", kind, ""), self.number)

    # ------------------------------------------------------------ what they begin
    def call(self) -> None:
        want, promise = wish(self.chance, self._longest), self._promise("mpprun")
        token = promise.job.token
        self.ledger.enter(promise)
        self.ledger.tell(promise, f"mpprun {want}")
        place, words = self.ledger.work / "out" / token, [program(self.ledger.work, token), *want.words]
        with open(place, "wb") as out, open(f"{place}.err", "wb") as err:
            process = subprocess.Popen(
                [*command("mpprun"), *want.options, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                cwd=self.ledger.work, env=self._environment,
            )  # fmt: skip
        self.calls.append(Call(promise, want, process))
        self.ledger.count("called")

    def job(self) -> None:
        want, promise = wish(self.chance, self._longest), self._promise("job")
        path = program(self.ledger.work, promise.job.token)
        promise.wish = want
        item = self._item(promise, "apps")
        item["script"] = f"exec {path} {' '.join(want.words)}\n"
        item["spec"]["job_class"] = want.job_class
        item["spec"]["ask"] = {"pes": want.pes, **({"wall": 3000} if want.kind == "late" else {})}
        self._submit([promise], [item])

    def script(self) -> None:
        """A request of the command domain that calls `mpprun` up to three times at once."""
        promise = self._promise("script")
        inner = [wish(self.chance, self._longest) for _ in range(self.chance.randint(1, 3))]
        promise.inner = inner
        words = {"token": promise.job.token, "work": self.ledger.work}
        calls = [
            CALL.format(number=number, mpprun=" ".join(command("mpprun")), options=" ".join(want.options),
                        **words | {"words": " ".join(want.words)})
            for number, want in enumerate(inner)
        ]  # fmt: skip
        item = self._item(promise, "scripts")
        item["script"] = SCRIPT.format(calls="".join(calls), **words)
        self._submit([promise], [item])

    # ------------------------------------------------------------ what they do to it
    def strike(self) -> None:
        """Somebody kills a caller, or interrupts him."""
        there = [each for each in self.calls if each.status is None and not each.struck]
        if there:
            each = self.chance.choice(there)
            each.struck = self.chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
            self.ledger.tell(each.promise, f"its caller gets signal {int(each.struck)}")
            self.ledger.count(f"callers {each.struck.name}")
            each.process.send_signal(each.struck)

    def look(self) -> None:
        self.returned()
        super().look()

    def returned(self) -> bool:
        """Takes the statuses of callers that have ended; whether all have."""
        for each in self.calls:
            if each.status is None and each.process.poll() is not None:
                each.status, each.over = each.process.returncode, time.time()
                self.ledger.tell(each.promise, f"mpprun ended {each.status}")
        return all(each.status is not None for each in self.calls)

    def leave(self) -> None:
        for each in self.calls:
            if each.process.poll() is None:
                os.kill(each.process.pid, signal.SIGKILL)
                each.process.wait()

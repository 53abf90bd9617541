"""A daemon that is busy has done nothing: commands come again by themselves, and say so when it stays so."""

import pytest

from nqspy.cli import fast
from nqspy.rpc import messages


class Busy:
    """Refuses as busy a number of times, then answers."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, id, message):
        self.left -= 1
        if self.left >= 0:
            return messages.error_answer(id, "this nqsd is busy: too many messages wait; try again", "busy")
        return messages.text_answer(id, 0, "17.ymp\n")


@pytest.mark.parametrize("line", ["qdel 17", "qstat 17", "qmove night 17", "qsub -q night job.sh"])
def test_a_command_comes_again_until_the_daemon_has_time(desk, screen, line):
    for cmd in ("delete", "qstat", "move", "submit"):
        desk.answers[cmd] = Busy(3)
    assert screen.run(line) == (0, "17.ymp\n", "")
    assert len(desk.messages) == 4
    assert len({str(each) for each in desk.messages}) == 1, "the same message, the same key"


def test_it_says_so_when_the_daemon_stays_busy(desk, screen, monkeypatch):
    monkeypatch.setattr(fast, "PATIENCE", 0.1)
    desk.answers["delete"] = Busy(1000)
    assert screen.run("qdel 17") == (1, "", "qdel: this nqsd is busy: too many messages wait; try again\n")

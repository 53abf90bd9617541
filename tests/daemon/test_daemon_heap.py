"""Memory of large lists and listings goes back to the system."""

import json
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, until

from nqspy.rpc import messages

COUNT = 10_000


def test_answers_in_pieces_are_those_in_one():
    objects = [{"id": "1.ymp", "name": 'a\u2028\x07b ä "q"'}, {"id": "2.ymp"}]
    whole = json.dumps(objects, ensure_ascii=False)
    pieces = [messages.escaped(whole[:20]), messages.escaped(whole[20:])]
    assert messages.pieces_answer(7, 153, pieces, "no\n") == messages.text_answer(7, 153, whole, "no\n")
    parts = [messages._ENCODER.encode(each) for each in objects]
    assert messages.list_answer(7, parts) == messages.result_answer(7, objects)
    assert messages.list_answer(7, []) == messages.result_answer(7, [])


def resident(pid):
    """Return the resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1024**2


@pytest.mark.slow
def test_a_list_of_10000_takes_little_and_listing_it_leaves_nothing_behind(make_live):
    live = make_live().site(ONE_QUEUE)
    live.run("nqsd", "start").ok()
    live.set("stop queue batch")
    empty = resident(live.pid)
    live.write("job.sh", "true\n")
    live.write("list", "".join(f"-N job{n} -lT 600 -lM 8mb job.sh {n}\n" for n in range(COUNT)))
    assert len(live.run("qsub", "--list", "list").ok().lines) == COUNT
    until(lambda: resident(live.pid) - empty < 30, "the list has left what it holds")
    full = resident(live.pid)
    for words in (("--json",), ()):
        done = live.run("qstat", *words).ok()
        assert (len(done.data) if words else len(done.lines) - 2) == COUNT
        until(lambda: resident(live.pid) - full < 10, "nothing more is held after it was listed")
    [first, *_] = live.client.requests()
    assert first.id.startswith("1.")
    until(lambda: resident(live.pid) - full < 10, "nor after it was listed for a program")

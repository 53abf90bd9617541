"""Makes a database of the format that this checkout writes, with a small history, for the tests to come.

    PYTHONPATH=.:tests python tests/data/make_database.py tests/data/format2

writes ``format2.db.gz`` and ``format2.json`` (what the database must still say when a later nqspy opens it).
Made once for each format, by the code that wrote it, and never made again.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path

from store.conftest import Story

from nqspy.core import features as features  # whose settings the story changes
from nqspy.model import events as ev
from nqspy.store.journal import SqliteJournal


def main(name: str) -> None:
    """Writes both files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nqs.db"
        with SqliteJournal.open(path) as journal:
            story = Story(journal, 27)
            story.go_on(160)
            _some_that_are_started(story)
            _one_that_ran(story)
            said = {
                "events": story.site.n,
                "next_seq": story.site.next_seq,
                "requests": sorted(story.site.requests),
                "ended": sorted(story.ended),
                "queues": list(story.site.settings.queues),
                "kinds": [recorded.event.kind for recorded in story.history],
                "blobs": sorted(story.blobs),
            }
        Path(f"{name}.db.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    Path(f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


def _some_that_are_started(story: Story) -> None:
    """One that runs, three that are suspended, one of them to run again, and one that was queued again."""
    taken = {pe for request in story.site.started.values() for pe in request.pes}
    free = [pe for pe in range(5) if pe not in taken]
    begun = []
    for pe in free[:4]:
        begun.append(_submit(story))
        story.tell(ev.Starting(begun[-1], 1, (pe,)))
        story.tell(ev.Started(begun[-1], 1, (pe,)))
    _, swapped, spilled, kept = begun
    story.tell(ev.PressureChanged("high", 91.5, "91 % in use", ((swapped, 5 << 30),), 1 << 35))
    story.tell(ev.Suspended(swapped, 1, "swap", text="its memory gives way"))
    story.tell(ev.Resumed(swapped, 1, "swap"))
    story.tell(ev.Suspended(swapped, 1, "swap", text="its memory gives way"))
    story.tell(ev.Suspended(spilled, 1, "shift day", True, "shift day stopped queue night"))
    story.tell(ev.Suspended(kept, 1, "olga"))
    story.tell(ev.Deleting(kept, 1, "anne", True, "once more"))
    again = _submit(story)
    story.tell(ev.Starting(again, 1, (free[4],)))
    story.tell(ev.Requeued(again, 1, "its end was lost", story._used()))
    story.commit()


def _submit(story: Story) -> int:
    seq = story.site.next_seq
    spec = story.spec(owner="anne", group="d1", name="begun", held=False, eligible=None, after=())
    story.tell(ev.Submitted(seq, spec, "night", "queued"))
    return seq


def _one_that_ran(story: Story) -> None:
    """A request by name of its key, from its submission to its end."""
    seq = story.site.next_seq
    spec = story.spec(owner="anne", group="d1", name="last", held=False, eligible=None, after=())
    story.tell(ev.Submitted(seq, spec, "night", "queued", key="the key", digest="the content"))
    taken = {pe for request in story.site.started.values() for pe in request.pes}
    pe = next(number for number in range(5) if number not in taken)
    story.tell(ev.Starting(seq, 1, (pe,)))
    story.tell(ev.Started(seq, 1, (pe,)))
    story.tell(ev.Ended(seq, 1, "exit", exit_status=3, used=story._used()))
    story.commit()


if __name__ == "__main__":
    main(sys.argv[1])

"""The job log of NQS: what befell a request, in a file of its own or behind its output."""

from pathlib import Path

import pytest


def handed_in(office, *words, script="echo out; exit 3\n"):
    id = office.qsub(script, "-N", "logged", *words)
    return id, office.ended(id)["seq"]


def told(text, id):
    handed, started, ended = text.splitlines()[-3:]
    assert f"{id} logged of " in handed
    assert "submitted on" in handed
    assert "started: queue batch, attempt 1, " in started
    assert ": ended, exit status 3; " in ended


def test_a_log_has_a_file_of_its_own(office):
    id, seq = handed_in(office, "-J", "y")
    told(office.text(f"logged.l{seq}"), id)
    assert office.text(f"logged.o{seq}") == "out\n"
    id, seq = handed_in(office, "-j", "run.log")
    told(office.text("run.log"), id)
    assert not (office.work / f"logged.l{seq}").exists()


@pytest.mark.parametrize("words", [("-J", "m", "-eo"), ("-J", "m", "-ro", "-kj")])
def test_a_log_stands_behind_the_output_or_is_kept_where_that_is_written_in_place(office, words):
    id, seq = handed_in(office, *words)
    text, kept = office.text(f"logged.o{seq}"), Path.home() / f"logged.l{seq}"
    assert text.startswith("out\n")
    if "-kj" in words:
        told(kept.read_text(), id)
        kept.unlink()
        assert text == "out\n"
    else:
        told(text, id)
        assert not (office.work / f"logged.l{seq}").exists()


def test_nobody_gets_a_log_who_does_not_want_one(office):
    _, seq = handed_in(office, "-j", "no.log", "-J", "n")
    assert office.text(f"logged.o{seq}") == "out\n"
    assert not list(office.work.glob(f"*.l{seq}"))
    assert not (office.work / "no.log").exists()


def test_a_log_tells_who_ended_it(office):
    id = office.qsub("sleep 600\n", "-N", "logged", "-J", "y", "-l", "walltime=1")
    seq = office.ended(id)["seq"]
    # Signal 15, or status 143 where the shell outlived what it waited for.
    assert " (wall-clock limit of 1 s " in office.text(f"logged.l{seq}")

"""`mpprun`'s options: what it asks for, what it refuses by itself, how lightly it starts."""

import os
from pathlib import Path

import pytest
from cli.test_cli_commands import HEAVY, in_a_process

from nqspy.rpc import messages


def called(desk, *words, **more):
    return in_a_process(["mpprun", *words], desk.home, **more)


def asked(desk, *words: str, **more: str) -> dict:
    """Return what `mpprun` asks for; the desk refuses it, so that it does not wait."""
    desk.answers["submit"] = lambda id, message: messages.text_answer(id, 1, "", "not today\n")
    done = called(desk, *words, **more)
    assert done.returncode == 1
    error, loaded = done.stderr.splitlines()
    assert error == "mpprun: not today"
    assert sorted(set(HEAVY) & set(loaded.split())) == []
    return desk.submitted["spec"]


def test_what_is_not_said_is_one_pe_and_queue_and_class_are_left_to_the_site(desk):
    spec = asked(desk, "true", "-n", "7")
    assert spec["ask"] == {"pes": 1}
    assert (spec["job_class"], spec["queue"], spec["name"], spec["within"]) == ("", "", "true", "")
    assert (spec["rerunnable"], spec["contract"], spec["start_in"]) == (False, False, os.getcwd())
    assert len(spec["caller"]) == 2
    assert not Path(desk.submitted["script"].rpartition("main('")[2].partition("')")[0]).exists()


@pytest.mark.parametrize(
    ("words", "asked_for"),
    [
        ("-n 4", {"pes": 4}),
        ("-n4 -t 1:30 -T 60", {"pes": 4, "wall": 90_000, "best_guess": 60_000}),
        ("--contract", {"contract": True}),
        ("-class production", {"job_class": "production"}),
        ("--class benchmark", {"job_class": "benchmark"}),
        ("-debug", {"job_class": "benchmark"}),
        ("-n 2-5", {"mold": {"sizes": [2, 3, 4, 5]}}),
        ("-n 8,2,4", {"mold": {"sizes": [2, 4, 8]}}),
        ("-n 4-4", {"pes": 4}),
        ("-l barrier=1,gpu=2 -l nfs=3", {"consumables": [["barrier", 1], ["gpu", 2], ["nfs", 3]]}),
    ],
)
def test_options_stand_before_the_program(desk, words, asked_for):
    spec = asked(desk, *words.split(), "true", "-x", "-debug")
    assert (spec | spec["ask"]).items() >= asked_for.items()


def test_in_a_batch_request_without_pes_it_says_in_which(desk):
    spec = asked(desk, "true", QSUB_REQID="17.ymp", NQSPY_PES="")
    assert (spec["job_class"], spec["within"]) == ("", "17.ymp")


def test_on_the_pes_of_a_request_nobody_is_asked(desk):
    inside = {"QSUB_REQID": "17.ymp", "NQSPY_PES": "4-7,9", "NCPUS": "5"}
    done = called(desk, "-n", "5", "sh", "-c", "echo $NQSPY_PES; exit 3", **inside)
    assert (done.returncode, done.stdout) == (3, "4-7,9\n")
    done = called(desk, "-n", "6", "true", **inside)
    assert done.returncode == 1
    assert done.stderr.startswith("mpprun: -n 6: ")
    assert not desk.messages
    for sizes, size in (("2,4,8", "4"), ("3-9", "5"), ("2", "2")):
        done = called(desk, "-n", sizes, "sh", "-c", "echo $NCPUS $PET_NPROC_PER_NODE", **inside)
        assert done.stdout == f"{size} {size}\n"
    assert called(desk, "sh", "-c", "echo $NCPUS", **inside).stdout == "5\n"


@pytest.mark.parametrize("pes", [",", "4-x,9"])
def test_a_list_of_pes_that_is_none_is_told_in_one_line(desk, pes):
    done = called(desk, "true", QSUB_REQID="17.host", NQSPY_PES=pes)
    assert done.returncode == 1
    assert done.stderr.startswith(f"mpprun: NQSPY_PES is {pes!r}")


def test_what_means_nothing_on_the_pes_of_a_request_is_told_and_units_are_refused(desk):
    inside = {"QSUB_REQID": "17.ymp", "NQSPY_PES": "4-7,9"}
    done = called(desk, "-class", "production", "-T", "60", "echo", "ran", **inside)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.startswith("mpprun: -class, -T ")
    done = called(desk, "-l", "barrier=1", "true", **inside)
    assert done.returncode == 1
    assert done.stderr.startswith("mpprun: -l: ")

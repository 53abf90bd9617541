"""Output names: what is filled in, and who is told that somebody else writes the same file."""

import os
import re
from pathlib import Path

import pytest
from daemon.terminal import at_a_terminal

MARKS = {
    "out.$PBS_JOBID.log": "out.{id}.log", "o.${PBS_JOBID}": "o.{id}", "%j": "{id}", "n%s-%x": "n{seq}-known",
    "%u@%q": "{user}@batch", "100%%": "100%", "i%a%r$PBS_ARRAY_INDEX.": "i11.", "%z%": "%z%",
    "$HOME": "$HOME", "%%j": "%j",
}  # fmt: skip


def test_names_are_filled_in(office):
    ids = {
        wish: office.qsub("echo told; echo bad >&2\n", "-N", "known", "-o", wish, "-e", f"e-{wish}")
        for wish in MARKS
    }
    for wish, id in ids.items():
        name = MARKS[wish].format(id=id, seq=id.partition(".")[0], user=office.job(id)["owner"])
        ended = office.ended(id)
        assert (ended["output"], ended["error"]) == (str(office.work / name), str(office.work / f"e-{name}"))
        assert (office.text(name), office.text(f"e-{name}")) == ("told\n", "bad\n")


def test_a_folder_whose_name_looks_like_a_mark_is_left_alone(office):
    folder = office.work / "50%used"
    folder.mkdir()
    inside = ("env", "-C", str(folder), f"PWD={folder}")
    done = office.run("qsub", "-s", "/bin/sh", "-o", "out", stdin="echo x\n", before=inside).ok()
    ended = office.ended(done.lines[0])
    assert ended["output"] == str(folder / "out")
    assert (folder / "out").read_text() == "x\n"
    by_library = office.ended(office.submit("echo x", workdir=folder, stdout="lib.out"))
    assert by_library["output"] == str(folder / "lib.out")


# ---------------------------------------------------------------- one file for two
@pytest.mark.parametrize("wish", ["own.%j", "logs/", "logs", "/dev/null"])
def test_names_of_their_own_folders_and_devices_are_in_nobodys_way(office, wish):
    (office.work / "logs").mkdir(exist_ok=True)
    first = office.qsub("true\n", "-h", "-o", wish)
    done = at_a_terminal(office, "qsub", "-h", "-o", wish, stdin="true\n")
    assert "warning" not in done.err
    assert "clash" not in office.run("qstat", "-f").out
    office.run("qdel", first, done.out.strip()).ok()


def test_who_writes_the_same_file_is_told_on_a_terminal_however_its_path_is_written(office):
    first = office.qsub("echo first\n", "-h", "-o", "res.out")
    done = at_a_terminal(office, "qsub", "-s", "/bin/sh", "-h", "-o", "./res.out", stdin="echo second\n")
    assert f"qsub: warning: {office.work}/res.out is also the output of {first}" in done.err, done.err
    second = done.out.strip()
    quiet = office.run("qsub", "-s", "/bin/sh", "-h", "-o", "gone/../res.out", stdin="echo third\n").ok()
    assert quiet.err == "", "PBS clients hear nothing"
    third = quiet.lines[0]
    silent = at_a_terminal(office, "qsub", "-z", "-h", "-o", "res.out", stdin="true\n")
    assert silent.err == ""
    office.run("qdel", silent.out.strip()).ok()
    for id, others in ((first, (second, third)), (third, (first, second))):
        told = office.run("qstat", "-f", id).out.replace("\n\t", "")
        assert f"output_clash = {office.work}/res.out (also {', '.join(others)})" in told
    written = []
    for id in (first, second, third):
        office.run("qrls", id).ok()
        written.append(Path(office.ended(id)["output"]).read_text())
    assert written == ["first\n", "second\n", "third\n"]


def test_a_list_is_examined_too(office):
    office.write("job.sh", "true\n")
    office.write("same.list", "-h -o all.log job.sh\n-h -o all.log job.sh\n-h -o b.log -e b.log job.sh\n")
    done = at_a_terminal(office, "qsub", "--list", "same.list")
    assert done.status == 0
    warned = [line for line in done.err.splitlines() if "warning" in line]
    assert len(warned) == 1, done.err
    assert "all.log" in warned[0]
    office.run("qdel", *done.out.split()).ok()


def test_the_index_of_files_outlives_a_restart_and_moves_with_the_queue(shared):
    shared.set("create batch_queue other priority=1", "enable queue other")
    first, second = (shared.qsub("true\n", "-h", "-q", queue, "-o", "%q.log") for queue in ("batch", "other"))
    assert "clash" not in shared.run("qstat", "-f").out
    shared.restart()
    shared.run("qmove", "other", first).ok()
    assert "clash" in shared.run("qstat", "-f", second).out
    shared.restart()
    assert "clash" in shared.run("qstat", "-f", first).out
    shared.run("qdel", first).ok()
    assert "clash" not in shared.run("qstat", "-f", second).out
    shared.run("qdel", second).ok()


# ---------------------------------------------------------------- what cannot work
@pytest.mark.parametrize("wish", ["%x/", "away/."])
def test_a_folder_that_is_not_there_is_never_made_a_file(office, wish):
    id = office.qsub("echo told\n", "-N", "away", "-o", wish)
    ended = office.ended(id)
    assert not (office.work / "away").exists()
    assert Path(ended["output"]).read_text() == "told\n"
    assert "away/" in ended["reason"]["text"]
    assert f"No such file or directory; the output stays in {ended['output']}" in ended["reason"]["text"]


def test_qcat_shows_what_could_not_be_delivered(office):
    """Piece by piece, also what is more than one answer holds, and either stream; both are one with -j oe."""
    many = "yes told | head -c 200000; echo bad >&2\n"
    seq = office.qsub(many, "-o", "away/", "-e", "away/").partition(".")[0]
    ended = office.ended(seq)
    assert {f"qcat {seq}", f"qcat -e {seq}"} <= set(re.findall(r"qcat (?:-e )?\d+", ended["reason"]["text"]))
    for word in ((), ("-f",)):
        assert office.run("qcat", *word, seq).ok().out == "told\n" * 40_000
        assert office.run("qcat", "-e", *word, seq).ok().out == "bad\n"
    joined = office.qsub("echo both; echo bad >&2\n", "-j", "oe", "-o", "away/").partition(".")[0]
    office.ended(joined)
    assert office.run("qcat", "-e", joined).ok().out == office.run("qcat", joined).ok().out == "both\nbad\n"
    Path(ended["output"]).unlink()
    office.run("qcat", seq).refused("Job has finished", ended["output"])


def test_output_that_cannot_be_written_is_told_and_taken_all_the_same(office):
    blocked = office.write("plain.txt", "")
    wishes = {"nowhere/out": "nowhere", f"{blocked}/out": "not a folder"}
    if os.geteuid() != 0:
        wishes["/usr/out"] = "may not write"
    for wish, word in wishes.items():
        done = at_a_terminal(office, "qsub", "-h", "-o", wish, stdin="true\n")
        assert done.status == 0, wish
        assert "qsub: warning: -o: " in done.err, wish
        assert word in done.err, done.err
        quiet = office.run("qsub", "-h", "-o", wish, stdin="true\n").ok()
        assert quiet.err == ""
        office.run("qdel", done.out.strip(), quiet.lines[0]).ok()


def test_a_shell_that_cannot_work_is_refused(office, tmp_path):
    text = office.write("text.txt", "")
    for shell in ("/no/such/shell", str(tmp_path), str(text)):
        office.run("qsub", "-s", shell, stdin="true\n").refused("-s", shell)
    office.write("bad.sh", "#QSUB -s /no/such/shell\n")
    office.run("qsub", "bad.sh").refused("bad.sh line 1", "-s")


def test_both_streams_into_one_file_lose_nothing(office):
    ended = office.ended(office.qsub("echo o; echo e >&2; echo p\n", "-o", "both", "-e", "./both"))
    assert ended["output"] == ended["error"] == f"{office.work}/both"
    assert Path(ended["output"]).read_text() == "o\ne\np\n"
    (office.work / "logs").mkdir()
    apart = office.ended(office.qsub("echo o; echo e >&2\n", "-o", "logs", "-e", "logs"))
    assert [Path(apart[name]).read_text() for name in ("output", "error")] == ["o\n", "e\n"]


def test_output_of_a_request_whose_folder_has_gone_stays_in_the_spool(office):
    folder = office.work / "gone"
    folder.mkdir()
    id = office.submit("sleep 1; echo o; echo e >&2", workdir=folder)
    office.running(id)
    folder.rmdir()
    ended = office.ended(id)
    assert not folder.exists()
    assert Path(ended["output"]).read_text() == "o\n"
    assert Path(ended["error"]).read_text() == "e\n"

"""A daemon of root runs requests as their owners, and never lends them its own rights."""

import contextlib
import ctypes
import grp
import os
import pwd
import stat

import pytest
from daemon.everybody import open_way
from executors.conftest import AS_ROOT, User, needs
from small_disk import small_disk

from nqspy.executors import deliver, forks, person
from nqspy.model.observations import ObservedExiting, ObservedNotStarted, ObservedVoid
from nqspy.model.requests import Ask, Output

pytestmark = AS_ROOT


@pytest.fixture
def other(tmp_path):
    """Return a user of this machine who is not root, with access to the bench."""
    open_way(tmp_path)
    return pwd.getpwnam("nobody")


@pytest.fixture
def desk(bench, other):
    os.chown(bench.work, other.pw_uid, other.pw_gid)
    bench.as_other = {"owner": other.pw_name, "uid": other.pw_uid, "gid": other.pw_gid}
    return bench


def test_it_runs_as_its_owner_in_every_respect(desk, other):
    ending = desk.run(
        "grep -E '^(Uid|Gid|Groups|CapEff)' /proc/self/status; umask; echo $USER $LOGNAME $HOME\n",
        umask=0o027,
        **desk.as_other,
    )
    assert ending.status == 0, ending
    lines = desk.text("job.o1").splitlines()
    assert lines[0].split()[1:] == [str(other.pw_uid)] * 4
    assert lines[1].split()[1:] == [str(other.pw_gid)] * 4
    groups = os.getgrouplist(other.pw_name, other.pw_gid)
    assert set(lines[2].split()[1:]) == set(map(str, groups))
    assert int(lines[3].split()[1], 16) == 0
    assert lines[4:] == ["0027", f"{other.pw_name} {other.pw_name} {other.pw_dir}"]
    seen = (desk.work / "job.o1").stat()
    assert (seen.st_uid, stat.S_IMODE(seen.st_mode)) == (other.pw_uid, 0o640)


def test_its_output_is_written_with_its_owners_rights_only_and_limits_and_kill_hold(desk):
    closed = desk.home / "closed"
    closed.mkdir(mode=0o700)
    request = desk.start("echo secret\n", output=Output(stdout=str(closed / "out")), **desk.as_other)
    ending = desk.ending(request)
    assert "Permission denied" in ending.text
    assert list(closed.iterdir()) == []
    assert (desk.folder(request) / "stdout").read_text() == "secret\n"
    assert desk.run("exec sleep 60\n", ask=Ask(wall=200), **desk.as_other).reason == "wall_limit"
    assert desk.kill(desk.running("exec sleep 60\n", **desk.as_other), 5000).reason == "deleted"


def test_somebody_elses_link_is_not_followed(desk):
    victim = desk.home / "victim"
    victim.write_text("untouched")
    victim.chmod(0o666)
    (desk.work / "trap").symlink_to(victim)
    desk.run("echo x\n", output=Output(stdout=str(desk.work / "trap")), **desk.as_other)
    assert victim.read_text() == "untouched"


def test_a_folder_that_is_closed_to_the_owner_stops_it_before_it_starts(desk):
    closed = desk.home / "closed"
    closed.mkdir(mode=0o700)
    request = desk.start("exit 0\n", **{**desk.as_other, "workdir": str(closed)})
    assert "Permission denied" in desk.expect(ObservedNotStarted, request).text


@pytest.fixture
def someone(desk):
    one = User(f"nqp{os.getpid()}")
    os.chown(desk.work, one.entry.pw_uid, one.entry.pw_gid)
    yield one
    one.go()


def test_an_owner_whose_name_vanishes_is_a_cause_outside_the_request(desk, someone):
    os.mkfifo(desk.work / "fifo")
    os.chown(desk.work / "fifo", someone.entry.pw_uid, -1)
    request = desk.running("cat fifo\n", **someone.fields)
    someone.go()
    text = f"the user database has no entry for {someone.name} (uid {someone.entry.pw_uid})"
    late = desk.expect(ObservedVoid, desk.start("true\n", **someone.fields))
    assert (late.text, late.later) == (text, True)
    (desk.work / "fifo").write_text("output\n")
    assert desk.expect(ObservedExiting, request).text == text
    someone.come("-u", str(someone.entry.pw_uid))
    ending = desk.ending(request)
    assert (ending.reason, ending.status, ending.text) == ("exit", 0, "")
    assert desk.text("job.o1") == "output\n"
    assert desk.run("true\n", **someone.fields).status == 0


def test_a_job_handed_in_under_another_group_keeps_the_primary_group_and_has_no_other(desk, someone):
    """As the shell after newgrp: the group of the submission first, and all others of the owner; no other."""
    daemon = grp.getgrnam("daemon").gr_gid
    desk.run("id -g; id -G\n", **{**someone.fields, "gid": daemon})
    first, every = desk.text("job.o1").splitlines()
    assert first == str(daemon)
    assert set(every.split()) == {str(daemon), str(someone.entry.pw_gid)}
    desk.run("id -g\n", **{**someone.fields, "gid": 0})
    assert desk.text("job.o2").strip() == str(someone.entry.pw_gid)


@needs("cpuset")
def test_it_cannot_leave_the_cpus_of_its_pes(desk):
    if len(desk.site.found.cpus) < 2:
        pytest.skip("needs two CPUs")
    script = "taskset -p ffff $$ >/dev/null 2>&1\nexec grep Cpus_allowed_list /proc/self/status\n"
    desk.run(script, pes=(1,), **desk.as_other)
    assert desk.text("job.o1").split()[1] == str(desk.site.found.cpus[1])


# ---------------------------------------------------------------- becoming the owner
def _in_child(work) -> str:
    """What a function gives, or raises, in a process of its own."""
    reader, writer = os.pipe()

    def tell() -> None:
        try:
            text = work()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())

    pid = forks.begin(tell)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return text


def _as_person(other) -> person.Person:
    return person.Person(other.pw_uid, other.pw_gid, other.pw_name, other.pw_dir, "/bin/sh", other.pw_gid)


def _as_child(other, sabotage) -> str:
    """Becomes the owner in a process of its own where one call does not do what it should."""

    def work() -> str:
        sabotage()
        person.become(_as_person(other))
        return "went on"

    return _in_child(work)


def _fails(name):
    def call(*arguments):
        raise PermissionError(1, f"{name} refused")

    return lambda: setattr(os, name, call)


def _pretends(name):
    def sabotage():
        os.setgroups([0, 4])  # so that there is something to give up
        setattr(os, name, lambda *arguments: None)

    return sabotage


@pytest.mark.parametrize("call", ["initgroups", "setresgid", "setresuid"])
def test_each_call_that_fails_ends_the_start_and_none_is_believed(other, call):
    assert _as_child(other, lambda: None) == "went on"
    assert f"{call} refused" in _as_child(other, _fails(call))
    assert "could not become" in _as_child(other, _pretends(call))


def test_rights_that_stay_are_noticed(other):
    keep_capabilities = 8  # PR_SET_KEEPCAPS
    libc = ctypes.CDLL(None)
    assert "could not become" in _as_child(other, lambda: libc.prctl(keep_capabilities, 1, 0, 0, 0))


# ---------------------------------------------------------------- output in dangerous places
@pytest.fixture
def shared(desk, other):
    """A folder in which everybody may make names; and a file of the owner's that must stay as it is."""
    folder = desk.home / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    precious = desk.work / "precious"
    precious.write_text("untouched")
    os.chown(precious, other.pw_uid, other.pw_gid)
    desk.shared, desk.precious, desk.stranger = folder, precious, 54_321
    return desk


TRAPS = {"a link to a file of the owner": "out", "a link to a folder of the owner": "way/precious",
         "a file that others can read": "out", "a fifo that others read": "out"}  # fmt: skip
LINK, FOLDER, FILE, FIFO = TRAPS
SECOND_NAME = "a second name of a file of the owner"


def plant(desk, trap):
    """Put a trap of another user into the shared folder."""
    path = desk.shared / ("way" if trap == FOLDER else "out")
    match trap:
        case "a second name of a file of the owner":
            os.link(desk.precious, path)
            return
        case "a fifo that others read":
            os.mkfifo(path)
        case "a file that others can read":
            path.touch()
        case _:
            path.symlink_to(desk.work if trap == FOLDER else desk.precious)
    if trap in (FILE, FIFO):
        path.chmod(0o666)
    with contextlib.suppress(FileNotFoundError):  # somebody was quicker
        os.lchown(path, desk.stranger, desk.stranger)
    if trap == FIFO:
        desk.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)


@pytest.mark.parametrize("direct", [False, True], ids=["delivered", "in place"])
@pytest.mark.parametrize("trap", TRAPS)
def test_what_others_put_in_the_way_is_not_written(shared, trap, direct):
    plant(shared, trap)
    output = Output(stdout=str(shared.shared / TRAPS[trap]), direct_stdout=direct)
    request = shared.start("echo secret\n", output=output, **shared.as_other)
    if direct:
        assert "cannot open the output" in shared.expect(ObservedNotStarted, request).text
    else:
        assert shared.ending(request).stdout == str(shared.folder(request) / "stdout")
    assert shared.precious.read_text() == "untouched"
    assert not (shared.shared / "out").is_file() or "secret" not in (shared.shared / "out").read_text()


@pytest.mark.parametrize("direct", [False, True], ids=["delivered", "in place"])
def test_a_second_name_of_a_file_of_the_owner_is_replaced(shared, direct):
    plant(shared, SECOND_NAME)
    output = Output(stdout=str(shared.shared / "out"), direct_stdout=direct)
    assert shared.run("echo mine\n", output=output, **shared.as_other).text == ""
    assert shared.precious.read_text() == "untouched"
    assert (shared.shared / "out").read_text() == "mine\n"


def test_a_link_that_comes_and_goes_is_never_followed(shared, other):
    """A race: while output is delivered again and again, a process exchanges its place for a link."""
    place = shared.shared / "out"

    def bring() -> None:
        person.become(_as_person(other))
        for _ in range(3000):
            with contextlib.suppress(OSError):
                os.close(deliver.open_target(str(place)))

    pid = forks.begin(bring)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        for trap in (LINK, SECOND_NAME):
            place.unlink(missing_ok=True)
            with contextlib.suppress(FileExistsError):  # the owner was quicker
                plant(shared, trap)
    assert shared.precious.read_text() == "untouched"


def test_a_disk_that_is_full_for_the_owner_keeps_the_output_in_the_spool(desk, other):
    small = desk.home / "small"
    with small_disk(small, f"size=64k,mode=0755,uid={other.pw_uid}"):
        output = Output(stdout=str(small / "out"))
        request = desk.start("head -c 200000 /dev/zero\n", output=output, **desk.as_other)
        assert "No space left" in desk.ending(request).text
        assert (desk.folder(request) / "stdout").stat().st_size == 200_000


# ---------------------------------------------------------------- keys of root, numbers of others
_KEYCTL, _ADD_KEY = 250, 248
_JOIN, _READ, _SESSION = 1, 11, -3


def test_keys_of_root_are_not_read_by_who_was_started_from_its_session(other):
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of the system calls are known for x86_64 only")
    libc = ctypes.CDLL(None, use_errno=True)

    def work() -> str:
        joined = libc.syscall(_KEYCTL, _JOIN, None, 0, 0, 0)
        key = libc.syscall(_ADD_KEY, b"user", b"nqspy", b"secret", ctypes.c_size_t(6), _SESSION)
        buffer = ctypes.create_string_buffer(64)
        mine = libc.syscall(_KEYCTL, _READ, key, buffer, 64, 0)
        person.become(_as_person(other))
        return f"{joined > 0 < key} {mine} {libc.syscall(_KEYCTL, _READ, key, buffer, 64, 0)}"

    usable, mine, theirs = _in_child(work).split()
    if usable == "False":
        pytest.skip("this kernel gives no keys here")
    assert (int(mine), int(theirs)) == (6, -1)


def test_a_number_that_was_given_to_somebody_else_gets_nobodys_requests(desk, other):
    request = desk.start("touch ran\n", **{**desk.as_other, "owner": "alice"})
    text = desk.expect(ObservedNotStarted, request).text
    assert text == f"uid {other.pw_uid} was alice at submission and is {other.pw_name} now"
    assert not (desk.work / "ran").exists()

"""A daemon of root runs requests as their owners, and never lends them its own rights."""

import os
import pwd
import stat

import pytest

from nqspy.model.actions import Kill
from nqspy.model.requests import Ask, Output
from nqspy.model.sightings import SeenNotStarted

pytestmark = [
    pytest.mark.privileged,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may run requests as another user"),
]


@pytest.fixture
def other(tmp_path):
    """A user of this machine who is not root, with the way to the bench open to all."""
    who = pwd.getpwnam("nobody")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != folder.parent and len(folder.parts) > 2:
            folder.chmod(0o755)
    return who


@pytest.fixture
def desk(bench, other):
    os.chown(bench.work, other.pw_uid, other.pw_gid)
    bench.as_other = {"owner": other.pw_name, "uid": other.pw_uid, "gid": other.pw_gid}
    return bench


def test_it_runs_as_its_owner_in_every_respect(desk, other):
    ending = desk.run(
        "grep -E '^(Uid|Gid|Groups|CapEff)' /proc/self/status; umask\n", umask=0o027, **desk.as_other
    )
    assert ending.status == 0, ending
    lines = desk.text("job.o1").splitlines()
    assert lines[0].split()[1:] == [str(other.pw_uid)] * 4
    assert lines[1].split()[1:] == [str(other.pw_gid)] * 4
    groups = os.getgrouplist(other.pw_name, other.pw_gid)
    assert set(lines[2].split()[1:]) == set(map(str, groups))
    assert int(lines[3].split()[1], 16) == 0
    assert lines[4] == "0027"
    seen = (desk.work / "job.o1").stat()
    assert (seen.st_uid, stat.S_IMODE(seen.st_mode)) == (other.pw_uid, 0o640)


def test_its_output_is_written_with_its_owners_rights_only(desk):
    closed = desk.home / "closed"
    closed.mkdir(mode=0o700)
    request = desk.start("echo secret\n", output=Output(stdout=str(closed / "out")), **desk.as_other)
    ending = desk.ending(request)
    assert "Permission denied" in ending.text
    assert list(closed.iterdir()) == []
    assert (desk.folder(request) / "stdout").read_text() == "secret\n"


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
    assert "Permission denied" in desk.expect(SeenNotStarted, request).text


def test_its_environment_is_that_of_its_owner(desk, other):
    desk.run("echo $USER $LOGNAME $HOME\n", **desk.as_other)
    assert desk.text("job.o1").split() == [other.pw_name, other.pw_name, other.pw_dir]


def test_it_cannot_write_its_script_for_the_next_one(desk):
    ending = desk.run("echo 'touch hacked' >> $0 && exit 9\nexit 0\n", **desk.as_other)
    assert ending.status == 0


def test_limits_and_kill_hold_for_other_users_too(desk):
    assert desk.run("exec sleep 60\n", ask=Ask(wall=200), **desk.as_other).reason == "wall_limit"
    request = desk.running("exec sleep 60\n", **desk.as_other)
    desk.do(Kill(request.seq, 1, "deleted", 5000))
    assert desk.ending(request).reason == "deleted"


def test_a_user_that_does_not_exist_is_named(bench):
    request = bench.start("exit 0\n", owner="ghost", uid=54321, gid=54321)
    assert bench.expect(SeenNotStarted, request).text == "there is no user with uid 54321 on this machine"


def test_a_group_the_owner_is_not_in_is_not_given(desk, other):
    desk.run("id -g\n", **{**desk.as_other, "gid": 0})
    assert desk.text("job.o1").strip() == str(other.pw_gid)

"""`qselect`: each option narrows what the others leave."""

from types import SimpleNamespace

import pytest
from answers.pbs_asked import ids, selected
from daemon.inner import item

from nqspy.model.people import Caller


@pytest.fixture
def choice(fresh):
    """Return a site with five requests that differ in all criteria."""
    fresh.qmgr("set machine pes=8", "create group d1 members=(anne, ben)")
    soon = fresh.daemon.clock.now() + 3_600_000
    asked = [
        ("owner", {"name": "one", "priority": 10, "ask": {"memory": 1 << 30, "wall": 60_000}}),
        ("owner", {"name": "two", "priority": -5, "ask": {"pes": 4}, "held": True, "account": "d1"}),
        ("other", {"name": "three", "eligible": soon, "attributes": ["checkpoint:c=5", "project:rain"]}),
        ("other", {"name": "four", "rerunnable": False, "queue": "spare"}),
        ("other", {"name": "five"}),
    ]
    made = [fresh.submit(by, **spec)[0] for by, spec in asked]
    fresh.result("other", "delete", ids=made[4:])
    fresh.names = {id: spec["name"] for id, (_, spec) in zip(made, asked, strict=True)}
    return fresh


SELECTED = [
    ([], "", "one two three four"), ([], "x", "one two three four five"), ([], "H", "five"), ([], "J", ""),
    ([("u", "anne")], "", "one two"), ([("u", "anne,ben@ymp")], "", "one two three four"),
    ([("u", "anne,ben"), ("u", "ben")], "", "three four"), ([("q", "spare"), ("q", "batch")], "", ""),
    ([("q", "spare")], "", "four"), ([("N", "two")], "", "two"), ([("A", "d1")], "", "two"),
    ([("P", "rain")], "", "three"), ([("P", "_pbs_project_default")], "", "one two four"),
    ([("s", "QW")], "", "one three four"), ([("s", ".ne.Q")], "", "two three"), ([("s", "F")], "x", "five"),
    ([("h", "u")], "", "two"), ([("h", "n")], "", "one three four"), ([("r", "n")], "", "four"),
    ([("p", "10")], "", "one"), ([("p", ".gt.0")], "", "one"), ([("p", ".le.0")], "", "two three four"),
    ([("p", ".gt.-6"), ("p", ".lt.10")], "", "two three four"), ([("l", "mem.ge.1gb")], "", "one"),
    ([("l", "mem.ne.2gb")], "", "one two three four"), ([("l", "ncpus=4")], "", "two"),
    ([("l", "ncpus.lt.4,walltime.le.1:00")], "", "one"),
    ([("l", "place.eq.pack"), ("N", "one")], "", "one"), ([("c", "c=5")], "", "three"),
    ([("c", ".gt.c")], "", "three"), ([("c", "u")], "", "one two four"),
    ([("a", ".gt.200001010000")], "", "three"), ([("a", ".lt.200001010000")], "", ""),
    ([("t", "c.gt.200001010000"), ("t", "c.lt.203801010000")], "", "one two three four"),
    ([("t", "s.gt.200001010000")], "", ""), ([("t", "e.ge.01010000.30"), ("q", "spare")], "", "four"),
]  # fmt: skip


def test_options_of_qselect_narrow_each_other(choice):
    for criteria, letters, names in SELECTED:
        found = [choice.names[id] for id in selected(choice, *criteria, letters=letters)]
        assert found == names.split(), (criteria, letters)


REFUSED = [
    ("l", "mem>1gb", "write a name"),
    ("l", "colour.eq.red", "there is no resource colour"),
    ("l", "mem.xx.1gb", ".xx. must be"),
    ("l", "mem.eq.much", "'much' is not a size"),
    ("l", "place.gt.pack", "place is a text"),
    ("p", "high", "'high' is not a whole number"),
    ("p", ".zz.5", ".zz. must be one of"),
    ("s", "Z", "write letters of"),
    ("h", "un", "write n alone, or letters"),
    ("r", "maybe", "write y or n"),
    ("c", "often", "write n, s, c"),
    ("a", "whenever", "'whenever' is not a date"),
    ("t", "x.gt.200001010000", "begin it with one of"),
    ("t", "g.gt.200001010000", "eligible_time is not recorded"),
    ("t", "c.gt.200013010000", "is not a date"),
    ("Z", "1", "no such option"),
]


def test_what_cannot_be_selected_by_is_refused_and_named(inner):
    for option, value, message in REFUSED:
        answer = inner.ask("root", "qselect", text="ids", criteria=[[option, value]])
        assert (answer["exit"], answer["out"], answer["err"].count("\n")) == (2, "", 1)
        assert answer["err"].startswith(f"illegal -{option} value")
        assert message in answer["err"]


def test_a_destination_of_qselect_is_here(choice):
    server = choice.daemon.engine.site.name
    for place in (f"@{server}", f"spare@{server}"):
        assert selected(choice, ("q", place), ("N", "four"))
    for place, status in (("nowhere", 170), ("@mars", 160)):
        answer = choice.ask("root", "qselect", text="ids", criteria=[["q", place]])
        assert (answer["exit"], answer["out"], answer["err"].count("\n")) == (status, "", 1)


def test_who_sees_a_job_selects_it(choice):
    choice.qmgr("set privacy owner")
    assert [choice.names[id] for id in selected(choice, by="other")] == ["three", "four"]


def test_a_user_may_have_an_at_sign(fresh, monkeypatch):
    ann = Caller("ann@dom", 2000, 100, ("users",))
    mine, waits = fresh.submit(ann)[0], fresh.submit("owner")[0]
    other = fresh.submit(Caller("ann", 2001, 100, ("users",)))[0]
    for letters in ("", "x"):
        assert ids(fresh, user="ann@dom", letters=letters) == [mine]
        assert selected(fresh, ("u", "ann@dom"), letters=letters) == [mine]
        assert ids(fresh, user="anne@ymp, ann@here", letters=letters) == [waits, other]
        if not letters:
            fresh.result(ann, "delete", ids=[mine])
    fresh.result(ann, "modify", ids=[fresh.submit(ann)[0]], values={"owner": "ann@dom", "name": "x"})

    def known(name):
        if name in ("ann@dom", "ben"):
            return SimpleNamespace(pw_name=name, pw_uid=1, pw_gid=1)
        raise KeyError

    monkeypatch.setattr("nqspy.answers.dispatcher.pwd.getpwnam", known)
    for named, owner in (("ann@dom", "ann@dom"), ("ben@ymp", "ben")):
        [id] = fresh.result("manager", "submit", items=[item(user=named)])["ids"]
        assert fresh.daemon.engine.site.requests[int(id.partition(".")[0])].owner == owner
    assert fresh.result(Caller("ben", 1004, 100, ("users",)), "submit", items=[item(user="ben@ymp")])["ids"]

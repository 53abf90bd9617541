"""Encoding: every event and command decodes to itself."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.engine.lifecycle import apply
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import facts
from nqspy.model.events import Promised, Recorded
from nqspy.model.facts import LONGEST, MOST, Promise
from nqspy.model.requests import AFTER_WORDS, Ask, Dependency, MailWishes, Output, Spec
from nqspy.model.site import Site

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
whole = st.integers(0, 2**53)
st.register_type_strategy(int, whole)
specs = st.builds(Spec, ask=st.builds(Ask), output=st.just(Output()), mail=st.just(MailWishes()))
HARD = {
    "spec": specs,
    "options": st.none() | st.dictionaries(st.text(max_size=3), whole, max_size=2),
    "changes": st.lists(st.builds(ev.Change, value=json_values), max_size=3).map(tuple),
    "values": st.dictionaries(st.text(max_size=5), whole | st.none(), max_size=3),
    "items": st.lists(st.builds(cm.Submission, spec=specs), max_size=2).map(tuple),
    "files": None,
}


def built(kind: type) -> st.SearchStrategy:
    """Return a strategy for records of that kind with any values."""
    names = set(kind.__struct_fields__)
    if kind is cm.ApplyFiles:
        inner = st.lists(st.dictionaries(st.text(max_size=3), json_values, max_size=2), max_size=2).map(tuple)
        return st.builds(kind, files=st.lists(st.tuples(st.text(), st.text(), inner), max_size=2).map(tuple))
    return st.builds(kind, **{name: how for name, how in HARD.items() if name in names and how is not None})


@pytest.mark.parametrize("kind", ev.KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_an_event_comes_back_from_the_journal_as_it_was(kind, data):
    event = data.draw(built(ev.KINDS[kind]))
    body = ev.encode(event)
    assert isinstance(json.loads(body), dict)
    assert ev.decode(kind, body) == event


def test_the_journal_leaves_out_what_is_the_default():
    spec = Spec("anne", 1, "x", "batch", "s", "e", "/", ask=Ask(pes=2))
    event = ev.Submitted(17, spec, "batch", "queued")
    body = json.loads(ev.encode(event))
    assert set(body) == {"seq", "spec", "queue", "state"}
    assert body["spec"]["ask"] == {"pes": 2}
    assert ev.decode("submitted", ev.encode(event)) == event


@pytest.mark.parametrize("cmd", cm.COMMANDS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_command_comes_back_from_the_wire_as_it_was(cmd, data):
    command = data.draw(built(cm.COMMANDS[cmd]))
    line = json.dumps(cm.encode(command))
    assert cm.decode(json.loads(line)) == command


def test_an_older_journal_without_later_fields_is_read():
    assert ev.decode("requeued", b'{"seq":1,"attempt":2,"text":"x"}') == ev.Requeued(1, 2, "x")
    assert ev.decode("decided", b'{"as_of":7}') == ev.Decided(7)
    assert ev.decode("starting", b'{"seq":1,"attempt":1,"pes":[0]}') == ev.Starting(1, 1, (0,))
    machine = b'{"cpus":[0],"memory":1,"host":"ymp"}'
    assert ev.decode("machine_found", machine) == ev.MachineFound((0,), 1, "ymp")


@pytest.mark.parametrize(
    "data", [{"cmd": "nonsense"}, {"cmd": "delete"}, {"cmd": "delete", "ids": 5}, {"cmd": "hold", "ids": [1]}]
)
def test_what_is_no_command_is_not_decoded(data):
    with pytest.raises((KeyError, msgspec.ValidationError)):
        cm.decode(data)


def test_what_a_request_waits_for_comes_back_and_may_be_missing():
    after = tuple(Dependency(seq, word) for seq, word in enumerate(AFTER_WORDS, 1))
    spec = Spec("anne", 1, "job", "night", "s", "e", "/home", after=after)
    event = ev.Submitted(5, spec, "night", "held")
    body = ev.encode(event)
    assert ev.decode("submitted", body) == event
    fields = json.loads(body)
    del fields["spec"]["after"]
    assert ev.decode("submitted", json.dumps(fields)).spec.after == ()
    fields["spec"]["after"] = [{"seq": 1, "word": "soon"}]
    with pytest.raises(msgspec.ValidationError):
        ev.decode("submitted", json.dumps(fields))


def store_fact(site, key, value, feature="rest"):
    apply(site, Recorded(site.n + 1, 0, Promised(feature, key, value)))


def test_a_fact_is_stored_until_it_is_deleted():
    site = Site()
    store_fact(site, "17", {"until": 60_000})
    store_fact(site, "18", [1, 2])
    store_fact(site, "17", {"until": 90_000}, feature="gang")
    assert facts.stored_by(site, "rest") == {"17": {"until": 60_000}, "18": [1, 2]}
    store_fact(site, "17", None)
    store_fact(site, "18", None)
    store_fact(site, "19", None)
    assert site.promises == {"gang": {"17": {"until": 90_000}}}


def test_a_fact_is_the_same_after_a_restart_and_tuples_are_lists():
    for value in (1, 0.5, "text", True, [1, [2]], {"a": {"b": None}}):
        event = Promised("rest", "17", facts.plain(value))
        assert ev.decode("promised", ev.encode(event)) == event
    assert facts.plain({"pes": (0, 1)}) == {"pes": [0, 1]}


def test_number_and_size_of_facts_are_bounded():
    site = Site()
    assert facts.fits(site, Promise("17", "x" * (LONGEST - 20), by="rest"))
    assert not facts.fits(site, Promise("17", "x" * LONGEST, by="rest"))
    assert not facts.fits(site, Promise("x" * LONGEST, None, by="rest"))
    site.promises["rest"] = dict.fromkeys(map(str, range(MOST)), 1)
    assert not facts.fits(site, Promise("new", 1, by="rest"))
    assert facts.fits(site, Promise("17", 2, by="rest"))
    assert facts.fits(site, Promise("17", None, by="rest"))
    assert facts.fits(site, Promise("new", 1, by="gang"))

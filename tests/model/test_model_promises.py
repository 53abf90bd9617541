"""What features promise is a fact of the site: kept by events, bounded, forgotten when it is taken back."""

import pytest

from nqspy.engine.lifecycle import apply
from nqspy.model import events as ev
from nqspy.model import promises
from nqspy.model.events import Promised, Recorded
from nqspy.model.promises import LONGEST, MOST, Promise
from nqspy.model.site import Site


def promised(site, key, value, feature="rest"):
    apply(site, Recorded(site.n + 1, 0, Promised(feature, key, value)))


def test_a_promise_is_kept_until_it_is_taken_back():
    site = Site()
    promised(site, "17", {"until": 60_000})
    promised(site, "18", [1, 2])
    promised(site, "17", {"until": 90_000}, feature="gang")
    assert promises.made(site, "rest") == {"17": {"until": 60_000}, "18": [1, 2]}
    promised(site, "17", None)
    promised(site, "18", None)
    promised(site, "19", None)
    assert site.promises == {"gang": {"17": {"until": 90_000}}}


@pytest.mark.parametrize("value", [1, 0.5, "text", True, [1, [2]], {"a": {"b": None}}])
def test_it_is_the_same_after_a_restart(value):
    event = Promised("rest", "17", promises.plain(value))
    assert ev.decode("promised", ev.encode(event)) == event


def test_tuples_become_lists_before_they_are_promised():
    assert promises.plain({"pes": (0, 1)}) == {"pes": [0, 1]}


def test_there_is_room_for_so_many_and_so_long_ones():
    site = Site()
    assert promises.fits(site, Promise("17", "x" * (LONGEST - 20), by="rest"))
    assert not promises.fits(site, Promise("17", "x" * LONGEST, by="rest"))
    assert not promises.fits(site, Promise("x" * LONGEST, None, by="rest"))
    site.promises["rest"] = dict.fromkeys(map(str, range(MOST)), 1)
    assert not promises.fits(site, Promise("new", 1, by="rest"))
    assert promises.fits(site, Promise("17", 2, by="rest"))
    assert promises.fits(site, Promise("17", None, by="rest"))
    assert promises.fits(site, Promise("new", 1, by="gang"))

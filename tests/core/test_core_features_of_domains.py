"""The features that a domain lists: only these have its running requests give way, or stay away."""

import pytest
from core.story import Story

from nqspy.core import features
from nqspy.model.configure import dump, load
from nqspy.model.errors import BadValue
from nqspy.model.tree import declared

BOTH = """machine 4; create domain/wide pes=(2-3); queue day; queue night domain=wide
    run anne wall=9:00:00 queue=day, ben wall=9:00:00 queue=night; later 60"""
STOPPED = f"{BOTH}; day suspend stop:day stop:night"
WIDE = "set domain/wide/features"
STORIES = {
    f"without swap requests run on while memory is short: {listed}": f"""{BOTH}; {WIDE} {listed}
        submit cleo queue=night; memory high 91 anne=20 ben=60; does suspend:{leaves}; why cleo MEMORY"""
    for listed, leaves in (("-", "ben"), ("(swap)", "ben"), ("(health,shift_end)", "anne"), ("()", "anne"))
} | {
    # The last large request stays only where requests that may give way fill the memory.
    f"the memory of a domain without swap counts as that of other programs: {listed}": f"""{BOTH}
        {WIDE} {listed}; memory high 91 anne=100 ben=700; does suspend:{leaves}"""
    for listed, leaves in (("(swap)", "ben"), ("()", "anne"))
} | {
    f"nothing is told or expected of a shift that lets requests run on: {listed}": f"""{BOTH}
        queue other domain=wide reserve=1; {WIDE} {listed}; stops night 180 suspend; go; why ben {why}
        run cleo pes=2 wall=1:00 queue=other; reserved cleo {at}"""
    for listed, why, at in (("-", "will_rest 06:00 night", 180), ("(health)", "-", 540))
} | {
    f"without health what runs goes on and what waits still waits: {listed} {running}": f"""{BOTH}
        probe nfs broken running={running}; set queue/day/needs (nfs); set queue/night/needs (nfs)
        submit cleo queue=night; {WIDE} {listed}; does {running}:anne{more}; why cleo RESOURCE"""
    for running in ("suspend", "requeue")
    for listed, more in (("-", f" {running}:ben"), ("(swap,shift_end)", ""))
} | {
    "one that gave way to memory comes back when its domain lists swap no more": f"""{BOTH}
        memory high 91 anne=20 ben=60; does suspend:ben; {WIDE} (); does -; why ben MEMORY
        memory calm 20 anne=20; does resume:ben""",
    "with shift_end all give way": f"{STOPPED}; does suspend:anne suspend:ben",
    "without shift_end requests run on when a shift stops their queue": f"""{STOPPED}
        {WIDE} (health,swap); does suspend:anne""",
    "a suspended one goes on once its domain lists the feature no more": f"""{STOPPED}
        does suspend:anne suspend:ben; does -; why ben SHIFT; {WIDE} (); does resume:ben; why anne SHIFT""",
    "domain application has the setting too": f"""{BOTH}; day requeue stop:day
        set domain/application/features (swap); does -; set domain/application/features -
        does requeue:anne""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_features_of_a_domain(house, title):
    Story(house).play(STORIES[title])


def test_a_domain_lists_what_may_give_way_and_nothing_that_starts_requests(house):
    Story(house).play(BOTH)
    known = declared(type(house.site.domain("wide")))["features"]
    assert known.words == ("health", "shift_end", "swap")
    assert {*known.words, *known.fixed} == {*features.BY_NAME}
    for word, said in (("route", "route is always on"), ("sawp", "'sawp' is not known")):
        with pytest.raises(BadValue, match=said):
            house.set("domain/wide/features", [word])


def test_a_domain_that_no_longer_lists_a_feature_is_left_alone_by_it(house):
    Story(house).play(STOPPED)
    actions = house.run_pass().actions
    assert [features.stands(house.site, each) for each in actions] == [True, True]
    house.set("domain/wide/features", ["health"])
    assert [features.stands(house.site, each) for each in actions] == [True, False]
    house.set("domain/wide/features", None).go()
    assert features.keeping(house.site, house.request(2)) is not None
    house.set("domain/wide/features", [])
    assert [features.keeping(house.site, house.request(seq)) is None for seq in (1, 2)] == [False, True]


def test_rows_keep_the_list_without_words_of_features_that_are_gone(house):
    Story(house).play(BOTH)
    assert "features" not in dump(house.site.settings)["domain/wide"]
    house.set("domain/wide/features", ["health", "swap"])
    rows = dump(house.site.settings)
    assert load(rows).domains["wide"].features == ("health", "swap")
    rows["domain/wide"]["features"] = ["health", "gone"]
    assert load(rows).domains["wide"].features == ("health",)
    house.set("domain/wide/features", [])
    assert load(dump(house.site.settings)).domains["wide"].features == ()

"""Trial of changes: it shares unchanged settings with the present ones, and checks only what may have become
wrong."""

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model.configure import Trial, copy_of, dump, problems
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.site import Settings

NAMES = st.sampled_from("abcd")
SOME = st.lists(NAMES, max_size=2, unique=True)
CHANGES = st.one_of(
    st.builds(lambda name: Change("create", f"queue/{name}", {"kind": "batch"}), NAMES),
    st.builds(
        lambda name, to: Change("create", f"queue/{name}", {"kind": "pipe", "destinations": to}), NAMES, SOME
    ),
    st.builds(lambda name, to: Change("set", f"queue/{name}/destinations", to), NAMES, SOME),
    st.builds(lambda name, to: Change("set", f"queue/{name}/needs", to), NAMES, SOME),
    st.builds(lambda name, to: Change("create", f"complex/{name}", {"queues": to}), NAMES, SOME),
    st.builds(lambda name, to: Change("create", f"group/{name}", {"parent": to}), NAMES, NAMES),
    st.builds(lambda name, to: Change("set", f"group/{name}/parent", to), NAMES, st.none() | NAMES),
    st.builds(lambda name: Change("create", f"group/{name}", {}), NAMES),
    st.builds(lambda name: Change("create", f"probe/{name}", {"file": "/x"}), NAMES),
    st.builds(lambda head, name: Change("delete", f"{head}/{name}"), st.sampled_from(
        ("queue", "complex", "group", "probe")), NAMES),
    st.builds(
        lambda name, n: Change("set", f"queue/{name}/run_limit", n), NAMES | st.just("*"), st.integers(1, 9)
    ),
    st.builds(lambda name: Change("set", "default/queue", name), NAMES),
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(st.lists(CHANGES, min_size=1, max_size=3), max_size=12))
def test_looking_at_what_was_touched_finds_what_looking_at_all_finds(steps):
    site = Settings()
    for changes in steps:
        before, trial = dump(site), Trial(site)
        try:
            for change in changes:
                trial.apply(change)
        except BadValue:
            assert dump(site) == before
            continue
        assert dump(site) == before, "what stands is not changed"
        wrong = problems(trial.settings)
        assert bool(problems(trial.settings, trial.touched)) == bool(wrong), (changes, wrong)
        if not wrong:
            site = copy_of(trial.settings)

"""What `show` prints."""

import re

from qmgr.test_qmgr_round_trip import build

from nqspy.core.resource_health import PROBES
from nqspy.model.configure import apply_changes
from nqspy.model.events import Change
from nqspy.model.machine import Found
from nqspy.model.queues import Queue
from nqspy.model.site import Settings
from nqspy.qmgr import show, show_shifts

SITE = """
set sched_factor share 0 cpu 6 memory 1 time 10
create batch_queue normal priority=30
set per_process cpu_limit=(600, 590) normal
enable queue normal
start queue normal
create batch_queue night priority=10 run_limit=4
set queue night sched_factor share 20 cpu 0 memory 0 time 1
create batch_queue late
set queue late sched_factor time 7 cpu 6 memory 0
create pipe_queue batch destination=(normal, night)
create complex prime-time queues=(normal, late) user_limit=2
create group ymp share=80
create group d1 parent=ymp share=30
create group d2 parent=ymp share=10 limit=12.5%
add members=(anne, bob) d1
set managers = (carl:m, dora:o)
set exit large_memory hmax=115mw
define shift day when=("30 8 * * mon-fri")
  stop queue night
end
"""


def site() -> Settings:
    return build(SITE)


def test_the_factors_come_with_their_bound_for_each_queue_that_differs():
    text = show.show_sched_factor(site())
    assert "factors for all queues" in text.lower()
    assert "tau_max = 3.33: " in text
    of_night = text.split("for queue night")[1].split("for queue late")[0]
    assert "there is no bound" in of_night
    assert "tau_max = 7.00" in text.split("for queue late")[1]
    assert "for queue normal" not in text


def test_weights_of_zero_are_first_in_first_out():
    settings = Settings()
    settings.sched_factor.time = 0
    assert "first in, first out" in show.show_sched_factor(settings)


def heads(text):
    """Return name, states and priority of each batch queue shown."""
    return re.findall(r"^(\S+); type=BATCH; \[(.+)\]; pri=(\d+)$", text, re.MULTILINE)


def test_queues_show_their_states_and_counts():
    counts = {"normal": {"running": 2, "queued": 5}, "night": {"running": 1}}
    text = show.show_queue(site(), counts=counts, host="ymp")
    assert heads(text)[:3] == [
        ("normal@ymp", "ENABLED, RUNNING", "30"),
        ("night@ymp", "DISABLED, STOPPING", "10"),
        ("late@ymp", "DISABLED, STOPPED", "0"),
    ]
    assert "pri=30\n  0 exit; 2 run; 5 queued;" in text
    assert "destinations: normal, night" in text
    assert show.show_queue(site(), ["late"]).count("type=") == 1


def test_a_long_queue_shows_its_limits_and_what_was_set():
    text = show.show_queue(site(), ["normal"], long=True)
    assert "per_process cpu_limit         10:00" in text
    assert "per_process cpu_warning       9:50" in text
    assert "run_limit                     unlimited" in text


def test_complexes_groups_and_managers():
    settings = site()
    row = show.show_complex(settings).splitlines()[-1].split()
    assert row[:4] == ["prime-time", "normal,", "late", "unlimited"]
    lines = show.show_groups(settings).splitlines()
    assert lines[1].split() == ["ymp", "80", "100.0", "%"]
    assert lines[2].split() == ["d1", "30", "75.0", "%", "anne,", "bob"]
    assert lines[3].split()[-1] == "12.5%"
    managers = show.show_managers(settings)
    assert "carl            manager" in managers
    assert "dora            operator" in managers
    assert show.show_complex(Settings()) == "no complexes"


def test_parameters_have_the_weighting_factors_and_the_machine_what_was_found():
    text = show.show_parameters(site())
    assert "Job Initiation Weighting Factors" in text
    assert "Requested CPU Time    cpu          6" in text
    assert "auto (4)" in show.show_machine(site(), Found((0, 1, 2, 3), 8 * 1024**3))
    assert "auto (8gb)" in show.show_machine(site(), Found((0, 1, 2, 3), 8 * 1024**3))
    assert "per_process stack_limit" in show.limits_supported()


def test_shares_shifts_and_exits_are_shown_from_rows():
    rows = [
        {"group": "ymp", "depth": 0, "share": 80, "entitlement": 0.8, "usage": 0.5, "used_s": 1234.5},
        {"group": "d1", "depth": 1, "share": 29, "entitlement": 0.232, "usage": 0.25, "used_s": 600},
    ]
    assert show.show_shares(rows).splitlines()[-1].split() == ["d1", "29", "23.2", "%", "25.0", "%", "600"]
    coming = [{"at": "2026-03-02T08:30:00+01:00", "shift": "day"}]
    text = show_shifts.show_shifts(site(), "day", coming, manual=True)
    assert '* day: "30 8 * * mon-fri"\n      stop queue night\nin force: day (switched by hand)' in text
    assert text.endswith("2026-03-02 08:30:00  day")
    listing = [{"name": "large_memory", "enabled": False, "hooks": ("jobselect",), "doc": "Large.\nMore.",
                "settings": {"hmax": "115mw"}, "calls": 7, "failures": 1}]  # fmt: skip
    text = show.show_exits(listing)
    assert text.splitlines() == [
        "large_memory [off] jobselect", "  Large.", "  hmax = 115mw", "  called 7 times, 1 failure",
    ]  # fmt: skip


def test_show_all_tells_every_object_and_settings_alone():
    text = show.show_all(site())
    for name in ("normal", "night", "batch", "prime-time", "d1", "carl", "large_memory", "stop queue night"):
        assert name in text
    assert {("normal", "ENABLED, STARTED", "30"), ("night", "DISABLED, STOPPED", "10")} < set(heads(text))
    assert "0 run" not in text, "it cannot know counts"


def test_probes_show_what_they_try_and_what_they_found():
    settings = build('create probe nfs command="check -v" every=90 fails=1\ncreate probe web http=http://a/')
    found = {"nfs": ("[broken] since 23:00", "tried last 23:41: stale")}
    assert show.show_listed(settings, PROBES, ("nfs",), found) == (
        "nfs [broken] since 23:00\n"
        '  command="check -v" every=1:30 timeout=10 fails=1 recovers=2 running=hold\n'
        "  tried last 23:41: stale"
    )
    assert "\nweb\n  http=http://a/ every" in show.show_settings("probes", settings)
    assert 'command="check -v"' in show.show_all(settings)
    assert show.show_settings("probes", Settings()) == "no probes"


def test_what_a_feature_declares_is_shown_with_its_marks():
    settings = site()
    apply_changes(settings, (Change("set", "swap_control/high", 90.5),))
    told = [" ".join(line.split()) for line in show.show_settings("swap_control", settings).splitlines()]
    assert told[:4] == ["swap control off", "high 90.5%", "low 70%", "psi 10%"]
    assert "min_resident 2:00" in told
    assert "Swap control" in show.show_all(settings)


def test_a_wide_table_is_folded_between_words():
    shown = show.limits_supported()
    assert max(map(len, shown.splitlines())) <= 80
    assert "after the grace" in " ".join(shown.split())


def test_parameters_and_queues_tell_what_has_a_default():
    text = show.show_parameters(Settings())
    for words in ("Size of a script              4", "Scripts kept for a user       10%", "past use   20%"):
        assert words in text
    assert "Wall limit hint, times use    10\n" in text
    queue = show.show_queue(Settings(queues={"batch": Queue("batch", "batch")}), long=True)
    assert "per_request process_limit" in queue
    assert "age_from                      eligible" in queue

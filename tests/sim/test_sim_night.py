"""The shipped night: on any workload, and judged on its own."""

import pytest
from scenarios.nights import POLICIES, run_week
from sim.sim_calls import ROOT, TRACES, call, data_of, log, refused


def test_a_night_is_judged_as_the_weeks_of_nights_are():
    found = data_of("night", "--seed", 3)
    week = run_week(ROOT, POLICIES["site"], first=3, nights=1)
    [night] = week.nights
    assert found["busy"] == night.busy > 0.9
    assert max(map(abs, found["deviation"].values())) == pytest.approx(night.deviation)
    assert set(found["deviation"]) == night.working
    assert sum(found["deviation"].values()) == pytest.approx(0)
    assert found["order_kept"] is True
    assert week.order == 0
    assert (found["jobs"], found["left"], found["policy"]) == (week.asked, 0, "night")


def test_a_configuration_comes_behind_the_shipped_one(tmp_path):
    config = tmp_path / "own.qmgr"
    config.write_text("disable exit shrpri\ndisable exit large_memory\n")
    shipped, own = data_of("night"), data_of("night", "--config", config)
    assert own["busy"] != shipped["busy"]
    assert own["order_kept"] == shipped["order_kept"]
    config.write_text("set nonsense=1\n")
    assert "own.qmgr, line 1" in refused("night", "--config", config)


def test_what_is_varied_is_kept_in_every_shift():
    """The shipped shifts set all factors when they come into force."""
    found = data_of("night", "--vary", "sched_factor cpu=0,90")
    shipped, small_first = found["runs"]
    assert shipped["metrics"] == data_of("night")["metrics"]
    assert shipped["order_kept"]
    assert not small_first["order_kept"], "small requests first is not the order of the lists"
    assert "--vary 'set nonsense=1,2', line 1" in refused("night", "--vary", "set nonsense=1,2")


def test_people_are_told_too():
    shown = call("night").stdout
    for text in ("CPUs busy", "quota deviation of d1", "order of the lists"):
        assert f"night: {text}" in shown


def test_it_is_compared_over_seeds():
    found = data_of("night", "--seeds", 2, "--vary", "exit large_memory hmax=100mw,115mw")
    metrics = found["comparison"][1]["metrics"]
    assert {"busy", "deviation_most", "order_kept"} <= set(metrics)
    assert metrics["busy"]["difference"]["ci95"] is not None


@pytest.mark.parametrize("words", [("--pes", 4), ("--jobs", 10), ("--memory", "1gb")])
def test_its_machine_and_lists_are_its_own(words):
    assert words[0] in refused("night", *words)


def test_any_workload_runs_under_the_shipped_site(tmp_path):
    found = data_of(TRACES / "example.swf", "--policy", "night")
    assert (found["jobs"], found["left"], found["policy"]) == (7, 0, "night")
    assert "busy" not in found, "quotas are those of the night's departments"
    found = data_of("night", "--policy", "firstfit")
    assert "busy" not in found


def test_what_takes_longer_waits_for_the_evening(tmp_path):
    """Day 1 of 2026 is a Thursday: at noon a job of half an hour waits until 21:00, one of five minutes
    does not; nothing is ended by a limit of CPU time that it did not ask for."""
    noon = 12 * 3600
    path = log(tmp_path / "log.swf", (noon, 1800, 1), (noon, 300, 1), (noon, 1800, 4))
    starts = tmp_path / "starts"
    assert call(path, "--pes", 8, "--policy", "night", "--starts", starts).exit_code == 0
    found = dict(tuple(map(float, line.split())) for line in starts.read_text().splitlines())
    assert found == {1: 21 * 3600, 2: noon, 3: 21 * 3600}

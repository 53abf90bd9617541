"""Quotas against a real daemon: caps, use corrected by hand over a restart, how accurately they were kept."""

import json

import pytest

from nqspy.errors import Refusal

SITE = """\
set machine pes=2
create batch_queue batch priority=10 workdir=submit
enable queue batch
start queue batch
set default batch_request queue batch
create group ymp share=80
create group d1 parent=ymp share=3 members=(root)
create group d2 parent=ymp share=1 members=(root)
set managers = (root:m)
"""
LONG = "while [ ! -e {} ]; do sleep 0.02; done"


@pytest.fixture
def shop(make_live):
    return make_live("shop").site(SITE).start()


def row(shop, name):
    return next(each for each in json.loads(shop.run("nqspy", "report", "usage", "--json").ok().out)["groups"]
                if each["name"] == name)  # fmt: skip


def test_use_corrected_by_hand_is_told_everywhere_and_outlives_a_restart(shop):
    assert "use of group d1: 12:00:00, was 0 s" in shop.qmgr("set usage of group d1 12h").ok().out
    assert "13:59:5" in shop.qmgr("set usage of group d1 +2h").ok().out
    assert row(shop, "d1")["use_s"] == pytest.approx(14 * 3600, abs=60)
    assert row(shop, "ymp")["use_s"] == pytest.approx(14 * 3600, abs=60)
    first, second = shop.events("usage_corrected")
    assert (first["group"], first["former"], first["value"]) == ("d1", 0, 12 * 3_600_000)
    assert second["who"] == first["who"]
    assert "usage_corrected" in shop.run("nqspy", "events").ok().out
    shop.restart()
    assert row(shop, "d1")["use_s"] == pytest.approx(14 * 3600, abs=60)
    shop.qmgr("set usage of group d1 -20h").ok()
    assert row(shop, "d1")["use_s"] == 0
    shop.qmgr("set usage of group d9 1h").refused("there is no group d9", "ymp, d1, d2")


def test_the_quota_report_tells_what_each_got_and_could_have_used(shop):
    gate = LONG.format(shop.work / "go")
    ids = [shop.submit(gate, account=name) for name in ("d1", "d2", "d1")]
    for each in ids[:2]:
        shop.running(each)
    (shop.work / "go").write_text("")
    for each in ids:
        shop.ended(each)
    text = shop.run("nqspy", "report", "quota").ok().out
    assert text.startswith("quotas: ")
    data = json.loads(shop.run("nqspy", "report", "quota", "--from", "1h", "--json").ok().out)
    by_name = {each["name"]: each for each in data["groups"]}
    assert {"d1", "d2"} <= set(by_name)
    assert by_name["d1"]["entitlement"] > by_name["d2"]["entitlement"]
    assert by_name["d1"]["could_s"] > 0
    assert (data["charge"], data["pes"], data["ongoing"]) == ("cpu", 2, True)
    shop.run("nqspy", "report", "quota", "--shift", "noon").refused("shift noon was not in force")
    both = ("--shift", "noon", "--from", "1h")
    shop.run("nqspy", "report", "quota", *both).refused("give --shift or --from, not both")
    shop.run("nqspy", "report", "quota", "--from", "10min", "--to", "20min").refused("nothing lies between")
    with pytest.raises(Refusal, match="instant in ms"):
        shop.client.call("report_quota", **{"from": "then"})

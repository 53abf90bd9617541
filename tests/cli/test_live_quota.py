"""The report of quotas by a real daemon."""

import json

from daemon.live import ONE_QUEUE

SITE = f"""{ONE_QUEUE}
create group ymp share=80
create group d1 parent=ymp share=3 members=(root)
create group d2 parent=ymp share=1 members=(root)
set managers = (root:m)
"""
LONG = "while [ ! -e {} ]; do sleep 0.02; done"


def test_the_quota_report_tells_what_each_got_and_could_have_used(make_live):
    shop = make_live("shop").site(SITE).start()
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
    shop.run("nqspy", "report", "quota", "--shift", "noon").refused("shift noon was never in force")

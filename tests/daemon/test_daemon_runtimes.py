"""Best guesses and what the past tells of run times, at a real daemon."""

from daemon.live import ONE_QUEUE, Live, until

POST = """\
new=$(mktemp box/new.XXXXXX) && cat > "$new" && mv "$new" "$new.eml"
"""


def test_a_best_guess_is_shown_altered_remembered_and_judged(live: Live) -> None:
    asked = "walltime=1:00:00,best_guess=2:30"
    brief = live.qsub("true\n", "-l", asked, "-N", "brief")
    live.ended(brief)
    gate = live.work / "gate"
    holder = live.qsub(
        f"while [ ! -e {gate} ]; do sleep 0.05; done\n", "-l", f"ncpus=2,{asked}", "-N", "long"
    )
    live.running(holder)
    assert live.job(holder)["requested"]["best_guess_s"] == 150
    assert "Resource_List.best_guess = 00:02:30" in live.run("qstat", "-f", holder).ok().out
    live.run("qalter", "-l", "best_guess=50:00", holder).ok()
    waiting = live.qsub("true\n", "-l", "ncpus=2")
    live.kill()
    live.start()
    assert live.job(holder)["requested"]["best_guess_s"] == 3000
    estimate = live.why(waiting)["estimate"]
    assert estimate["probably"]["start"] < estimate["latest"]["start"]
    assert "best guesses" in estimate["probably"]["basis"]
    live.run("qalter", "-l", "best_guess=2:00:00", holder).refused("above the wall limit of 1:00:00")
    live.run("qsub", "-l", "best_guess=soon", stdin="true\n").refused("'soon' is no time")
    live.write("gate", "")
    live.ended(holder)
    [user] = live.run("nqspy", "report", "estimates", "--json").ok().data["users"]
    assert (user["ended"], user["limit"]["known"], user["best_guess"]["known"]) == (3, 2, 2)
    assert user["limit"]["tenfold"] == 1.0
    assert user["best_guess"]["times"] > 10
    assert user["user"] in live.run("nqspy", "report", "estimates").ok().out


def test_who_asks_for_far_too_much_is_told_in_the_mail_and_when_he_asks(make_live) -> None:
    live = make_live()
    (live.work / "box").mkdir()
    post = live.write("post.sh", POST)
    live.site(f"{ONE_QUEUE}set mail command='cd {live.work} && sh {post}'\n").start()
    ended = live.qsub("true\n", "-l", "walltime=2:00:00", "-N", "brief", "-m", "e")
    live.ended(ended)
    [mail] = until(lambda: list((live.work / "box").glob("*.eml")), "a mail")
    assert "of a wall limit of 2:00:00: with 1:00 instead" in " ".join(mail.read_text().split())
    held = live.qsub("true\n", "-l", "walltime=3:00:00", "-N", "brief", "-h")
    hint = live.why(held)["hint"]
    assert hint.startswith("the one like it ran 1 s at most, of a wall limit of 3:00:00")
    assert f"  hint:     {hint}" in live.run("qstat", "--why", held).ok().out
    assert "hint:" in live.run("qstat", "--why", ended).ok().out
    live.set("set limit_hint off")
    assert live.why(held)["hint"] is None
    assert "hint:" not in live.run("qstat", "--why", ended).ok().out

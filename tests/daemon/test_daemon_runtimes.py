"""Best guesses and what the past tells of run times, at a real daemon."""

from daemon.live import Live


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
    live.run("qalter", "-l", "best_guess=2:00:00", holder).refused("above the wall limit 1:00:00")
    live.run("qsub", "-l", "best_guess=soon", stdin="true\n").refused("'soon' is not a time")
    live.write("gate", "")
    live.ended(holder)
    [user] = live.run("nqspy", "report", "estimates", "--json").ok().data["users"]
    assert (user["ended"], user["limit"]["known"], user["best_guess"]["known"]) == (3, 2, 2)
    assert user["limit"]["tenfold"] == 1.0
    assert user["best_guess"]["times"] > 10
    assert user["user"] in live.run("nqspy", "report", "estimates").ok().out
    held = live.qsub("true\n", "-l", "walltime=3:00:00", "-N", "brief", "-h")
    assert "wall limit is 3 h" in live.why(held)["hint"]
    assert "hint:" in live.run("qstat", "--why", held).ok().out
    live.set("set limit_hint off")
    assert live.why(held)["hint"] is None

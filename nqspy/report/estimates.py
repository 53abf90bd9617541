"""Accuracy of run times given by people: wall limits, best guesses; and of estimates from earlier requests.
From the stored lifetimes (`model.lifetimes`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from nqspy.core.runtime import LAST
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import WHOLE, Key, Lifetime, Lived
from nqspy.model.texts import grid, percent
from nqspy.report.time_text import Zone, short

Known = Mapping[Key, Lifetime]
TENFOLD = 10


def estimates(known: Known, at: Instant, zone: Zone) -> dict[str, Any]:
    """Return a row for each user by name, for JSON; ``known``: the stored lifetimes of ended requests.

    *Accuracy* is the mean of the shorter of the estimated and the real time divided by the longer; 1: always
    exact (D. Tsafrir, Y. Etsion, D. Feitelson, IEEE TPDS 18(6), 2007). ``times``: the median of estimated /
    real; ``tenfold``: the part with a limit of ten times as long or more; ``outran``: the part that ran
    longer than guessed. ``history``: if enough requests of the same name and size had ended before, the
    median of the last of them as the estimate, as `runtime` makes it. All are null where ``known`` is 0."""
    users: dict[str, list[Sequence[Lived]]] = {}
    for (owner, _, _), lifetime in known.items():
        users.setdefault(owner, []).append(lifetime.runs)
    rows = []
    for user, of_names in sorted(users.items()):
        runs = [run for name in of_names for run in name]
        limits, guesses = [run.part for run in runs if run.part], [run.guess for run in runs if run.guess]
        past = [near for name in of_names for near in _by_those_before(name)]
        rows.append({
            "user": user,
            "ended": len(runs),
            "limit": _accuracy(limits) | {"tenfold": _share(part * TENFOLD <= WHOLE for part in limits)},
            "best_guess": _accuracy(guesses) | {"outran": _share(part > WHOLE for part in guesses)},
            "history": {"known": len(past), "accuracy": fmean(past) if past else None},
        })  # fmt: skip
    return {"at": zone.text(at), "users": rows}


def _accuracy(parts: Sequence[int]) -> dict[str, Any]:
    """Return count, accuracy and median of estimated / real. ``parts``: run times in thousandths of their
    estimates."""
    near = [min(part, WHOLE) / max(part, WHOLE) for part in parts]
    return {
        "known": len(parts),
        "accuracy": fmean(near) if near else None,
        "times": median(WHOLE / part for part in parts) if parts else None,
    }


def _share(which: Iterable[bool]) -> float | None:
    found = [float(each) for each in which]
    return fmean(found) if found else None


def _by_those_before(runs: Sequence[Lived]) -> Iterator[float]:
    """Yield for each run with `LAST` runs before it the accuracy of the median of these as its estimate:
    of wall times, or of the fractions of their wall limits if all of them had one."""
    for place in range(LAST, len(runs)):
        some = runs[place - LAST : place + 1]
        values = [run.part for run in some] if all(run.part for run in some) else [run.wall for run in some]
        *before, came = (max(1, value) for value in values)
        guess = sorted(before)[LAST // 2]
        yield min(guess, came) / max(guess, came)


_HEADS = (
    "USER", "ENDED", "LIMIT x", "EXACT %", "10 x %", "GUESSED", "GUESS x", "EXACT %", "OVER %", "PAST %",
)  # fmt: skip


def estimates_text(data: Mapping[str, Any]) -> str:
    """Return the accuracy of estimates by user as a table for people."""
    if not data["users"]:
        return "no request has ended yet\n"
    rows = [
        (
            each["user"], each["ended"], _times(limit := each["limit"]), percent(limit["accuracy"]),
            percent(limit["tenfold"]), (guess := each["best_guess"])["known"], _times(guess),
            percent(guess["accuracy"]), percent(guess["outran"]), percent(each["history"]["accuracy"]),
        )
        for each in data["users"]
    ]  # fmt: skip
    head = f"run times and how well they were estimated, at {short(data['at'])}\n\n"
    return head + grid(_HEADS, rows)


def _times(row: Mapping[str, Any]) -> str:
    return "-" if row["times"] is None else f"{row['times']:.1f}"

"""Sets of indices of an array as runs ``(first, last, step)``: a hundred thousand indices are one run. Runs
are in ascending order and do not interleave: each begins after the last index of the one before. A set is a
plain tuple of runs, so events and rows carry it as it is; the empty tuple is the empty set."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, islice, starmap
from math import gcd
from operator import itemgetter

from nqspy.model import keys
from nqspy.model.errors import BadValue
from nqspy.model.keys import MOST_INDICES as MOST_INDICES

Run = tuple[int, int, int]
"""First and last index, both in it, and the step between them (1 where there is but one)."""
Runs = tuple[Run, ...]

MOST_RUNS = 5_000
"""Most runs of a set: all are written when an index begins, and passed to jobs in a variable (128 KiB)."""

SHOWN = 8
"""Runs of a set that a sentence names."""
_FEW = 16
"""Most runs that are tested for being one run together."""

_first, _last = itemgetter(0), itemgetter(1)


def read(text: str) -> Runs:
    """Return the set in a text like ``1-10,15,20-30:5``. Raises BadValue if it is ill-formed or too large."""
    return _tidy(lambda: keys.read_indices(text))


def tidy(runs: Iterable[Run]) -> Runs:
    """Return the set of indices in these runs, which may overlap and come in any order. Raises BadValue."""
    return _tidy(lambda: keys.checked_runs(list(runs)))


def _tidy(runs: Callable[[], list[Run]]) -> Runs:
    try:
        made = _untangled(sorted(runs()), MOST_RUNS)
    except ValueError as error:
        raise BadValue(str(error)) from None
    if len(made) > MOST_RUNS:
        raise BadValue(f"its indices form {len(made)} ranges like 20-30:5; an array may have {MOST_RUNS}")
    return made


def show(runs: Runs) -> str:
    """Return a set as people write it: ``1-10,15,20-30:5``."""
    return ",".join(map(_shown, runs))


def brief(runs: Iterable[Run]) -> str:
    """Return a set as text for a sentence; of more than `SHOWN` runs only the first, with ``...``."""
    some = tuple(islice(runs, SHOWN + 1))
    return show(some) if len(some) <= SHOWN else f"{show(some[:SHOWN])},..."


def of(numbers: Iterable[int]) -> Runs:
    """Return the set of these indices."""
    return _packed(sorted(set(numbers)))


def each(runs: Runs) -> Iterator[int]:
    """Yield the indices of a set in ascending order."""
    for first, last, step in runs:
        yield from range(first, last + 1, step)


def count(runs: Iterable[Run]) -> int:
    """Return the number of indices in a set."""
    return sum((last - first) // step + 1 for first, last, step in runs)


def nth(runs: Runs, number: int) -> int:
    """Return the index at a place (from 0) of a set in ascending order. Raises IndexError beyond its end."""
    for run in runs:
        size = count((run,))
        if number < size:
            return run[0] + number * run[2]
        number -= size
    raise IndexError(number)


def has(runs: Runs, index: int) -> bool:
    """True if an index is in the set."""
    place = _place(runs, index)
    return place < len(runs) and runs[place][0] <= index and not (index - runs[place][0]) % runs[place][2]


def drop(runs: Runs, index: int) -> Runs:
    """Return the set without this index."""
    place = _place(runs, index)
    if not has(runs, index):
        return runs
    return (*runs[:place], *_cut(runs[place], ((index, index, 1),)), *runs[place + 1 :])


def add(runs: Runs, index: int) -> Runs:
    """Return the set with this index."""
    place = _place(runs, index)
    if has(runs, index):
        return runs
    if place < len(runs) and runs[place][0] < index:  # between two of a run with a step
        return plus(runs, ((index, index, 1),))
    near = _joined([*runs[max(0, place - 1) : place], (index, index, 1), *runs[place : place + 1]])
    return (*runs[: max(0, place - 1)], *near, *runs[place + 1 :])


def plus(one: Runs, other: Runs) -> Runs:
    """Return the indices that are in either of two sets, or in both."""
    if not one or not other:
        return one or other
    more = minus(other, one)
    if not more:
        return one
    begin, end = _place(one, more[0][0]), bisect_right(one, more[-1][1], key=_first)
    begin, end = max(0, begin - 1), end + 1  # the neighbours may go on in the same step
    return (*one[:begin], *_untangled(sorted((*one[begin:end], *more))), *one[end:])


def minus(one: Runs, other: Runs) -> Runs:
    """Return the indices of one set that are not in the other."""
    if not one or not other:
        return one
    begin, end = _place(one, other[0][0]), bisect_right(one, other[-1][1], key=_first)
    before = max(0, begin - 1)  # the neighbours may go on in the same step
    rest = [*one[before:begin], *pieces(one[begin:end], other)]
    return (*one[:before], *_joined([*rest, *one[end : end + 1]]), *one[end + 1 :])


def pieces(one: Runs, other: Runs) -> Iterator[Run]:
    """Yield the runs of `minus` without joining neighbours, one by one because there may be very many."""
    return chain.from_iterable(_cut(run, _near(other, run)) for run in one)


def both(one: Runs, other: Runs) -> Runs:
    """Return the indices that are in both sets."""
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    found = (_common(run, near) for run in few for near in _near(many, run))
    return tuple(run for run in found if run is not None)


def _run(first: int, last: int, step: int) -> Run:
    last -= (last - first) % step
    return first, last, step if last > first else 1


def _place(runs: Runs, index: int) -> int:
    """Return the place of the first run that does not end before an index."""
    return bisect_left(runs, index, key=_last)


def _near(runs: Runs, run: Run) -> Runs:
    """Return the runs that overlap the range of another run."""
    return runs[_place(runs, run[0]) : bisect_right(runs, run[1], key=_first)]


def _common(one: Run, other: Run) -> Run | None:
    """Return the run of indices in both runs, by the Chinese remainder theorem; None: no common index."""
    (first, last, step), (begin, end, stride) = one, other
    divisor = gcd(step, stride)
    if (begin - first) % divisor:
        return None
    places = stride // divisor
    met = first + (begin - first) // divisor * pow(step // divisor, -1, places) % places * step
    both_steps = step * places
    if met < begin:
        met += -((met - begin) // both_steps) * both_steps
    return _run(met, min(last, end), both_steps) if met <= min(last, end) else None


def _cut(run: Run, by: Runs) -> Iterator[Run]:
    """Yield the runs that remain of a run without these indices."""
    first, last, step = run
    for each in by:
        out = _common((first, last, step), each) if first <= last else None
        if out is None:
            continue
        if first < out[0]:
            yield _run(first, out[0] - step, step)
        yield from _gaps(out, step)
        first = out[1] + step
    if first <= last:
        yield _run(first, last, step)


def _gaps(out: Run, step: int) -> Iterable[Run]:
    """Return the runs that remain between the indices that are cut out of a run with this step."""
    first, last, stride = out
    if first == last or stride == step:
        return ()
    if stride == 2 * step:
        return (_run(first + step, last - step, stride),)
    return (_run(index + step, index + stride - step, step) for index in range(first, last, stride))


def _untangled(runs: list[Run], most: int = MOST_INDICES) -> Runs:
    """Return as a set the indices in runs that may overlap, given in order of their first indices. ``most``
    and BadValue: as in `_loose`."""
    found: list[Run] = []
    tangle: list[Run] = []
    end = -1
    for run in runs:
        if run[0] > end and tangle:
            found += _loose(tangle, most)
            tangle = []
        if tangle and run[2] == tangle[-1][2] == 1 and run[0] <= tangle[-1][1] + 1:
            run = (tangle[-1][0], max(run[1], tangle.pop()[1]), 1)
        tangle.append(run)
        end = max(end, run[1])
    return tuple(_joined([*found, *_loose(tangle, most)]))


def _loose(tangle: list[Run], most: int) -> Iterable[Run]:
    """Return overlapping runs as runs that do not interleave. Raises BadValue if more than ``most`` indices
    would have to be examined singly."""
    if len(tangle) <= 1:
        return tangle
    whole = _as_one(tangle)
    if whole is not None:
        return (whole,)
    if (number := count(tangle)) > most:
        raise BadValue(
            f"at most {most} indices may be in ranges that overlap or interleave, not {number};"
            " write ranges that end before the next begins"
        )
    return _packed(sorted(set(each(tuple(tangle)))))


def _as_one(tangle: list[Run]) -> Run | None:
    """Return the one run that at most `_FEW` runs form together, such as odd and even; None: they do not."""
    first, last = tangle[0][0], max(map(_last, tangle))
    step = gcd(*(run[0] - first for run in tangle), *(run[2] for run in tangle if run[0] < run[1]))
    if len(tangle) > _FEW or not step or count(tangle) != (last - first) // step + 1:
        return None
    return None if any(starmap(_common, combinations(tangle, 2))) else _run(first, last, step)


def _packed(numbers: list[int]) -> Runs:
    """Return indices in ascending order as runs."""
    found: list[Run] = []
    first = last = numbers[0] if numbers else 0
    step = 0  # as long as the run has but one
    for number in numbers[1:]:
        if number - last == step:
            last = number
        elif not step:
            step, last = number - last, number
        else:
            found.append((first, last, step))
            first, last, step = number, number, 0
    return (*found, (first, last, step or 1)) if numbers else ()


def _joined(runs: list[Run]) -> list[Run]:
    """Return runs with those neighbours joined that go on in the same step. Two single indices are joined if
    they are adjacent, or if a third goes on."""
    found: list[Run] = []
    for run in runs:
        first, end, stride = found[-1] if found else run
        gap, alone, single = run[0] - end, first == end, run[0] == run[1]
        step = gap if alone and single else run[2] if alone else stride
        if found and gap == step and (single or run[2] == step):
            found[-1] = (first, run[1], step)
        else:
            found.append(run)
    return found


def _shown(run: Run) -> str:
    first, last, step = run
    if first == last:
        return str(first)
    if step == 1:
        return f"{first}-{last}"
    return f"{first},{last}" if first + step == last else f"{first}-{last}:{step}"

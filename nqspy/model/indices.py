"""Sets of indices of an array as runs ``(first, last, step)``: a hundred thousand indices are one run.

Runs are in ascending order and do not interleave: each begins after the last index of the one before. A set
is a plain tuple of them, so that events and rows carry it as it is; the empty tuple is the empty set.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from nqspy.model import index_text
from nqspy.model.errors import BadValue
from nqspy.model.index_text import MOST_INDICES as MOST_INDICES

Run = tuple[int, int, int]
"""First and last index, both in it, and the step between them (1 where there is but one)."""
Runs = tuple[Run, ...]

MOST_RUNS = 5_000
"""Of how many runs. All are written down each time that one begins, and told to each job in one variable,
which the kernel takes up to 128 KiB."""

_first, _last = itemgetter(0), itemgetter(1)


def read(text: str) -> Runs:
    """Return the set that ``1-10,15,20-30:5`` names. Raises BadValue."""
    return _tidy(lambda: index_text.read(text))


def tidy(runs: Iterable[Run]) -> Runs:
    """Return the set that any runs make. Raises BadValue."""
    return _tidy(lambda: index_text.checked(list(runs)))


def _tidy(runs: Callable[[], list[Run]]) -> Runs:
    try:
        made = _untangled(sorted(runs()))
    except ValueError as error:
        raise BadValue(str(error)) from None
    if len(made) > MOST_RUNS:
        raise BadValue(f"its indices are {len(made)} pieces like 20-30:5; an array may have {MOST_RUNS}")
    return made


def show(runs: Runs) -> str:
    """The set as people write it."""
    return ",".join(map(_shown, runs))


def of(numbers: Iterable[int]) -> Runs:
    """The set of these indices."""
    return _packed(sorted(set(numbers)))


def each(runs: Runs) -> Iterator[int]:
    """The indices in ascending order."""
    for first, last, step in runs:
        yield from range(first, last + 1, step)


def count(runs: Iterable[Run]) -> int:
    """How many there are."""
    return sum((last - first) // step + 1 for first, last, step in runs)


def nth(runs: Runs, number: int) -> int:
    """The index at that place, from 0. Raises IndexError."""
    for run in runs:
        size = count((run,))
        if number < size:
            return run[0] + number * run[2]
        number -= size
    raise IndexError(number)


def has(runs: Runs, index: int) -> bool:
    """Whether it is one of them."""
    place = _place(runs, index)
    return place < len(runs) and runs[place][0] <= index and not (index - runs[place][0]) % runs[place][2]


def drop(runs: Runs, index: int) -> Runs:
    """Without this one."""
    place = _place(runs, index)
    if not has(runs, index):
        return runs
    return (*runs[:place], *_split(runs[place], index), *runs[place + 1 :])


def add(runs: Runs, index: int) -> Runs:
    """With this one besides."""
    place = _place(runs, index)
    if has(runs, index):
        return runs
    if place < len(runs) and runs[place][0] < index:  # between two of a run with a step
        return plus(runs, ((index, index, 1),))
    near = _joined([*runs[max(0, place - 1) : place], (index, index, 1), *runs[place : place + 1]])
    return (*runs[: max(0, place - 1)], *near, *runs[place + 1 :])


def plus(one: Runs, other: Runs) -> Runs:
    """All that are in one of both."""
    if not one or not other:
        return one or other
    return _untangled(sorted((*one, *minus(other, one))))


def minus(one: Runs, other: Runs) -> Runs:
    """Those of one that are not in the other."""
    left: list[Run] = []
    for run in one:
        near = other[_place(other, run[0]) : bisect_right(other, run[1], key=_first)]
        left += _cut(run, near)
    return tuple(left)


def both(one: Runs, other: Runs) -> Runs:
    """Those that are in both."""
    return minus(one, minus(one, other))


def _run(first: int, last: int, step: int) -> Run:
    last -= (last - first) % step
    return first, last, step if last > first else 1


def _place(runs: Runs, index: int) -> int:
    """The place of the first run that does not end before an index."""
    return bisect_left(runs, index, key=_last)


def _split(run: Run, index: int) -> Iterator[Run]:
    first, last, step = run
    if first < index:
        yield _run(first, index - step, step)
    if index < last:
        yield _run(index + step, last, step)


def _cut(run: Run, by: Runs) -> Runs:
    """A run without what these have of it."""
    if not by:
        return (run,)
    if all(each[2] == 1 for each in by):
        return _cut_by_intervals(run, by)
    out = set[int]()
    for first, last, step in by:
        begin = first + max(0, (run[0] - first + step - 1) // step) * step
        out.update(range(begin, min(last, run[1]) + 1, step))
    return _packed([index for index in range(run[0], run[1] + 1, run[2]) if index not in out])


def _cut_by_intervals(run: Run, by: Runs) -> Runs:
    first, last, step = run
    left: list[Run] = []
    for lower, upper, _ in by:
        if first < lower:
            left.append(_run(first, min(last, lower - 1), step))
        if first <= upper:
            first += -((first - upper - 1) // step) * step
    if first <= last:
        left.append(_run(first, last, step))
    return tuple(left)


def _untangled(runs: list[Run]) -> Runs:
    """Runs in order of their firsts, without interleaving."""
    found: list[Run] = []
    tangle: list[Run] = []
    end = -1
    for run in runs:
        if run[0] > end and tangle:
            found += _loose(tangle)
            tangle = []
        tangle.append(run)
        end = max(end, run[1])
    return tuple(_joined([*found, *_loose(tangle)]))


def _loose(tangle: list[Run]) -> Iterable[Run]:
    return tangle if len(tangle) == 1 else _packed(sorted(set(each(tuple(tangle)))))


def _packed(numbers: list[int]) -> Runs:
    """Ascending indices as runs."""
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
    """Neighbours that go on in the same step made one."""
    found: list[Run] = []
    for run in runs:
        former = found[-1] if found else None
        if former is not None and (joined := _join(former, run)) is not None:
            found[-1] = joined
        else:
            found.append(run)
    return found


def _join(one: Run, next_: Run) -> Run | None:
    """Both as one; None where they are none. Two single indices are one run only if they are neighbours, or
    if a third would go on with them."""
    gap = next_[0] - one[1]
    alone, single = one[0] == one[1], next_[0] == next_[1]
    step = gap if alone and single else next_[2] if alone else one[2]
    fits = gap == step and (single or next_[2] == step)
    return (one[0], next_[1], step) if fits else None


def _shown(run: Run) -> str:
    first, last, step = run
    if first == last:
        return str(first)
    if step == 1:
        return f"{first}-{last}"
    return f"{first},{last}" if first + step == last else f"{first}-{last}:{step}"

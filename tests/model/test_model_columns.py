"""Columns hold the same as a list of requests, in whatever order requests come and are removed."""

import math

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.model.columns import Columns, Dictionary, compact
from nqspy.model.ids import Instant
from nqspy.model.requests import Ask, Request, Spec, State
from nqspy.model.units import UNLIMITED


def request(seq: int, owner: str = "anne", **ask: int | None) -> Request:
    spec = Spec(owner, 1, f"n{seq % 3}", "q", "s", "e", "/", group=f"g{seq % 2}", ask=Ask(**ask),
                priority=(None, 0, 5, -3)[seq % 4])  # fmt: skip
    return Request(seq, spec, "q", State.QUEUED, Instant(seq), Instant(seq * 10))


def rows(columns: Columns, numbers: Dictionary) -> set[tuple]:
    """Return every row with names instead of numbers."""
    found = set()
    assert columns.prioritised == sum(bool(each.spec.priority) for each in columns.requests())
    for row, each in enumerate(columns.requests()):
        assert each.slot == row
        assert columns.request(row) is each
        plain = ("seq", "date", "cpu", "memory", "pes", "rank", "priority", "given", "contract", "count")
        named = dict(numbers.by_column())
        found.add(
            (
                *(getattr(columns, name)[row].item() for name in plain),
                *(of.names[getattr(columns, name)[row]] for name, of in named.items()),
            )
        )
    return found


def known_of_all(columns: Columns, numbers: Dictionary) -> tuple:
    """Return the figures that columns maintain, and the same computed from the rows."""
    counted, summed = columns.by_pair(), columns.pes_by_pair()
    pairs, pair = columns.pairs(numbers), columns.pair
    asked, groups = ("date", "cpu", "pes", "rank"), zip(pairs.groups, pairs.rows, strict=True)
    figures = (
        [columns.most(name) for name in asked], [columns.least(name) for name in asked],
        counted.tolist(), summed.tolist(), pairs.keys,
        sorted((owner, group, row) for group, of_group in groups for owner, row in of_group.items()),
        [pairs.groups[place] for place in pairs.place],
    )  # fmt: skip
    keys = [tuple(numbers.pairs.names[number].split(":")[::-1]) for number in sorted(set(pair.tolist()))]
    found = (
        [getattr(columns, name).max() if len(columns) else 0 for name in asked],
        [getattr(columns, name).min() if len(columns) else 0 for name in asked],
        [int((pair == number).sum()) for number in range(len(counted))],
        [int(columns.pes[pair == number].sum()) for number in range(len(summed))],
        keys, sorted((*key, row) for row, key in enumerate(keys)), [group for _, group in keys],
    )  # fmt: skip
    return figures, found


def expected(each: Request) -> tuple:
    ask = each.spec.ask
    cpu = math.inf if ask.cpu_wanted() in (None, UNLIMITED) else float(ask.cpu_wanted() or 0)
    memory = math.inf if ask.memory_wanted() in (None, UNLIMITED) else float(ask.memory_wanted() or 0)
    return (
        each.seq, each.date_in_queue, cpu, memory, ask.pes, each.rank, each.spec.priority or 0,
        each.spec.name_given, each.spec.contract, 1, each.owner, each.group, each.name,
        f"{each.group}:{each.owner}", "+".join(sorted(ask.needs)),
    )  # fmt: skip


asks = st.fixed_dictionaries(
    {
        "cpu": st.none() | st.just(UNLIMITED) | st.integers(0, 10**9),
        "memory_process": st.none() | st.integers(0, 10**12),
        "pes": st.integers(1, 512),
        "needs": st.sampled_from(((), ("nfs",), ("nfs", "licence"), ("licence", "nfs"))),
    }
)


@given(st.lists(st.tuples(st.sampled_from("aaarud"), st.integers(0, 50), asks), max_size=60))
def test_rows_are_what_was_put_in_and_not_taken_out(steps):
    columns, numbers = Columns(2), Dictionary()
    there: list[Request] = []
    for step, which, ask in steps:
        version = columns.version
        one = there[which % len(there)] if there else None
        if step == "a":
            there.append(request(len(there) + 100 * which, f"o{which % 4}", **ask))
            columns.add(there[-1], numbers)
        elif one is None:
            continue
        elif step == "r":
            there.remove(one)
            columns.remove(one)
            assert one.slot == -1
        elif step == "u":
            one.rank = which
            one.spec = replace(one.spec, priority=which % 3)
            columns.update(one, numbers)
        else:
            one.date_in_queue = Instant(which)
            columns.redate([one], which)
        assert columns.version > version
        assert len(columns) == len(there)
        figures, found = known_of_all(columns, numbers)
        assert figures == found
    assert rows(columns, numbers) == {expected(each) for each in there}
    assert sorted(columns.seqs()) == sorted(each.seq for each in there)


@given(st.lists(asks, max_size=40), st.lists(asks, max_size=5))
def test_many_at_once_are_the_same_as_one_by_one(many, before):
    one, two, numbers, others = Columns(), Columns(), Dictionary(), Dictionary()
    for n, ask in enumerate(before):
        one.add(request(n, **ask), numbers)
        two.add(request(n, **ask), others)
    for n, ask in enumerate(many, 100):
        one.add(request(n, **ask), numbers)
    two.extend([request(n, **ask) for n, ask in enumerate(many, 100)], others)
    known_of_all(two, others)
    two.extend([request(500)], others)
    one.add(request(500), numbers)
    assert rows(one, numbers) == rows(two, others)
    figures, found = known_of_all(two, others)
    assert figures == found


def test_a_name_keeps_its_number():
    numbers = Dictionary().owners
    assert [numbers.of(name) for name in ("anne", "ben", "anne")] == [0, 1, 0]
    assert (numbers.known("ben"), numbers.known("eva"), len(numbers)) == (1, None, 2)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_names_that_nobody_bears_are_forgotten_and_no_row_changes(steps):
    queues, numbers = (Columns(2), Columns(2)), Dictionary()
    there: list[tuple[Columns, Request]] = []
    for number, (remove, which) in enumerate(steps):
        if remove and there:
            columns, one = there.pop(which % len(there))
            columns.remove(one)
        else:
            columns = queues[which % 2]
            there.append((columns, request(number, f"o{which}")))
            columns.add(there[-1][1], numbers)
    before = [rows(columns, numbers) for columns in queues]
    assert all(figures == found for figures, found in (known_of_all(columns, numbers) for columns in queues))
    orders = [[columns.owner.argsort(kind="stable").tolist() for columns in queues]]
    versions = [columns.version for columns in queues]
    compact(numbers, queues)
    assert [rows(columns, numbers) for columns in queues] == before
    for columns in queues:
        figures, found = known_of_all(columns, numbers)
        assert figures == found
    assert [columns.owner.argsort(kind="stable").tolist() for columns in queues] == orders[0]
    assert set(numbers.owners.names) == {one.owner for _, one in there}
    assert set(numbers.pairs.names) == {f"{one.group}:{one.owner}" for _, one in there}
    assert all(numbers.names.of(name) == number for number, name in enumerate(numbers.names.names))
    assert all(columns.version > version for columns, version in zip(queues, versions, strict=True))

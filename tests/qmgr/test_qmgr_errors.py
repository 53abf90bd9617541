"""What cannot be read is refused in one line that says where, which word, and what would be right."""

import contextlib

import msgspec
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import registry
from nqspy.model.commands import Command, encode
from nqspy.model.configure import apply_change
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.site import Settings
from nqspy.model.tree import check_value, declared
from nqspy.model.units import parse_size, parse_time
from nqspy.qmgr.attributes import keywords_of
from nqspy.qmgr.cursor import resolve
from nqspy.qmgr.grammar import FORMS, TREE, VERBS, Node
from nqspy.qmgr.help import attribute_rows, help_text
from nqspy.qmgr.parser import RULES, ParseError, completions, opens_block, parse_text
from nqspy.qmgr.values import what

CLASSES = {each.head: each.kind for each in registry.objects()}


def error_of(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert "\n" not in str(caught.value)
    return caught.value


def test_the_papers_typing_error_is_refused_and_the_right_word_named_first():
    error = error_of("# weights\n\nset shed_factor share 20")
    assert (error.line, error.column, error.word) == (3, 5, "shed_factor")
    assert error.expected[0] == "sched_factor"
    assert error.caret() == "set shed_factor share 20\n    ^"


WRONG = [
    ("foo", 1, "'foo' is not known here"),
    ("set", 4, "expected queue"),
    ("set s", 5, "'s' is ambiguous: sched_factor, server, shell_strategy"),
    ("set run_limit=4", 16, "expected the name of a queue"),
    ("set priority=99 night", 14, "from 0 to 63"),
    ("set run_limit=many night", 15, "'many' is not a whole number from 0 upward or unlimited"),
    ("set decider memory=much", 20, "'much' is not a size; write it like 600mb or 32mw"),
    ("set grace unlimited", 11, "grace cannot be unlimited"),
    ("set usage payback=unlimited", 19, "payback cannot be unlimited; expected a percentage like 20%"),
    ("set per_request process_limit=unlimited q", 31, "cannot be unlimited; expected a whole number"),
    ("set per_request cpu_limit=(1,2,3) normal", 27, "one to 2 values"),
    ("set per_request cpu_limit=(600,700) q", 27, "the warning of cpu_limit"),
    ("set per_request memory_limit=(1mb, 1mb) q", 30, "memory_limit needs one value here, not 2"),
    ("set per_request stack_limit=1 q", 17, "'stack_limit' is not known here"),
    ("set sched_factor share unlimited", 24, "'unlimited' is not a weight"),
    ("set sched_factor luck 3", 18, "expected share, cpu, memory, time"),
    ("create batch_queue", 19, "expected the name of a queue"),
    ("create batch_queue all", 20, "'all'"),
    ("create batch_queue night run_limit 4 4", 38, "'4' is not known here"),
    ("create device x", 1, "there are no printers"),
    ("set debug 3", 1, "remove the line"),
    ("set shell_strategy fixed=(sh)", 26, "'sh' is not a shell; give its whole path"),
    ("set timezone Europe/Nowhere", 14, "there is no time zone Europe/Nowhere"),
    ("add managers = (anne:x)", 17, "USER:m (manager) or USER:o (operator)"),
    ("add members=(anne, bob d1", 26, "expected a list of members, )"),
    ("hold request abc", 14, "expected a request identifier"),
    ("modify request 17", 18, "expected cpu_limit"),
    ("modify request 17 priority=-1025", 28, "from -1024 to 1023, not -1025"),
    ("modify request 17 eligible=someday", 28, "'someday' is not a date"),
    ("schedule request 17 soon", 21, "expected first, next, now, system"),
    ("switch shift night until=25:00", 26, "'25:00' is not a time; expected HH:MM"),
    ("modify request 17 name=none", 24, "'none'"),
    ("set timezone Europe/Pari", 14, "there is no time zone Europe/Pari; did you mean Europe/Paris?"),
    ('set shift night when=("0 25 * * *")', 23, "is not a cron time"),
    ('set shift night when=("0 2 * *")', 23, "5 fields"),
    ('set mail "open', 10, "is not closed"),
    ("end", 1, "needs a 'define shift'"),
    ("purge queue night please", 19, "'please'"),
    ("set swap_control on off", 21, "expected"),
    ("show queeu", 6, "expected queue"),
    ("show shifts --next 367d", 20, "'367d' is too long"),
    ("show shifts nope", 13, "'nope' is not known here; expected --next"),
    ("show shifts --next 14d x", 24, "'x' is not known here"),
    ("help set foo", 10, "'foo' is not known here; expected queue"),
    ("create probe none file=/x", 14, "'none'"),
    ("set mail smtp=a sendmail=/x", 10, "sendmail and smtp"),
    ("set usage of group d3 abc", 23, "'abc' is not a time; write it like 12h, +2h or -30min"),
    ("set queued_limit=99999999999999999999 night", 18, "is too large for a number"),
    ("set history keep=1d", 18, "at least 336:00:00, not 24:00:00"),
    ("create probe x file=/x every=10ms", 30, "at least 0.1s, not 0.01s"),
    ("set usage of group d3 unlimited", 23, "unlimited"),
    ("set queue w resrve=0", 13, "'resrve' is not known here"),
    ("set queue w per_request cpu_limt=60", 25, "'cpu_limt' is not known here"),
    ("set usage of group", 19, "expected the name of a group"),
    ("set usage for group d3 12h", 11, "expected half_life, charge, payback, period, of"),
    *((f"set group d3 limit={text}", 20, "") for text in ("120%", "-5%", "much", "1e2", "")),
]  # fmt: skip


def test_what_a_site_cannot_live_without_is_never_taken_away():
    """A number that is declared without a lowest value may be none: the program must know what that is."""
    loose = {
        f"{kind}/{path}"
        for kind, each in CLASSES.items()
        for path, info in declared(each).items()
        if info.unit in ("count", "time", "size", "percent") and info.low is None and info.default is not None
    }
    have = {"server/script_limit", "default/cpu_limit", "class/do_not_disturb"}
    assert loose == have, "which all have an unlimited"


def test_no_error_offers_what_it_refuses():
    for kind, each in CLASSES.items():
        for path, info in declared(each).items():
            if info.unit in ("count", "number", "time", "size", "percent") and not info.can_be_none:
                assert "unlimited" not in what(info), (kind, path)
                with pytest.raises(BadValue):
                    check_value(info, None)


@pytest.mark.parametrize(("text", "column", "part"), WRONG, ids=[row[0] for row in WRONG])
def test_errors_name_the_place_and_what_would_be_right(text, column, part):
    error = error_of(text)
    assert part in str(error)
    assert (error.line, error.column) == (1, column)
    assert error.caret().splitlines()[1].index("^") == column - 1


def test_the_caret_stands_under_the_word_behind_tabs_and_on_continued_lines():
    error = error_of("set queue night \\\n\trun_limt=4")
    assert (error.line, error.column, error.expected[0]) == (2, 2, "run_limit")
    assert error.caret() == "\trun_limt=4\n\t^"


def test_an_error_inside_a_shift_names_its_own_line_and_the_file():
    text = 'define shift day when=("30 8 * * *")\n  start queue q\n\n  set shed_factor share 2\nend\n'
    with pytest.raises(ParseError) as caught:
        parse_text(text, "40-shifts.qmgr")
    assert str(caught.value).startswith("40-shifts.qmgr, line 4, column 7: ")


@pytest.mark.parametrize(
    "line", ["switch shift x", "shutdown", "set shift automatic", 'define shift b when=("1 1 * * *")']
)
def test_a_shift_cannot_hold_commands_that_would_change_shifts_or_only_read(line):
    error = error_of(f'define shift a when=("0 0 * * *")\nstop queue q\n{line}\nend')
    assert (error.line, error.column) == (3, 1)


def test_a_shift_without_end_is_told_at_its_beginning():
    assert error_of('stop queue q\ndefine shift a when=("0 0 * * *")\nstop queue q').line == 2
    with pytest.raises(ParseError, match="'end'"):
        parse_text('define shift a when=("0 0 * * *")')
    assert opens_block('def shift a when=("0 0 * * *")')
    assert not opens_block("define shift a")
    assert not opens_block("start queue a")


COMPLETIONS = [
    ("", set(VERBS)),
    ("set sched_factor s", {"share"}),
    ("set COM", {"complex"}),
    ("set complex prime-time ru", {"run_limit"}),
    ("set usage ", {"charge", "half_life", "of", "payback", "period"}),
    ("start queue night # ", set()),
    ("create batch_queue night prio", {"priority"}),
    ("schedule request 17 n", {"next", "now"}),
    ("help cre", {"create"}),
    ("set run_limit=", set()),
    ("set domain wide features=", {"all", "compact", "health", "shift_end", "swap", "("}),
    ("set domain wide features=(s", {"shift_end", "swap"}),
    ("set domain wide features=(swap, ", {"compact", "health", "shift_end", "swap", ")"}),
    ('set mail "op', set()),
]


@pytest.mark.parametrize(("text", "words"), COMPLETIONS)
def test_completions_are_the_keywords_that_may_stand_there(text, words):
    assert set(completions(text)) == words


def nodes(node: Node) -> list[Node]:
    return [node, *(inner for below in node.below.values() for inner in nodes(below))]


def test_every_keyword_resolves_from_its_documented_minimum():
    tables = [node.keywords for node in nodes(TREE)]
    tables += [keywords_of(kind) for kind in CLASSES]
    tables += [keywords_of("queue", branch) for branch in ("per_request", "per_process")]
    for table in tables:
        for keyword in table.values():
            found = resolve(keyword.name[: keyword.least], table.values())
            assert [one.means for one in found] == [keyword.means], keyword


def test_every_form_has_its_rule_and_its_help():
    whole = help_text()
    for form in FORMS:
        assert form.rule in RULES
        assert form.words[0] in VERBS
        assert VERBS[form.words[0]][0] in whole
        assert form.doc in help_text(form.words)
    assert "no command" in help_text(["frobnicate"])


def test_every_setting_can_be_set_and_is_explained():
    for kind, cls in CLASSES.items():
        for path, info in declared(cls).items():
            branch, _, name = path.rpartition("/")
            assert name in keywords_of(kind, branch)
            assert {row[0]: row[2] for row in attribute_rows(kind, branch)}[name] == info.doc
            assert len(info.doc) > 5


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind != "exit"])
def test_bounds_of_times_and_sizes_are_told_as_they_can_be_typed(kind):
    for path, info in declared(CLASSES[kind]).items():
        if info.unit not in ("time", "size") or not info.low:
            continue
        with pytest.raises(BadValue) as caught:
            check_value(info, info.low - 1)
        bound, given = str(caught.value).partition(" at least ")[2].split(", not ")
        read = parse_time if info.unit == "time" else parse_size
        assert (read(bound), read(given)) == (info.low, info.low - 1), path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (r"""("DOM\\ann")""", [r"DOM\ann"]), (r"""('DOM\ann')""", [r"DOM\ann"]),
        (r"(DOM\ann)", [r"DOM\ann"]), (r'DOM"\\"ann', [r"DOM\ann"]),
        ("(\"dom ain\"'s x',bob)", ["dom ains x", "bob"]), ('("a" "b"c)', ["a", "bc"]),
    ],
)  # fmt: skip
def test_a_name_has_exactly_its_bytes(text, names):
    [parsed] = parse_text(f"create group d1 members={text}")
    assert parsed.command.changes[0].value == {"members": names}


@pytest.mark.parametrize("text", [r'("DOM\ann")', r'("DOM\x")', r'"DOM\"', '"\\'])
def test_a_backslash_that_stands_for_something_else_is_refused(text):
    with pytest.raises(ParseError):
        parse_text(f"create group d1 members={text}")


def test_a_role_may_stand_behind_quotes():
    [parsed] = parse_text('set managers=("dom ain":o, bob":m")')
    assert parsed.command.changes[0].value == {"dom ain": "o", "bob": "m"}


WORDS = sorted({word for form in FORMS for word in form.words})
ODD = [
    "=", "(", ")", ",", '"', "\\", "#", "!", "\n", "all", "user", "end", "when=", "unlimited", "-1", "9" * 50,
    "1.5gw", "10:00", "a:m", "--next", "\0", "\x1b[31m", "é", "../x", "%s",
]  # fmt: skip
PIECES = st.sampled_from([*WORDS, *ODD]) | st.text(max_size=8)
TEXTS = st.lists(PIECES, max_size=14).map(" ".join) | st.text(max_size=120)


@settings(max_examples=examples(600))
@given(TEXTS)
def test_any_text_is_read_or_refused_at_a_place(text):
    try:
        found = parse_text(text)
    except ParseError as error:
        found, place = [], (error.line, error.column)
        error.caret()
    else:
        place = (1, 1)
    assert min(place) >= 1
    for each in found:
        if isinstance(each.command, Command):
            msgspec.json.encode(encode(each.command))


@pytest.mark.parametrize("text", ["(" * 100_000, '"' * 99_999, "set " * 50_000, "x" * 1_000_000])
def test_long_and_deep_texts_are_refused_in_short_words(text):
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert len(str(caught.value)) < 2_000
    assert len(caught.value.caret()) < 4_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below, max_size=3),
    max_leaves=6,
)
PARTS = (
    "queue", "global", "shift", "exit", "managers", "server", "group", "q", "*", "", "run_limit", "enabled",
    "when", "queued_limit", "per_request", "cpu_limit", "members", "privacy",
)  # fmt: skip
PATHS = st.lists(st.sampled_from(PARTS), max_size=4).map("/".join)


@given(st.sampled_from(("set", "add", "remove", "create", "delete")), PATHS, VALUES)
def test_any_change_of_the_settings_is_carried_out_or_a_bad_value(op, path, value):
    with contextlib.suppress(BadValue):
        apply_change(Settings(), Change(op, path, value))

"""Checks of a request's words, paths and amounts before a queue is chosen; changes by submit exits."""

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from nqspy.core import empty_gate, refusal_of
from nqspy.core.asked import too_wide
from nqspy.core.classes import objection, too_large
from nqspy.core.consumables import check_wanted
from nqspy.core.resource_health import check_needs
from nqspy.core.route import destination
from nqspy.engine.handlers.sizes import reshaped
from nqspy.model import indices
from nqspy.model.arrays import ArraySpec
from nqspy.model.errors import BadValue, Refusal, listed
from nqspy.model.ids import Instant, array_key
from nqspy.model.options import OPTIONS
from nqspy.model.output_paths import fill, streams
from nqspy.model.people import DEFAULT_GROUP, addresses_in, is_address
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, Spec, State, finite
from nqspy.model.shapes import MOST_RANKS
from nqspy.model.site import RequestCounts, Site
from nqspy.model.tree import declared
from nqspy.model.units import GREATEST, UNLIMITED, format_time
from nqspy.ports import CHANGEABLE, Exits, SubmitAnswer

NAME_MAX = 230
WORD_MAX = 1024
"""Most characters of an account, an address, an attribute."""
PATH_MAX = 4096
_EQUALS = ord("=")
STRING_MAX = (128 << 10) - 1
"""Bytes of an argument, or of a variable with its name: the kernel takes 128 KiB with the NUL behind it."""
START_MAX = (2 << 20) - (256 << 10)
"""Bytes of arguments and variables together: the kernel takes 2 MiB, and a job gets some from here."""
_EACH = 9
"""Bytes of an argument or variable in addition to its text: a NUL, and its place in a list."""
ADDRESSES_MAX = 20
"""Most people to get the mail of a request."""
ATTRIBUTES_MAX = 1_000
"""Most attributes of a request, without dependencies."""
AFTER = "after:"
"""Beginning of an attribute that is a dependency."""
FILE_NAME_MAX = 255
"""Most bytes of a file's name in Linux."""
LIMITS = {
    path: info.low or 0
    for path, info in declared(Queue).items()
    if path.startswith(("per_request/", "per_process/"))
}
"""Limits that a request may name for itself."""
LAST_DATE = 253_402_300_799_999
"""The end of the year 9999, ms since the epoch."""


def check_spec(site: Site, spec: Spec) -> None:
    """Raise Refusal unless the request's words, paths and amounts make sense on this machine."""
    name, output = spec.name, spec.output
    if not name or _size(name) > NAME_MAX or not name.isprintable() or "/" in name or " " in name:
        raise Refusal("bad_name", name=name[:40], most=NAME_MAX)
    named = (spec.workdir, spec.start_in, output.stdout, output.stderr, output.log_path)
    paths = [path for path in named if path is not None]
    for path in paths:
        if not path.startswith("/"):
            raise Refusal("bad_path", path=path[:80])
        if "\0" in path or "\n" in path:
            raise Refusal("bad_path_character", path=path[:80])
    if "\0" in "".join((*spec.args, spec.shell or "")):
        raise Refusal("nul_word")
    if spec.shell is not None and not spec.shell.startswith("/"):
        raise Refusal("bad_shell", shell=spec.shell[:40])
    _check_words(spec)
    for path in (spec.shell or "", *paths):
        if len(path) > PATH_MAX:
            raise Refusal("long_path", path=path[:40], most=PATH_MAX)
    seq = site.next_seq if spec.array is None else array_key(site.next_seq)
    for flag, path in streams(spec):  # the name of the file, its marks filled in
        file = max(fill(path, seq, spec, spec.queue, site.name).split("/"), key=_size)
        if _size(file) > FILE_NAME_MAX:
            raise Refusal("long_output", flag=flag, size=_size(file), most=FILE_NAME_MAX, name=file[:40])
    _check_ask(site, spec.ask, site.settings.queues.get(spec.queue))
    for name in ("chunks", "ranks", "cpus", "threads"):  # the job gets a file with so many lines
        value = getattr(spec.layout, name, None)
        if value is not None and not 0 <= value <= MOST_RANKS:
            raise Refusal("bad_amount", name=name, value=value)
    if spec.eligible is not None and not 0 <= spec.eligible <= LAST_DATE:
        raise Refusal("bad_date")
    for name, low, high in _RANGES:
        value = getattr(spec, name)
        if value is not None and not low <= value <= high:
            raise Refusal("out_of_range", name=name, value=value, low=low, high=high)
    if not 0 <= spec.umask <= 0o777:
        raise Refusal("bad_umask", umask=spec.umask)


def check_start(args: Sequence[str], environment: bytes) -> None:
    """Raise Refusal for arguments and variables with which no program can be started (execve(2))."""
    pairs = environment.split(b"\0")
    if unnamed := [pair for pair in pairs if _EQUALS not in pair and pair]:
        raise Refusal("bad_variable", word=_shown(unnamed[0]))
    too_long = [pair for pair in pairs if len(pair) > STRING_MAX] if len(environment) > STRING_MAX else []
    if too_long:
        name = _shown(too_long[0].partition(b"=")[0])
        raise Refusal("long_variable", name=name, size=len(too_long[0]), most=STRING_MAX)
    sizes = [len(word.encode("utf-8", "replace")) for word in args]
    for place, size in enumerate(sizes, start=1):
        if size > STRING_MAX:
            raise Refusal("long_argument", place=place, size=size, most=STRING_MAX)
    total = sum(sizes) + _EACH * (len(sizes) + len(pairs)) + len(environment)
    if total > START_MAX:
        raise Refusal("many_arguments", size=total >> 10, most=START_MAX >> 10)


def _shown(word: bytes) -> str:
    return word.decode("utf-8", "replace")[:80]


def check_class(site: Site, spec: Spec, groups: Collection[str] | None) -> None:
    """Raise Refusal for an unknown job class, or one not open to the request's owner in these Unix groups
    (None: the caller may give it any class)."""
    wrong = objection(site, spec.job_class, spec.owner, groups)
    if wrong is not None:
        raise wrong


def check_application(site: Site, spec: Spec, queue: str) -> None:
    """Raise Refusal for an application that can never start in its queue: a command waits for its start."""
    wrong = too_large(site, spec, queue)
    if wrong is not None:
        raise wrong
    never = empty_gate(site).never(Request(site.next_seq, spec, queue, State.QUEUED, site.at, site.at))
    if never is not None:
        raise Refusal("above_limit", reason=never.text)


def tidy_array(spec: ArraySpec | None) -> ArraySpec | None:
    """Return an array specification with its indices in order. Raises Refusal for bad indices or limit."""
    if spec is None:
        return None
    try:
        made = ArraySpec(indices.tidy(spec.indices), spec.limit)
    except BadValue as error:
        raise Refusal("bad_array", reason=error) from None
    if not made.indices:
        raise Refusal("empty_array")
    if made.limit is not None and made.limit < 1:
        raise Refusal("bad_array_limit", limit=made.limit)
    return made


def check_limits(site: Site, spec: Spec, queue: Queue | None) -> None:
    """Raise Refusal if a batch queue can never run a request; other queues, or none, are not checked."""
    wrong = refusal_of(site, spec, queue) if queue is not None and queue.kind == "batch" else None
    if wrong is not None:
        raise Refusal("above_limit", reason=wrong)


def routed(
    site: Site, spec: Spec, pipe: Queue, exits: Exits, groups: tuple[str, ...], now: Instant,
    coming: RequestCounts | None = None,
) -> str:  # fmt: skip
    """Return the queue in which a submission to a pipe queue ends up now; the pipe queue itself if it is
    routed later. ``coming``: requests of its list accepted so far, for quotas. Raises Refusal if no
    destination can ever take it."""
    target, objections = destination(site, spec, pipe, exits, groups, now, coming)
    if target is None and objections and not any(each.later for each in objections):
        text = "; ".join(each.text for each in objections)
        raise Refusal("no_destination", queue=pipe.name, reason=text)
    # A stopped pipe queue takes the request; it routes once it is started.
    return target if target is not None and pipe.started else pipe.name


def _check_words(spec: Spec) -> None:
    """Raise Refusal unless all other words, which are printed or passed on, are short and printable."""
    if len(spec.attributes) > ATTRIBUTES_MAX:
        notes = sum(not each.startswith(AFTER) for each in spec.attributes)
        if notes > ATTRIBUTES_MAX:
            raise Refusal("many_attributes", count=notes, most=ATTRIBUTES_MAX)
    layout, ask = spec.layout, spec.ask
    words: list[tuple[str, str | None]] = [
        *((name, getattr(spec, name)) for name in _NAMES),
        ("host", spec.host),
        ("mail address", spec.mail.to),
        ("request around", spec.within),
        ("layout", "" if layout is None else layout.text),
        ("placement", "" if layout is None else layout.place),
        *(("attribute", word) for word in spec.attributes),
        *(("resource", word) for word in (*ask.needs, *(name for name, _ in ask.others))),
    ]
    for what, word in words:
        if word and (len(word) > WORD_MAX or not word.isprintable()):
            raise Refusal("bad_word", what=what, word=word[:40], most=WORD_MAX)
    addresses = addresses_in(spec.mail.to) if spec.mail.to else ()
    if len(addresses) > ADDRESSES_MAX:
        raise Refusal("many_addresses", count=len(addresses), most=ADDRESSES_MAX)
    for address in addresses:
        if not is_address(address):
            raise Refusal("bad_address", address=address[:80])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _check_ask(site: Site, ask: Ask, queue: Queue | None) -> None:
    if ask.pes < 1:
        raise Refusal("no_pe")
    wrong = too_wide(site, queue.name if queue is not None and queue.kind == "batch" else None, ask.pes)
    if wrong is not None:
        raise Refusal("above_limit", reason=wrong.text)
    check_needs(site, ask.needs)
    check_wanted(site, ask.consumables)
    for name, value in ask.others:
        if name not in LIMITS:
            raise Refusal("no_such_limit", limit=name[:80])
        if 0 <= value < LIMITS[name]:
            raise Refusal("small_limit", limit=name.rpartition("/")[2], least=LIMITS[name], value=value)
    if 0 in (ask.cpu, ask.wall, ask.memory):
        what = "CPU time" if ask.cpu == 0 else "wall time" if ask.wall == 0 else "memory"
        raise Refusal("asks_nothing", what=what)
    if (guess := ask.best_guess) is not None and guess < 1:
        raise Refusal("bad_guess")
    if guess is not None and (limit := finite(ask.wall)) is not None and guess > limit:
        raise Refusal("guess_above_limit", guess=format_time(guess), limit=format_time(limit))
    amounts = (*zip(_AMOUNTS, _amounts_of(ask), strict=True), *ask.others)
    for name, amount in amounts:
        if amount is not None and not 0 <= amount <= GREATEST and amount != UNLIMITED:
            raise Refusal("bad_amount", name=name, value=amount)


def local_queue(site: Site, named: str) -> str:
    """Return the queue's name in ``queue@server``, or empty; the server must be this one. Raises Refusal."""
    queue, at, server = named.partition("@")
    if at and server not in (site.name, site.host, site.host.partition(".")[0], "localhost"):
        raise Refusal("other_server", server=server[:80], ours=site.name)
    return queue


_RANGES = [(o.path, o.low or 0, o.high) for o in OPTIONS if o.high is not None and "/" not in o.path]
_NAMES = [o.path for o in OPTIONS if o.unit == "name" and o.path not in ("name", "shell", "job_class")]
_AMOUNTS = [
    o.path.removeprefix("ask/")
    for o in OPTIONS
    if o.path.count("/") == 1
    and o.path.startswith("ask/")
    and o.unit not in ("name", "names", "amounts", "flag")
]
_amounts_of = attrgetter(*_AMOUNTS)


# ---------------------------------------------------------------- what a submit exit changes


def changed(site: Site, spec: Spec, answer: SubmitAnswer) -> Spec:
    """Return the submission as the exits changed it. Raises Refusal with their names if they refuse it, or if
    the change makes no sense; queue, limits and access are checked later as for any submission."""
    if answer.refusal is not None:
        raise Refusal("exit_refused", reason=answer.refusal, who=answer.who)
    changes = {CHANGEABLE[name].path: value for name, value in answer.changes.items() if name in CHANGEABLE}
    before, own = spec, dict[str, Any]()
    ask, output = dict[str, Any](), dict[str, Any]()
    for path, value in changes.items():
        head, _, rest = path.partition("/")
        part = {"ask": ask, "output": output}.get(head, own)
        part[rest or head] = value
    paths = {
        name: path if path.startswith("/") else f"{spec.workdir.rstrip('/')}/{path}"
        for name, path in output.items()
    }
    # With a named path the file is not kept at home and not joined with the other.
    apart = {"keep_stdout": False} if "stdout" in paths else {}
    apart |= {"keep_stderr": False, "join": False} if "stderr" in paths else {}
    written = replace(spec.output, **paths, **apart)
    spec = replace(spec, **own, ask=replace(spec.ask, **ask), output=written)
    try:
        spec = reshaped(site, before, spec, changes)
        check_spec(site, spec)
        if "group" in own and spec.group not in (*site.settings.groups, DEFAULT_GROUP):
            raise Refusal("group_of_exit", group=spec.group, known=listed(site.settings.groups))
    except Refusal as refusal:
        raise by_exit(refusal, answer.who) from None
    return spec


def by_exit(refusal: Refusal, who: str) -> Refusal:
    """Return the refusal of a submission that user exits changed, with their names."""
    return Refusal("by_exit", reason=refusal, who=who)

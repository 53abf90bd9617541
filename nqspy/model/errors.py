"""Exceptions with one clear line for people, and the catalogue of refusals: the one place of their codes,
exit statuses and sentences.

``code`` is the stable word for programs, ``status`` the exit status of the command line (PBS's numbers). Code
raises a refusal by name, with the values of its sentence: ``Refusal("unknown_queue", queue="nope")``. A
feature declares its own refusals in its file (`declare_refusals`). ``reason`` is a quoted text; if it is
another `Refusal`, code and status are those of that one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from nqspy.model.amounts import NO_SHELL


class NqspyError(Exception):
    """Base of all errors of nqspy; its text is one line: what is wrong and what would be right."""


class Refusal(NqspyError):
    """A well-formed command that may not be done (no such queue, no right, above a limit). ``kind``: its name
    in `REFUSALS`; ``values``: for the gaps of its sentence, which `str` fills. ``code``: a stable word for
    programs; ``status``: exit status of the command. Both are those of ``reason`` if that is a Refusal."""

    def __init__(self, kind: str, **values: Any) -> None:
        super().__init__(kind)
        self.kind, self.values = kind, values
        quoted = values.get("reason")
        origin = quoted if isinstance(quoted, Refusal) else REFUSALS[kind]
        self.code: str = origin.code
        self.status: int = origin.status

    def __str__(self) -> str:
        return REFUSALS[self.kind].sentence.format_map(self.values)

    def as_message(self) -> dict[str, Any]:
        """Return what a program gets as JSON: ``text`` (the sentence), ``code`` and ``status``."""
        return {"text": str(self), "code": self.code, "status": self.status}

    @classmethod
    def received(cls, data: Mapping[str, Any]) -> "Refusal":
        """Return a refusal from the text, code and status that a daemon sent; its kind is not known here."""
        refusal = cls("refused", reason=data["text"])
        refusal.code, refusal.status = data["code"], data["status"]
        return refusal


def listed(names: Iterable[str]) -> str:
    """Return names as a sentence lists them: ``a, b, c``, or ``none``."""
    return ", ".join(names) or "none"


def as_refusal(error: NqspyError) -> Refusal:
    """Return an error as a refusal: itself if it is one, else a refusal "not done" that quotes it."""
    return error if isinstance(error, Refusal) else Refusal("not_done", reason=error)


class BadValue(NqspyError):
    """A value that cannot be read (size, time, count, name); the text names it and what is expected."""


class Unreachable(NqspyError):
    """No daemon answers in this home, or the connection broke before the answer came."""


class BrokenSite(NqspyError):
    """An invariant of the site does not hold: an error in nqspy, never the user's."""


_MINE = "Unauthorized Request: "
_FULL = "Maximum number of jobs already in queue: "
_NOT_NOW = "Request invalid for state of job {id}: it is {state}, "

_GROUPS: dict[tuple[str, int], dict[str, str]] = {
    # ------------------------------------------------------------ requests, queues and other objects
    ("bad_id", 1): {
        "bad_id": "illegally formed job identifier: {text}",
        "bad_range": "illegally formed job identifier: {text}; write a range of request numbers"
        " like 3-9, at most {most:,} of them",
        "bad_indices": "illegally formed job identifier: {reason}",
        "many_parts": "{id}: {count:,} of its indices would become separate requests; a command may separate"
        " at most {most:,}. Name the whole array, or fewer indices",
        "many_pieces": "{id}: its indices would form more than {most:,} ranges like 20-30:5;"
        " name the whole array, or neighbouring indices",
        "many_indices": "illegally formed job identifier: {text} names more than {most} indices;"
        " write {whole} for all of them",
    },
    ("bad_array", 166): {
        "bad_array": "array: {reason}",
        "empty_array": "array: it has no index; write indices like 1-10",
        "not_an_array": "{id} is not an array; name an array like 17[]",
        "bad_array_limit": "array: the number of indices that run at a time must be at least 1, not {limit}",
    },
    ("has_ended", 35): {
        "has_ended": "Job has finished {id}",
        "is_history": "{id} Job has finished, use -x or -H to obtain historical job information",
        "wrote_nothing": "Job has finished {id}; it was deleted before it wrote anything",
    },
    ("record_stays", 0): {
        "record_stays": "Job has finished {id}; its record stays for reports and dependencies",
    },
    ("unknown_request", 153): {
        "unknown_request": "Unknown Job Id {id}",
        "no_such_index": "Unknown Job Id {id}: it has no index {some}, only {known}",
        "none_chosen": "no request matches: {what}",
        "hidden_since": "the requests have ended; since settings were changed you may not see how",
    },
    ("unknown_server", 160): {
        "unknown_server": "cannot connect to server {server} (errno=15008): this is {name}"
    },
    ("unknown_node", 1): {"unknown_node": "Unknown node {node}; there is {name}"},
    ("unknown_queue", 170): {
        "unknown_queue": "Unknown queue {queue}",
        "no_such_queue": "Unknown queue {queue}; queues: {known}",
        "no_queue_of_order": "{cmd}: there is no queue {queue}",
    },
    ("no_default_queue", 170): {
        "no_default_queue": "no queue was named and there is no default queue; name one of: {known}",
        "no_mpprun_queue": "there is no queue for applications; a manager sets one with"
        " set default mpprun queue QUEUE",
    },
    ("other_server", 1): {
        "other_server": "cannot connect to server {server}: this server is {ours}; leave @{server} out",
    },
    ("unknown_object", 170): {"unknown_object": "there is no {what} {name}"},
    ("unknown_object", 1): {"other_host": "host {host} is not served here; this is {name}"},
    ("unknown_object", 2): {
        "not_in_night": "group {group} had no requests in the night of {day}; groups that had some: {known}",
        "empty_night": "group {group} had no requests in the night of {day}, nor had any other group;"
        " name another night",
    },
    ("unknown_group", 170): {"unknown_group": "there is no group {group}; groups: {known}"},
    ("unknown_group", 166): {"group_of_exit": "there is no group {group}; groups: {known}"},
    ("unknown_shift", 1): {"unknown_shift": "there is no shift {shift}; shifts: {known}"},
    ("unknown_user", 1): {
        "unknown_user": "there is no user {user}",
        "nameless": "the user database has no entry for uid {uid}; submit again when the entry exists",
    },
    # ------------------------------------------------------------ rights
    ("not_permitted", 159): {
        "needs_role": _MINE + "{what} needs {role}; {user} is {own}",
        "not_owner": "Unauthorized Request {id}: only its owner or an operator may {what} it",
        "not_owned_by": "{id} is not owned by {owner}",
        "hold_needs_operator": _MINE + "hold type {letter} needs an operator",
        "not_your_hold": "Unauthorized Request {id}: hold {letters} is not yours to release",
        "submit_as_root": _MINE + "only root may submit as root",
        "act_as_root": _MINE + "{what} of root's requests needs root",
        "guarded_setting": _MINE + "{change} needs root or the owner of the home: {why}",
        "night_of_others": _MINE + "the night's report is for operators and members of departments",
        "no_member": "{user} is not a member of group {group}",
        "stays_its_owners": "Unauthorized Request {id}: its owner stays {owner}; {user} may submit a new one",
        "raised_by_operators": "Unauthorized Request {id}: its owner may only lower the wall time while it"
        " runs, from {limit}; an operator may raise it",
    },
    # ------------------------------------------------------------ the state of a request
    ("wrong_state", 168): {
        "not_waiting": _NOT_NOW + "only a waiting request can be {done}",
        "not_held": _NOT_NOW + "it is not held",
        "not_started": _NOT_NOW + "only a started request can be run again",
        "not_running": _NOT_NOW + "only a running request can be suspended",
        "not_suspended": _NOT_NOW + "it is not suspended",
        "started": _NOT_NOW + "end it with -k, or with a signal such as -TERM",
        "deleted_not_rerun": _NOT_NOW + "and is being deleted",
        "in_delivery": _NOT_NOW + "its output is being delivered",
        "is_to_rerun": _NOT_NOW + "and it will run again ({ending})",
        "in_deletion": _NOT_NOW + "and it is being deleted ({ending})",
        "no_pe_free": _NOT_NOW + "it needs {wanted} to resume, and {free} free",
        "resource_broken": _NOT_NOW + "and {reason}",
        "output_of_indices": "{id} is an array; each index has its own output: name one, like {number}[3]",
        "no_output_yet": "{id} has not started; there is no output yet",
        "no_such_attempt": "{id} has no output of attempt {attempt}; {known}",
        "no_signal_now": _NOT_NOW + "only a running request can receive a signal",
        "no_message_now": _NOT_NOW + "only a running request can receive a message",
        "whole_array": "Request invalid for state of job {id}: an array has one place in its queue;"
        " name the whole array",
        "other_queue": "Request invalid for state of job {id}: it waits in queue {queue},"
        " {other} in queue {there}; both must be in one queue",
        "other_rank": "Request invalid for state of job {id}: an operator has moved it or {other} to another"
        " place (schedule request)",
    },
    ("cannot_alter", 167): {
        "while_running": "Cannot modify attribute while job running {id}: {what}; running, it may change"
        " only its wall time, best guess, name, output, mail and rerunnable",
        "written_in_place": "Cannot modify attribute while job running {id}:"
        " its {stream} is written in place",
    },
    ("not_rerunnable", 190): {"not_rerunnable": "job is not rerunnable {id}"},
    # ------------------------------------------------------------ what queues take
    ("queue_disabled", 173): {"queue_disabled": "Queue is not enabled: {queue}"},
    ("no_access", 174): {"no_access": "Access to queue is denied: {queue}"},
    ("domain_closed", 174): {"domain_closed": "{queue}: {reason}"},
    ("pipe_only", 174): {"pipe_only": "queue {queue} accepts requests from pipe queues only"},
    ("above_limit", 188): {
        "above_limit": "{reason}",
        "no_destination": "no destination of {queue} accepts the request: {reason}",
    },
    ("queue_full", 1): {
        "queue_full": "queue {queue} is full: it holds at most {most} requests, its run limit",
        "queue_too_small": "queue {queue} holds at most {most} requests, its run limit;"
        " this array counts as {number}",
    },
    ("queued_limit", 198): {
        "user_queued_limit": _FULL + "{user} has {have} of at most {most} requests {there}"
        " (set {where} user_queued_limit={most}){asked}",
        "many_waited_for": _FULL + "commands wait for {most:,} requests of {user}, the most allowed",
        "queued_limit": _FULL + "there are {have} of at most {most} requests {there}"
        " (set {where} queued_limit={most}){asked}",
    },
    ("user_spool", 198): {
        "user_spool": "{user} has {have:,} KiB of scripts, environments and other text of waiting and ended"
        " requests; {new:,} KiB more would exceed the limit of {most:,} KiB"
        " (set server user_spool={wish})",
    },
    ("no_room", 1): {
        "no_room": "nothing was changed: the disk with the database is full; make room and try again",
    },
    ("too_large", 1): {
        "script_too_large": "the script is larger than {most} (set server script_limit)",
        "environment_too_large": "the environment is larger than {most} MiB",
        "long_variable": "variable {name} has {size:,} bytes with its name; at most {most:,} are allowed",
        "long_argument": "argument {place} has {size:,} bytes; at most {most:,} are allowed",
        "many_arguments": "arguments and environment have {size:,} KiB; at most {most:,} KiB are allowed",
    },
    ("answer_too_large", 2): {
        "answer_too_large": "the answer would be larger than {most} MiB; name fewer jobs,"
        " or leave out ended jobs",
    },
    ("too_many", 206): {"too_many_named": "a list may have at most {most} dependencies and attributes"},
    ("too_many", 1): {
        "many_attributes": "a request may have at most {most:,} attributes, not {count:,}",
        "too_many_requests": "one message names at most {most} requests, not {count}",
        "too_many_words": "{count} requests in one message have at most {most} words",
    },
    ("empty_list", 1): {"empty_list": "the list is empty; name at least one request"},
    ("key_reused", 1): {"key_reused": "key {key} was already used for another submission; choose a new one"},
    # ------------------------------------------------------------ what a request says of itself
    ("bad_name", 1): {
        "bad_name": "{name!r} is not a request name; write up to {most} printable bytes without blank or /",
    },
    ("bad_dependency", 206): {
        "too_many_awaited": "--after: a request may wait for at most {most} others",
        "so_many_awaited": "--after: a request may wait for at most {most} others, not {count}",
        "bad_dependency": "--after: {text!r} is not a dependency;"
        " write it like 17, 17:ok, 17:any, 17:fail, 17:start or 17[]:each",
        "bad_place": "a request can wait only for earlier requests of its list,"
        " not for place {place} (the first is 0)",
        "unknown_prerequisite": "--after: Unknown Job Id {id}",
        "bad_prerequisite": "--after: {name!r} is not a request identifier; write it like 17",
        "each_of_arrays": "--after {id}:each: only an array can wait for an array index by index",
        "unequal_indices": "--after {id}:each: {id} has the indices {theirs}, this array has {own};"
        " they must be equal",
    },
    ("bad_value", 165): {"bad_signal": "Unknown/illegal signal name: {signal}"},
    ("bad_value", 166): {
        "bad_key": "a key has up to {most} printable characters",
        "bad_path": "{path!r} is not an absolute path; begin it with /",
        "bad_path_character": "{path!r} holds a NUL character or a line break, which a path cannot",
        "long_path": "{path!r}... is too long; a path has at most {most} characters",
        "long_output": "{flag}: {name!r}... has {size} bytes; a file name has at most {most}",
        "nul_word": "arguments and shell cannot hold a NUL character",
        "bad_variable": "{word!r} in the environment is not NAME=value",
        "bad_shell": NO_SHELL,
        "bad_date": "the start date (-a) must be in the years 1970 to 9999",
        "out_of_range": "{name} must be from {low} to {high}, not {value}",
        "bad_umask": "umask must be from 0 to 777, not {umask:o}",
        "bad_word": "{what} {word!r} must be one word of up to {most} printable characters",
        "bad_address": "{address!r} is not a mail address; write a local user's name or NAME@DOMAIN",
        "many_addresses": "a request may mail to at most {most} addresses, not {count}",
        "no_pe": "a request needs at least 1 PE",
        "no_such_limit": "{limit!r} is not a limit of a request; write it like per_request/cpu_limit",
        "small_limit": "{limit} must be at least {least}, not {value}",
        "asks_nothing": "a request with no {what} cannot run; ask for more, or leave the limit to the queue",
        "bad_guess": "a best guess must be a run time, such as best_guess=1:30:00",
        "no_such_class": "there is no job class {name}; job classes: {known}",
        "class_too_small": "a request of job class {name} can never have {pes} PEs, at most {most}",
        "class_not_open": "job class {name} is not open to {owner}; see show class {name}",
        "guess_above_limit": "the best guess {guess} is above the wall limit {limit}; guess less, or ask for"
        " more wall time",
        "bad_amount": "{name} must be from 0 upward or unlimited, not {value}",
        "bad_hold": "hold type {letter!r} is unknown; write letters of u, o, s, or n alone",
        "bad_line": "a message must be one line of 1 to {most} printable characters",
        "two_requests": "name exactly two requests to exchange, not {count}",
        "not_modifiable": "{path} of a request cannot be modified",
        "bad_modification": "{value!r} is not a valid {name} of a request",
        "bad_use": "{value} ms is not a use of a group; write 0 to {most} ms",
        "bad_until": "until= of switch shift must be in the future and at most 366 days ahead",
        "bad_next": "next must be a time of at most 366d, in ms",
        "many_switches": "there are more than {most:,} switches until then; choose a shorter time",
        "bad_setting": "{reason}",
        "not_heeded": "{setting} has no effect in queue {queue}, which is a {sort} queue",
        "no_setting": "queues.d may contain only settings, not {cmd}",
        "in_file": "{where}: {reason}",
    },
    ("bad_value", 2): {
        "bad_mode": "{mode!r} is not a way to stop; choose leave, drain or requeue",
        "lines_of_shift": "the lines of a shift cannot be set so; send define shift in a qmgr message",
        "bad_form": "qstat has no form {form!r}",
        "bad_format": "there is no format {form!r}; formats: {known}",
        "bad_criterion": "illegal -{option} value {value!r}: {wanted}",
        "bad_state": "there is no state {word}; states: {known}",
        "night_to_come": "the night of {day} has not begun: it is {now}",
        "night_too_early": "there is no night of {day}: the journal begins on {begin}",
    },
    ("bad_value", 1): {
        "not_done": "{reason}",
        "not_latin": "the {what} must be sent as Latin-1 text, one character for each byte",
    },
    ("unreadable", 1): {"no_script": "{path}: no such script"},
    # ------------------------------------------------------------ settings as a whole
    ("bad_settings", 166): {
        "bad_settings": "{reason}",
        "bad_shift": "shift {shift}: {reason}",
        "group_is_parent": "group {group} is the parent of {below}; delete or move the groups below it first",
        "group_has_requests": "group {group} still has requests ({count}); they must end or be deleted first",
        "pe_is_held": "PE {pe} of domain {domain} is held by {holder}; only a free PE can change its domain",
        "pe_has_holders": "domain {domain}: PE {pe} has more holders ({count}) than depth={depth};"
        " let one of them end first",
        "queue_holds_pes": "{held} PEs of domain {domain}; stop the queue and let them end first",
    },
    # ------------------------------------------------------------ user exits
    ("bad_exit", 1): {
        "bad_exit": "{reason}; the exits loaded before stay in force",
        "bad_exits": "{reason} (and {more} more: nqspy exits check); the exits loaded before stay in force",
    },
    ("exit_refused", 1): {"exit_refused": "{reason} (exit {who})"},
    ("no_estimate", 1): {"no_estimate": "{reason}"},
    # ------------------------------------------------------------ messages, and the daemon itself
    ("bad_message", 2): {
        "bad_message": "bad {cmd} message: {error}",
        "bad_text": '"text" must be the name of a form',
        "bad_instant": '"{field}" must be an instant in ms, not {value!r}',
    },
    ("unknown_command", 2): {"unknown_command": "there is no command {cmd!r} here"},
    ("not_offered", 1): {"not_offered": "{cmd} is not offered here"},
    ("internal", 1): {
        "internal": "internal error; the daemon's log has it",
        "internal_error": "internal error: {error}; the daemon's log has it",
    },
    ("busy", 1): {"busy": "{reason}"},
    ("not_committed", 1): {"not_committed": "{reason}"},
    # ------------------------------------------------------------ refusals of others
    ("refused", 1): {
        "refused": "{reason}",
        "in_line": "line {line}: {reason}",
        "by_exit": "{reason} (as changed by exit {who})",
    },
}


class RefusalKind(Struct, frozen=True):
    """Common part of all refusals of one kind: code, exit status, sentence with its values in braces."""

    code: str
    status: int
    sentence: str


REFUSALS: dict[str, RefusalKind] = {}
"""All kinds of refusals by name."""


def declare_refusals(code: str, status: int, sentences: dict[str, str]) -> None:
    """Add a feature's refusals to `REFUSALS`: sentences by name. Raises ValueError for a name that exists."""
    for kind, sentence in sentences.items():
        if kind in REFUSALS:
            raise ValueError(f"there is a refusal {kind} already")
        REFUSALS[kind] = RefusalKind(code, status, sentence)


for _key, _kinds in _GROUPS.items():
    declare_refusals(*_key, _kinds)

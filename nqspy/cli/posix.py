"""Errors of a submission with PBS's texts and statuses (pbs-clients.md 1, 3). Loaded only when used."""

from nqspy.cli.fast import Failure, Given
from nqspy.cli.resources import KNOWN, WrongResource

MESSAGES = {
    153: "Unknown Job Id",
    159: "Unauthorized Request",
    166: "Illegal attribute or resource value",
    168: "Request invalid for state of job",
    170: "Unknown queue",
    173: "Queue is not enabled",
    174: "Access to queue is denied",
    187: "Unknown resource",
    188: "Job violates queue and/or server resource limits",
    198: "Maximum number of jobs already in queue",
    206: "Invalid Job Dependency",
}
"""Exit status -> PBS's text for it."""
_MOST_SHOWN = 200
"""Most characters of a wrong value in an error."""


def failure(given: Given, error: Exception) -> Failure:
    """Return the failure for a value that cannot be read, in PBS's words for a directive or an option."""
    text = f"{given.place}{given.flag}: {error}"
    if isinstance(error, WrongResource):
        status = 187 if error.unknown else 166
        text = text.replace(f"unknown resource {error.name}; ", "")
        return Failure(f"{MESSAGES[status]} Resource_List.{error.name} ({text})", status)
    if given.place:
        words = f"{given.flag} {given.value}".rstrip()
        return Failure(f"directive error: {words} ({text})")
    value = given.value if len(given.value) <= _MOST_SHOWN else f"{given.value[:_MOST_SHOWN]}..."
    return Failure(f"illegal {given.flag} value {value!r}: {error}", 2)


def unknown(text: str, listed: dict[str, object], pbs: bool, slurm: bool) -> str:
    """Return the daemon's error about an unknown consumable: for ``slurm`` with the option in ``listed`` that
    named it; else, for ``pbs`` in PBS's words, with the resources that exist at every site."""
    head, words, rest = text.rstrip().partition("unknown resource ")
    if slurm:
        given = listed.get(rest.partition(";")[0])
        return f"{given.place}{given.flag} {given.value}: {text}" if isinstance(given, Given) else text
    words = f"{MESSAGES[187]} Resource_List." if pbs else words
    return f"{head}{words}{rest}; resources: {' '.join(KNOWN)}"

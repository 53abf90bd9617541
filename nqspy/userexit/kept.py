"""Memory that outlives the process in which exits run: where they failed and what they answered."""

from msgspec import Struct

from nqspy.model.ids import Instant

Named = int | tuple[str, str] | None
"""A subject as it is written down."""


class Kept(Struct):
    """Memory of exits over their process: ``files``: content hash of each when this was so; rows
    of failures and what is not asked about again (``[exit, hook, subjects]``, ``[exit, hook, subject, at,
    text]``), the latest answers (``[request, exit, hook, at, answer, error]``). ``owners``: those of the
    subjects of each row; ``resting``: owners with requests that are not asked about, and since when."""

    files: dict[str, str]
    rows: list[tuple[str, str, list[Named]]]
    spared: list[tuple[str, str, Named, int, str]]
    answers: list[tuple[int, str, str, int, str | None, str | None]]
    owners: list[list[str]]
    resting: list[tuple[str, str, str, int]]


class Spare(Struct, frozen=True):
    """Subject that an exit died on: it is not asked about that for a while."""

    exit: str
    hook: str
    subject: Named
    at: Instant
    text: str


class OwnerRest(Struct, frozen=True):
    """Owner of requests that an exit died on more than once: it is not asked about these for a while."""

    exit: str
    owner: str
    at: Instant

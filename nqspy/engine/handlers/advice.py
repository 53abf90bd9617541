"""Warnings for people at a terminal about requests that were accepted but are probably not meant so; a part
of the answer to a submission."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import may_see
from nqspy.model.ids import Seq
from nqspy.model.output_paths import files, of_all_indices
from nqspy.model.people import Caller
from nqspy.model.requests import Request, Spec
from nqspy.model.site import Site
from nqspy.model.texts import some_of

MOST = 20
"""Most warnings of one submission; the others are counted."""
NAMED = 3
"""Most requests that a warning names; the others are counted."""
EXAMINED = 100
"""Most requests with the same output file that are examined."""


def advice(tx: Transaction, rows: Sequence[tuple[Seq, Spec, str]], caller: Caller) -> list[str]:
    """Return warnings about accepted requests (number, specification, queue), each once, at most `MOST`."""
    found = dict.fromkeys((*_accounts(tx, [spec for _, spec, _ in rows]), *_outputs(tx, rows, caller)))
    lines = list(islice(found, MOST))
    return [*lines, f"and {len(found) - MOST} more warnings"] if len(found) > MOST else lines


def _accounts(tx: Transaction, specs: Iterable[Spec]) -> Iterator[str]:
    """Yield warnings about ``-A`` with a name that is no group of the owner."""
    groups = tx.site.settings.groups
    for owner, account, group in dict.fromkeys((s.owner, s.account, s.group) for s in specs):
        if account is None or (account in groups and owner in groups[account].members):
            continue
        own = [name for name, each in groups.items() if owner in each.members]
        theirs = f"{owner} is in {', '.join(own)}" if own else f"{owner} is in no group"
        if account in groups:
            yield f"-A {account}: {owner} is not a member of that group; it is charged anyway ({theirs})"
        else:
            yield f"-A {account} is not a group and is only noted; group {group} is charged ({theirs})"


def _outputs(tx: Transaction, rows: Sequence[tuple[Seq, Spec, str]], caller: Caller) -> Iterator[str]:
    """Yield warnings about files that several requests write."""
    written: dict[str, list[Seq]] = {}
    for seq, spec, queue in rows:
        if spec.output.stdout is None and spec.output.stderr is None:
            continue
        if tx.site.settings.server.output_clash == "overwrite":
            for file in sorted(of_all_indices(seq, spec, queue)):
                name = tx.site.id_of(seq)
                yield f"all indices of {name} overwrite {file}; write %a in the name to separate them"
        for file in files(seq, spec, queue):
            written.setdefault(file, []).append(seq)
    mine = {seq for seq, _, _ in rows}
    for file, seqs in written.items():
        fellows = islice(tx.site.writers.get(file, {}), EXAMINED)
        sees, requests = partial(may_see, tx.site.settings, caller), tx.site.requests
        others = [seq for seq in fellows if seq not in mine and sees(requests[seq].spec)]
        if others or len(seqs) > 1:
            whose = names(tx.site, [*others, *seqs] if len(seqs) > 1 else others)
            yield f"{file} is also the output of {whose}; write %j in the name to separate them"


def shared(site: Site, request: Request, sees: Callable[[Spec], bool]) -> str:
    """Return as text the output files of a request that others write too, with these requests (only those for
    which ``sees`` is true); empty: none."""
    found = []
    for file in files(request.seq, request.spec, request.queue, site.name):
        fellows = islice(site.writers.get(file, {}), EXAMINED)
        others = [seq for seq in fellows if seq != request.seq and sees(site.requests[seq].spec)]
        if others:
            found.append(f"{file} (also {names(site, others)})")
    return "; ".join(found)


def names(site: Site, seqs: Sequence[Seq], most: int = NAMED) -> str:
    """Return the identifiers of the first ``most`` requests as text, and how many more there are."""
    return some_of(seqs, most, site.id_of)

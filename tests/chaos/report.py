"""What a run has shown, for people."""

from chaos.ledger import Ledger

_MOST = 5


def report(seed: int, ledger: Ledger) -> str:
    """Counts, verdict, and the stories of what went wrong."""
    counts = ledger.counts
    verdict = (
        "nothing lost, nothing run twice" if not ledger.violations else f"{len(ledger.violations)} BROKEN"
    )
    lines = [f"seed {seed}: {verdict}; {counts['seconds']} s, {counts['restarts']} starts of the daemon"]
    faults = {k.removeprefix("fault "): n for k, n in counts.items() if k.startswith("fault ")}
    refused = sum(n for k, n in counts.items() if k.startswith("refused "))
    ended = {k.removeprefix("ended "): n for k, n in counts.items() if k.startswith("ended ")}
    attempts = {k.removeprefix("attempts "): n for k, n in counts.items() if k.startswith("attempts ")}
    orders = {k: n for k, n in counts.items() if k.endswith((" done", " not done"))}
    lines.append(f"  faults     {_list(faults)}")
    lines.append(
        f"  injected   {counts['injected errors']} write errors; {counts['backups']} backups made meanwhile"
    )
    lines.append(
        f"  submitted  {counts['acknowledged']} acknowledged, {counts['refused']} refused, "
        f"{counts['unknown']} unknown; {refused} refusals of all kinds"
    )
    lines.append(f"  orders     {_list(orders)}")
    lines.append(
        f"  ran        {counts['ran']} begun, {counts['adopted']} adopted, {counts['requeued']} requeued, "
        f"{counts['attempts void']} never begun, {counts['attempts lost']} ends lost"
    )
    lines.append(f"  attempts   {_list(attempts)}")
    lines.append(
        f"  ended      {_list(ended)}, {counts['dependencies never met']} waited for what never came"
    )
    kinds: dict[str, int] = {}
    for violation in ledger.violations:
        kinds[violation.what] = kinds.get(violation.what, 0) + 1
    lines.append(
        f"  promises   {counts['starts promised']} promised starts, {counts['promises kept']} kept in time, "
        f"{counts['promises late']} late and told why"
    )
    lines.append(f"  rules      {counts['passes judged by the rules']} passes judged by the manual's rules")
    lines.append(f"  spool      {counts['outputs of lost ones kept']} outputs of lost requests kept")
    lines.append(f"  broken     {_list(kinds) or 'none'}")
    stories = ledger.stories
    shown: dict[str, int] = {}
    for violation in ledger.violations:
        shown[violation.what] = shown.get(violation.what, 0) + 1
        if shown[violation.what] <= _MOST:
            lines.append(f"! {violation.what} {violation.token}: {violation.text}")
            lines += [stories[violation.token]] if violation.token in stories else []
    return "\n".join(lines)


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))

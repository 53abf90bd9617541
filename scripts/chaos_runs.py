"""Injects faults by a seed into a daemon under load, for as long as you like; the report says what was
preserved."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from chaos import attacks, gang_run
from chaos.run import storm


def main() -> int:
    """Print a report for each seed; exit status 1 if anything was broken."""
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=["gang", "slots"],
        help="gang: applications by class, kills alone; slots: they share PEs in turns",
    )
    parser.add_argument("--minutes", type=float, help="length of each run (1.5; gang: 30)")
    parser.add_argument("--seed", type=int, nargs="*", default=[1], help="seeds, a run each (1)")
    parser.add_argument("--clients", type=int, default=6, help="clients at a time (6)")
    parser.add_argument("--faults", default="", help="only these, e.g. killed,locked")
    parser.add_argument(
        "--keep", type=Path, help="a folder where homes and marks stay (they are cleared away)"
    )
    parser.add_argument("--report", type=Path, help="a file that gets the reports too")
    parser.add_argument("--attacks", nargs="*", metavar="PART", help="attacks instead: all, or these parts")
    parser.add_argument("--tries", type=int, default=1, help="how often each attack is tried (1)")
    options = parser.parse_args()
    if options.attacks is not None:
        try:
            return attacks.main(options.attacks, options.tries)
        except ValueError as error:
            parser.error(str(error))
    broken = False
    for seed in options.seed:
        with tempfile.TemporaryDirectory(prefix="nqspy-chaos-") as folder:
            text, good = _run(options, seed, options.keep / str(seed) if options.keep else Path(folder))
        print(text, flush=True)
        broken = broken or not good
        if options.report is not None:
            with open(options.report, "a") as file:
                file.write(text + "\n")
    return 1 if broken else 0


def _run(options: argparse.Namespace, seed: int, folder: Path) -> tuple[str, bool]:
    """Make one run; return its report, and True if all was preserved."""
    say: Callable[[str], None] = lambda text: print(f"  {text}", file=sys.stderr, flush=True)  # noqa: E731
    if options.what:
        slots = options.what == "slots"
        ledger = gang_run.storm(seed, 60 * (options.minutes or 30), folder, say, slots=slots)
    else:
        only = tuple(filter(None, options.faults.split(",")))
        ledger = storm(seed, 60 * (options.minutes or 1.5), folder, say, options.clients, only)
    return ledger.report(seed), not ledger.violations


if __name__ == "__main__":
    sys.exit(main())

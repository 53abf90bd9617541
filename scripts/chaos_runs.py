"""Faults by a seed against a daemon under load, for as long as one likes; the report says what was kept."""

import argparse
import sys
import tempfile
from pathlib import Path

from chaos import attacks
from chaos.report import report
from chaos.run import Plan, storm


def main() -> int:
    """Prints a report for each seed; exit status 1 when anything was broken."""
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.5, help="length of each run (1.5)")
    parser.add_argument("--seed", type=int, nargs="*", default=[1], help="seeds, a run each (1)")
    parser.add_argument("--clients", type=int, default=6, help="clients at a time (6)")
    parser.add_argument("--faults", default="", help="only these, e.g. killed,locked")
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
        plan = Plan(
            seed, 60 * options.minutes, options.clients, tuple(filter(None, options.faults.split(",")))
        )
        with tempfile.TemporaryDirectory(prefix="nqspy-chaos-") as folder:
            ledger = storm(plan, Path(folder), lambda text: print(f"  {text}", file=sys.stderr, flush=True))
        text = report(seed, ledger)
        print(text, flush=True)
        broken = broken or bool(ledger.violations)
        if options.report is not None:
            with open(options.report, "a") as file:
                file.write(text + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compares decisions of two checkouts, or of this one and the frozen ones, on the worlds of the corpus."""

import argparse
import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
FROZEN = HERE / "tests" / "corpus" / "worlds.tsv"
PARTS = 40
"""Worlds that one process simulates."""
_BEGIN = "import json, sys; from corpus.decisions import *; seeds = list(map(int, sys.argv[1:])); "
_DIGESTS = _BEGIN + "print(json.dumps({seed: digest(decisions(seed)) for seed in seeds}))"
_PASSES = _BEGIN + "print(*decisions(*seeds), sep=chr(10))"
_WORLD = _BEGIN + "w = world(*seeds); print(*w.settings, *w.steps, w.exits, sep=chr(10))"


def main() -> int:
    """Print the worlds that differ; exit status 1 when there are any."""
    parser = argparse.ArgumentParser(prog="scripts/plans", description=__doc__)
    parser.add_argument("--beside", type=Path, metavar="DIR", help="another checkout, with its own .venv")
    parser.add_argument("--worlds", default="", metavar="A-B", help="only these seeds; all frozen ones")
    parser.add_argument("--show", type=int, metavar="SEED", help="one world and its passes")
    parser.add_argument("--freeze", action="store_true", help="write the digests anew")
    options = parser.parse_args()
    frozen = dict(line.split("\t") for line in FROZEN.read_text().splitlines()) if FROZEN.exists() else {}
    if options.show is not None:
        return _show(options.show, options.beside)
    first, _, last = options.worlds.partition("-")
    seeds = range(int(first), int(last or first) + 1) if first else sorted(map(int, frozen))
    ours = _digests(HERE, seeds)
    if options.freeze:
        FROZEN.write_text("".join(f"{seed}\t{digest}\n" for seed, digest in sorted(ours.items())))
        return 0
    theirs = {int(seed): digest for seed, digest in frozen.items()}
    if options.beside:
        theirs = _digests(options.beside.resolve(), seeds)
    differ = [seed for seed in seeds if ours[seed] != theirs.get(seed)]
    for seed in differ:
        print(f"world {seed} differs: scripts/plans --show {seed}")
    print(f"{len(differ)} of {len(ours)} worlds differ")
    return 1 if differ else 0


def _digests(root: Path, seeds: "range | list[int]") -> dict[int, str]:
    """Return the digest of the decisions of a checkout in each world (by seed); runs a process for each
    CPU."""
    words = list(map(str, seeds))
    waiting = [words[n : n + PARTS] for n in range(0, len(words), PARTS)][::-1]
    running: list[subprocess.Popen[str]] = []
    found: dict[int, str] = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            running.append(_python(root, _DIGESTS, waiting.pop()))
        out, _ = running[0].communicate()
        if running.pop(0).returncode:
            raise SystemExit(f"the worlds cannot be played in {root}")
        found |= {int(seed): digest for seed, digest in json.loads(out).items()}
    return found


def _python(root: Path, script: str, words: list[str]) -> "subprocess.Popen[str]":
    """Start the Python of the checkout ``root`` with the corpus of this one; its folder hides neither
    nqspy."""
    python, env = root / ".venv" / "bin" / "python", {**os.environ, "PYTHONPATH": str(HERE / "tests")}
    return subprocess.Popen(
        [python, "-c", script, *words], env=env, stdout=subprocess.PIPE, text=True, cwd="/"
    )


def _show(seed: int, other: Path | None) -> int:
    print(_python(HERE, _WORLD, [str(seed)]).communicate()[0])
    ours = _python(HERE, _PASSES, [str(seed)]).communicate()[0].splitlines()
    if other is None:
        print(*ours, sep="\n")
        return 0
    theirs = _python(other.resolve(), _PASSES, [str(seed)]).communicate()[0].splitlines()
    print(*difflib.unified_diff(theirs, ours, str(other), "here", lineterm="", n=8), sep="\n")
    return 1 if ours != theirs else 0


if __name__ == "__main__":
    sys.exit(main())

"""The first steps of the README, typed as they stand there."""

import re

from daemon.live import ROOT, command

PAGE = (ROOT / "README.md").read_text()


def _block(title: str, kind: str = "") -> str:
    section = PAGE.partition(f"## {title}\n")[2]
    return re.split(rf"^```{kind}\n", section, flags=re.MULTILINE)[1].partition("```")[0]


def test_the_first_steps_give_what_they_show(make_live):
    live = make_live()
    steps = [line for line in _block("First steps").splitlines() if line.strip()]
    assert len(steps) >= 7
    path = ":".join(dict.fromkeys(command(name)[0].rpartition("/")[0] for name in ("nqsd", "qsub")))
    said = []
    for step in steps:
        done = live.sh(step, PATH=f"{path}:/usr/bin:/bin").ok()
        assert not done.err, done
        said.append(done.out)
    shown = "".join(said)
    identifier = said[1].strip()
    assert re.fullmatch(r"1\.[\w.-]+", identifier)
    assert f"{identifier}  hello" in shown
    rule = next(text for step, text in zip(steps, said, strict=True) if "show long queue" in step)
    assert re.search(r"user[_ ]limit\D+2\b", rule, re.IGNORECASE), rule


def test_the_rule_of_the_readme_is_loaded(make_live):
    live = make_live().site()
    code = _block("First steps", "python")
    live.exit("tests", code)
    live.start()
    assert "tests [on] jobselect" in live.qmgr("show exits").ok().out

"""One table, two parsers: the fast one and the one Typer makes of it say the same."""

import pytest
from typer.main import get_command

from nqspy.cli import fast
from nqspy.cli.fast import Failure, Parser
from nqspy.cli.help import OPERANDS, build, parameter
from nqspy.cli.request_tables import table_of
from nqspy.cli.spec import SUMMARIES, WITHOUT_VALUE

LINES = [
    "qsub",
    "qsub -q night -lT 600 -lM 32mw job.sh -q x a",
    "qsub -eo -x -nr -mb -me -mu anne -z job.sh",
    "qsub -r NAME -a noon -A d1 --key k1 --after 3:any --after 4 --wait --json",
    "qsub -lUa 2 -Rf x -re -ro -ke -ko -kj -k oe -m abe -M ben",
    "qsub --list night.list --dry-run",
    "qstat -a -f 17 18.ymp --queue night --state held --ended",
    "qstat -x -f -F json -u anne,ben 17 -E",
    "qselect -l mem.ge.1gb -s QR -u anne -x",
    "pbsnodes -a -F dsv -D ; ymp",
    "qdel 17 18 -k -u anne",
    "qcat -e -f 17.ymp",
    "qstat -f -- -a",
    "qmgr -c a -c b --atomic -n",
    "qalter -l walltime=60 -a noon -N x -h u 17",
    "qmsg -E -O text 17",
]
GLUED = [
    ("qsub -lT600 -lM32mw -qnight -p-5 job.sh", "qsub -lT 600 -lM 32mw -q night -p -5 -- job.sh"),
    ("qsub -N=x -lwalltime=60 -lT=5 -lnodes=1", "qsub -N x -l walltime=60 -lT 5 -l nodes=1 --"),
    ("qsub -mabe -koe -mubob -lUc3 -Rfx", "qsub -m abe -k oe -mu bob -lUc 3 -Rf x --"),
    ("qsub --key=a=b --list=x", "qsub --key a=b --list x --"),
    ("qstat -xf -uanne 17", "qstat -x -f -u anne -- 17"),
    ("qstat -xfFjson 17", "qstat -x -f -F json -- 17"),
    ("qselect -ts.gt.1200 -p.ge.5 -lmem.ge.1gb -sQR", "qselect -t s.gt.1200 -p .ge.5 -l mem.ge.1gb -s QR --"),
    ("qcat -ef 17", "qcat -e -f -- 17"),
]


def normalised(command: str, words: list[str]) -> list[str]:
    """Return the command line with every option apart from its value, as click reads it. Raises Failure."""
    found, operands = Parser(table_of(command), interspersed=command != "qsub").parse(words)
    plain: list[str] = []
    for given in found:
        plain.append(given.flag)
        if given.kind not in WITHOUT_VALUE:
            plain.append(given.value)
    return [*plain, "--", *operands]


def by_click(command: str, words: list[str]) -> dict[str, object]:
    context = get_command(build(command)).make_context(command, list(words))
    given = {name: value for name, value in context.params.items() if value}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def by_the_fast_parser(command: str, words: list[str]) -> dict[str, object]:
    found, operands = Parser(table_of(command), interspersed=command != "qsub").parse(words)
    expected: dict[str, object] = {}
    for given in found:
        number = next(n for n, row in enumerate(table_of(command)) if given.flag in row[0])
        if given.kind in WITHOUT_VALUE:
            expected[parameter(number)] = True
        else:
            expected.setdefault(parameter(number), []).append(given.value)
    return expected | ({OPERANDS: operands} if operands else {})


@pytest.mark.parametrize("line", LINES)
def test_both_parsers_agree(line):
    command, *words = line.split()
    assert by_click(command, words) == by_the_fast_parser(command, words)


@pytest.mark.parametrize(("glued", "apart"), GLUED)
def test_glued_and_joined_options_are_taken_apart_alike(glued, apart):
    command, *words = glued.split()
    assert normalised(command, words) == apart.split()[1:]
    assert by_click(command, normalised(command, words)) == by_the_fast_parser(command, words)


@pytest.mark.parametrize("command", SUMMARIES)
def test_help_names_every_option_of_the_table(command, screen):
    status, out, err = screen.run([command, "--help"])
    assert (status, err) == (0, "")
    for row in table_of(command):
        for flag in row[0]:
            assert flag in out


def test_help_is_found_among_other_options_and_a_shell_gets_completions(screen, monkeypatch):
    assert "Submit a request" in screen.run("qsub -q night --help")[1]
    monkeypatch.setenv("_QSUB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "qsub --dr")
    monkeypatch.setenv("COMP_CWORD", "1")
    _, out, _ = screen.run("qsub")
    assert "--dry-run" in out


@pytest.mark.parametrize(
    "value", ["plain", 'quo"te\\', "ä€😀", "\x00\n", -5, True, None, [1, ["x"]], {"a": {"b": ()}}]
)
def test_messages_are_json(value):
    import json

    plain = {"a": {"b": []}} if isinstance(value, dict) else value
    assert json.loads(fast.dump(value)) == plain
    with pytest.raises(Failure, match="not UTF-8 text"):
        fast.dump({"name": "\udcff"})

"""Whatever stands in a script or on the command line: qsub reads it or says in one line what is wrong."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.cli import fast
from nqspy.cli.directives import scan
from nqspy.cli.draft import SubmissionDraft, Surroundings
from nqspy.cli.qsub import QsubOptions
from nqspy.cli.spec import TABLES

FLAGS = sorted({flag for row in TABLES["qsub"] for flag in row[0]})
ODD = (
    *("600", "10:00", "1gw", "-1", "9" * 60, "walltime=1:00", "ncpus=", "mem=1tb,", "y", "n", "oe", "(", "="),
    *("/", "../x", "%s", "\x1b[2J", "\0", "1-5:2%3", "a:b:c", "17:ok", ",", "x" * 3000, "é", '"', "'", "\\"),
)
WORDS = st.sampled_from([*FLAGS, *ODD]) | st.text(st.characters(max_codepoint=255), max_size=10)
LINES = st.builds(
    lambda start, words: start + " ".join(words),
    st.sampled_from(("#QSUB ", "# QSUB ", "#@$", "#@$-", "#PBS ", "#", "#QSUB", ":", "echo ", "")),
    st.lists(WORDS, max_size=5),
)
SCRIPTS = st.lists(LINES, max_size=8).map("\n".join) | st.text(st.characters(max_codepoint=255), max_size=100)


def read(script, words):
    """What `qsub` makes of a script and its words, without a daemon."""
    options = QsubOptions(words)
    _, directives = scan(script, "the script", options.dialect, options.prefix)
    draft = SubmissionDraft("nqs", lambda text: 0, "/home")
    for directive in directives:
        found, _ = options.parser.parse(directive.words)
        draft.apply(found, "directive")
    draft.apply(options.request, "command")
    return draft.item(script, "job", [], Surroundings())


@settings(max_examples=600)
@given(SCRIPTS, st.lists(WORDS, max_size=6))
def test_any_script_and_any_options_become_a_message_or_one_line(script, words):
    try:
        line = fast.dump(read(script, words))
    except fast.HelpWanted:
        return
    except fast.Failure as failure:
        line = fast.dump({"text": failure.text.encode("utf-8", "replace").decode()})
    assert json.loads(line)


@given(st.text())
def test_what_is_complained_of_reaches_no_terminal_raw(text):
    shown = fast._plain(text)
    assert all(c in "\n\t" or c.isprintable() for c in shown)

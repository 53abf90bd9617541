"""Slips of the pen that are accepted: a person at a terminal is told, a program hears nothing."""

import pytest
from daemon.terminal import at_a_terminal


def _warned(office, *words, stdin="true\n"):
    """Return the warnings of an accepted submission; assert that a program gets none."""
    done = at_a_terminal(office, "qsub", "-h", *words, stdin=stdin)
    assert done.status == 0, done
    quiet = office.run("qsub", "-h", *words, stdin=stdin).ok()
    assert quiet.err == ""
    office.run("qdel", done.out.strip(), quiet.lines[0]).ok()
    return [line for line in done.err.splitlines() if line.startswith("qsub: warning: ")]


def test_options_after_the_script_are_its_arguments_and_that_is_said(office):
    office.write("job.sh", "true\n")
    for words in (["--after=3"], ["-q", "night", "-lT", "5"]):
        [warned] = _warned(office, "job.sh", *words)
        assert words[0].partition("=")[0] in warned
        assert "job.sh" in warned
    assert _warned(office, "job.sh", "input", "-3", "--my-own", "-") == [], "these are no options"


def test_directives_of_other_systems_are_named(office):
    head = "#!/bin/sh\n#SBATCH --time=10\n#SBATCH -n 2\n#$ -cwd\n"
    script = f"{head}#QSUB -lT 5:00\n#Slurm is a word\ntrue\n#BSUB -n\n"
    slurm, engine = _warned(office, stdin=script)
    assert "line 2" in slurm
    assert "#SBATCH" in slurm
    assert "line 4" in engine
    assert "Grid Engine" in engine


def test_what_is_asked_and_not_given_is_named_and_kept(office):
    for wish, word in {"nodes=1:bigmem": "bigmem", "host=ymp": "host=ymp"}.items():
        [warned] = _warned(office, "-l", wish)
        assert word in warned
    assert _warned(office, "-l", "nodes=1:ppn=1:gpus=0") == []


@pytest.mark.parametrize(
    ("wish", "word"), [("select=1:ncpus=1:ngpus=2+1:ncpus=1", "ngpus"), ("matlab=1", "matlab")]
)
def test_units_of_what_the_site_does_not_give_out_are_refused_by_name(office, wish, word):
    office.run("qsub", "-l", wish, stdin="true\n").refused(
        f"nknown resource {word}", "consumables: none", "cput"
    )


def test_an_unknown_consumable_of_slurm_is_refused_with_the_option_that_names_it(office):
    for given in ("--gres=gpu:2", "--gpus=2"):
        flag, _, value = given.partition("=")
        office.run("nqspy", "submit", given, "--wrap", "true").refused(
            f"{flag} {value}: ", "consumables: none"
        )


def test_an_account_that_is_no_group_of_the_owners_is_said(office):
    owner = office.job(office.submit("true", held=True))["owner"]
    office.set("create group d1 share=60", "create group d2 share=40", f"add members=({owner}) d1")
    assert _warned(office, "-A", "d1") == []
    assert _warned(office) == []
    [typo] = _warned(office, "-A", "dl")
    assert "-A dl" in typo
    assert "d1" in typo
    [other] = _warned(office, "-A", "d2")
    assert "d2" in other
    assert "not a member" in other
    office.set(f"remove members=({owner}) d1", "delete group d1", "delete group d2")


def test_json_and_dry_runs_warn_too(office):
    done = at_a_terminal(office, "qsub", "--dry-run", "-A", "nosuch", stdin="true\n")
    assert "would be accepted" in done.out
    assert "warning: -A nosuch" in done.err
    done = at_a_terminal(office, "qsub", "-h", "--json", "-A", "nosuch", stdin="true\n")
    assert set(done.data) == {"id", "queue"}
    assert "warning: -A nosuch" in done.err
    office.run("qdel", done.data["id"]).ok()
    [answer] = office.wire(
        b'{"v":1,"id":1,"cmd":"submit","dry_run":true,"items":[{"spec":{"owner":"","uid":0,"name":"a","queue":"",'
        b'"script":"","environment":"","workdir":"/","account":"nosuch"},"script":""}]}'
    )
    assert len(answer["result"]["warnings"]) == 1


def test_many_warnings_are_counted(office):
    office.write("job.sh", "true\n")
    office.write("many.list", "".join(f"-h -A no{n} job.sh\n" for n in range(40)))
    done = at_a_terminal(office, "qsub", "--list", "many.list")
    warned = [line for line in done.err.splitlines() if "warning" in line]
    assert len(warned) == 21
    assert "20 more" in done.err
    office.run("qdel", *done.out.split()).ok()

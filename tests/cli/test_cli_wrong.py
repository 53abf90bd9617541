"""A wrong call, directive or line of a list: one line says what is wrong, and nothing is sent."""

import shlex
from pathlib import Path

import pytest

CALLS = """\
2 qdel -> no request given; usage: qdel
2 qdel -W soon 17 -> -W: 'soon' is unknown
2 qhold -h un 17 -> -h: 'un' is unknown
1 qchkpnt 17 -> requests are not checkpointed here;
2 qalter 17 -> no change given; usage: qalter
1 qalter -S /no/such/shell 17 -> -S: there is
2 qalter -W depend=afterok:3 17 -> -W: of a submitted request only umask= and max_run_subjobs= change
2 qrerun -W soon 17 -> -W: 'soon' is unknown
165 qsig -s NOSUCH 17 -> Unknown/illegal signal name NOSUCH
2 qmsg hello -> give a message and
2 qmsg -j hello 17 -> -j:
2 qmsg 17 hello -> the message comes first
2 qorder 17 -> name exactly two requests
2 qping a b -> name at most one host
2 qmove night -> name a queue and
2 qcat 17 18 -> name exactly one request
2 qcat -e -o 17 -> conflicting options: -o and -e
2 qstat --strange -> unknown option --strange
2 qstat -a -r -> conflicting options: -a and -r
2 qstat -1 -> -1 needs
2 qstat -f -F xml -> -F: 'xml' is unknown
2 qstat -f -F json -w -> conflicting options: -F and -w
2 qstat -f -D ';' -> -D needs -F dsv
2 qstat --dialect vms -> --dialect: 'vms' is unknown
2 qstat --why= -> --why needs the identifier of a request
2 qstat --why --json 64 -> --why needs the identifier of a request, not '--json'
2 qstat --why abc -> --why needs the identifier of a request, not 'abc'
2 qselect 17 -> unexpected '17'; usage: qselect
2 pbsnodes -> no host given; usage: pbsnodes
2 pbsnodes -o ymp -> -o is not offered here
2 qsub -lT soon job.sh -> -lT: 'soon' is
2 qsub -lP 0 job.sh -> -lP: a request needs
2 qsub -lt 90,100 job.sh -> -lt: the warning 100 is above the limit 90
2 qsub -a gestern job.sh -> -a: 'gestern' is
2 qsub -r sixteen_letters_ job.sh -> -r: a name must have 1 to 15 characters
2 qsub -N a/b job.sh -> -N: 'a/b' is
2 qsub -p many job.sh -> -p: 'many' is
2 qsub -l waltime=3 job.sh -> -l: unknown resource waltime; resources: cput
2 qsub -l gpus=-1 job.sh -> -l: gpus=-1:
2 qsub --gpus unlimited job.sh -> --gpus: 'unlimited' is
2 qsub -m x job.sh -> -m: 'x'
2 qsub -s ksh job.sh -> -s: 'ksh' is
2 qsub --after 3:soon job.sh -> --after: '3:soon' is
2 qsub --array 9-1 job.sh -> --array: 9-1: 1 is below 9
2 qsub -J 1-x job.sh -> -J: '1-x' is
2 qsub --array 0-9999999 job.sh -> --array: index 9999999 is too large
2 qsub --dialect dcl job.sh -> --dialect: 'dcl' is unknown
2 qsub -cwd job.sh -> -c: 'wd' is
1 qsub none.sh -> none.sh: cannot read the script: No such file or directory
1 qsub . -> .: cannot read the script: Is a directory
1 qsub --list none.list -> none.list: cannot read the list: No such file or directory
2 qsub -l 'software=f(x,mem=1gb' job.sh -> -l:
2 qsub -l software=x),mem=1gb job.sh -> -l:
2 qsub -W 'depend=afterok:(1,umask=022' job.sh -> -W:
2 submit -> no script given
2 submit --wrap=x job.sh -> job.sh: with --wrap
2 submit --dialect=pbs job.sh -> --dialect: 'pbs' is unknown
2 submit --bogus job.sh -> unknown option --bogus
1 submit none.sh -> none.sh: cannot read the script
2 qdel 17 --name 'a*' -> conflicting: identifier 17 and --name
2 qsub -q -> -q needs a value
2 qsub -Z job.sh -> unknown option -Z
2 qsub --lst x -> unknown option --lst; did you mean --list?
2 qsub --dry-run=yes -> --dry-run must not have a value
2 qsub -xY -> unknown option -xY
2 qsub --x\x1b[31m -> unknown option --x\\u001b[31m
2 qdel --version 17 -> --version must stand alone
2 mpprun -> no program given; usage: mpprun [OPTIONS] PROGRAM [ARGS]...
2 mpprun -n 1-257 true -> -n: '1-257' has more than 256 sizes
2 mpprun -l barrier true -> -l: 'barrier' asks for no units of a consumable; write it like
2 mpprun -l barrier=0 true -> -l: 'barrier=0' asks for no units of a consumable
2 mpprun -t soon true -> -t: 'soon' is
2 mpprun -debug -class x true -> -debug means -class benchmark
2 mpprun -q apps true -> unknown option -q
1 mpprun no-such-program-anywhere -> there is
1 mpprun ./none -> there is
1 mpprun /etc/passwd -> you cannot run /etc/passwd"""
PBS = """\
2 -r x -> illegal -r value 'x'
2 -Z -> unknown option -Z
2 -p 1024 -> illegal -p value '1024'
2 -j x -> illegal -j value 'x'
2 -c x -> illegal -c value 'x'
2 -a 99 -> illegal -a value '99'
2 -X -> illegal -X value '': X forwarding is not offered here
2 -D /x -> illegal -D value '/x': a root folder for the job is not offered
2 -W soon=1 -> illegal -W value 'soon=1': there is
2 -W block=x -> illegal -W value 'block=x'
2 -W max_run_subjobs=5 -> -W max_run_subjobs:
2 -W stagein=a@b:c -> illegal -W value 'stagein=a@b:c': stagein is not offered here
2 -W depend=beforeok:3 -> illegal -W value 'depend=beforeok:3': depend=beforeok:3: beforeok is
2 -W depend=afterok -> illegal -W value 'depend=afterok'
166 -l mem=5xb -> Illegal attribute or resource value Resource_List.mem
166 -l select=1:ncpus=x -> Illegal attribute or resource value Resource_List.select
187 -l foo=many -> Unknown resource Resource_List.foo
166 -l select=1,ncpus=2 -> Illegal attribute or resource value Resource_List.ncpus
2 -l nonsense -> illegal -l value 'nonsense'
166 -l ngpus=-1 -> Illegal attribute or resource value Resource_List.ngpus (-l: ngpus="""
"""Exit status, command line or its options, what is said."""

DIRECTIVES = [
    ("#!/bin/sh\n#QSUB -q x\n#QSUB -lT 6x0", "job.sh line 3: -lT: '6x0' is"),
    ("#QSUB lT 60", "job.sh line 1: 'lT' is"),
    ("#QSUB -q night -lX 4", "job.sh line 1: unknown option -lX; did you mean -l?"),
    ("#QSUB -r 'x", "job.sh line 1: the quote ' at column 5 is not closed"),
    ("\n#@$ -W", "job.sh line 2: unknown option -W"),
    ("#QSUB -x\n#PBS -V", "job.sh line 2: NQS and PBS directives in one script"),
    ("#PBS -r x", "directive error: -r x (job.sh line 1: -r: 'x'"),
    ("\n#PBS -Z -q x", "directive error: -Z -q x (job.sh line 2: unknown option -Z"),
    ("\n#PBS -p many", "directive error: -p many (job.sh line 2: -p: 'many' is"),
    ("\n#PBS words", "directive error: words (job.sh line 2: 'words' is"),
    ("\n#PBS --wait", "directive error: --wait (job.sh line 2: --wait belongs on the command line"),
    ("\n#PBS -q", "directive error: -q (job.sh line 2: -q needs a value"),
]
LISTS = [
    ("", ": the list is empty"),
    ("ok.sh\n-lT x ok.sh", " line 2: -lT: 'x' is"),
    ("ok.sh\n-q x", " line 2: the line has no script"),
    ("'ok.sh", " line 1: the quote ' at column 1 is not closed"),
    ("ok.sh\nbad.sh", " line 2: bad.sh line 2: -p: 'x'"),
    ("--wait ok.sh", " line 1: --wait belongs on the command line"),
    ("after:nobody ok.sh", " line 1: after:nobody: no earlier line has the name"),
    ("after:a ok.sh\nname:a ok.sh", " line 1: after:a: no earlier line has the name"),
    ("name:a ok.sh\nafter:a:soon ok.sh", " line 2: after:a:soon is"),
    ("name:a name:b ok.sh", " line 1: name:b: a line can have one name"),
    ("name:7up ok.sh", " line 1: name:7up:"),
]
SLURM = [
    ("--time=soon", "--time: 'soon' is"),
    ("--mem=0", "--mem: '0' is"),
    ("-n 0", "-n: '0' is"),
    ("-N 4-2", "-N: '4-2': write the greater number"),
    ("-p a,b", "-p: 'a,b': name one queue"),
    ("-d singleton", "-d: 'singleton' is not offered; write it like afterok:17:18"),
    ("-d afterok:1[x].ymp", "-d: 'afterok:1[x].ymp' is not offered"),
    ("--mail-type=SOON", "--mail-type: SOON is not offered"),
    ("-o %t.out", "-o: %t in '%t.out' is not offered"),
    ("--begin=now+2moons", "--begin: 'now+2moons' is"),
    ("-G a100:2", "-G: 'a100:2': GPUs have no types"),
    ("--gres=:2", "--gres: ':2'"),
    ("'--export=\"A=1'", '--export: the quote " is not closed'),
    ("--open-mode=append", "--open-mode: 'append' is not offered"),
    ("-i data", "-i: standard input of a request is empty"),
    ("--exclusive", "--exclusive: it is not offered: PEs are never shared"),
    ("--qos=high", "--qos: it is not offered: there are no qualities"),
    ("--bogus", "unknown option --bogus"),
    ("-D nowhere", "-D: there is no folder"),
    ("words", "'words' is"),
]
SIZES = ("0", "-3", "four", "1.5", "", "0-3", "8-2", "2-", "1,,2", "1,1", "0,2", "unlimited")
NO_SIZE = "is"
INDICES = "1," * 300


def rows(table):
    for row in table.splitlines():
        call, _, expected = row.partition(" -> ")
        status, _, words = call.partition(" ")
        yield int(status), words, expected


ROWS = [
    *((*row, "true") for row in rows(CALLS)),
    *((status, f"qsub --dialect pbs {words} job.sh", error, "true") for status, words, error in rows(PBS)),
    (2, f"qsub --dialect pbs -J {INDICES}x job.sh",
     f"illegal -J value '{INDICES[:200]}...': 'x' is", ""),
    *((2, f"mpprun -n '{size}' true", f"-n: '{size}' {NO_SIZE}", "") for size in SIZES),
    *((1, "qsub job.sh", expected, text) for text, expected in DIRECTIVES),
    *((1, "qsub --list x.list", f"x.list{expected}", text) for text, expected in LISTS),
    *((1, "qsub --dialect slurm job.sh", f"job.sh line 2: {expected}", f"\n#SBATCH {option}")
      for option, expected in SLURM),
]  # fmt: skip


@pytest.mark.parametrize(("status", "line", "expected", "text"), ROWS)
def test_one_line_says_what_is_wrong_and_nothing_is_sent(desk, screen, status, line, expected, text):
    for name, held in {"job.sh": text, "x.list": text, "ok.sh": "true", "bad.sh": "#\n#QSUB -p x"}.items():
        Path(name).write_text(f"{held}\n" if held else "")
    words = shlex.split(line)
    found, out, err = screen.run(words)
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert err.startswith(f"{words[0]}: {expected}")
    assert {message["cmd"] for message in desk.messages} <= {"now"}, "of dates the daemon is asked first"

"""A wrong call, directive or line of a list: one line says what is wrong, and nothing is sent."""

import shlex
from pathlib import Path

import pytest

CALLS = """\
2 qdel -> which request? usage: qdel
1 qdel -W soon 17 -> -W: 'soon' is not known; there are -W force and
1 qhold -h un 17 -> -h: 'un' is none of the letters u, o, s, nor n alone
1 qchkpnt 17 -> requests are not checkpointed here;
2 qalter 17 -> what shall be changed? usage: qalter
1 qalter -S /no/such/shell 17 -> -S: there is no program /no/such/shell
2 qalter -W depend=afterok:3 17 -> -W: of a submitted request only umask= and max_run_subjobs= change
1 qrerun -W soon 17 -> -W: 'soon' is not known; there is -W force
165 qsig -s NOSUCH 17 -> Unknown/illegal signal name NOSUCH
2 qmsg hello -> a message and at least one request are needed
1 qmsg -j hello 17 -> -j: requests have no job log here
2 qorder 17 -> two requests are needed, not 1
2 qping a b -> one host at most
2 qmove night -> a queue and at least one request are needed
2 qcat 17 18 -> exactly one request is needed
1 qcat -e -o 17 -> -o and -e: choose one stream
2 qstat --strange -> unknown option --strange
2 qstat -a -r -> conflicting options: -a and -r
2 qstat -1 -> conflicting options: -1
2 qstat -f -F xml -> -F: there is no format 'xml'; formats: json, dsv, default
2 qstat -f -F json -w -> conflicting options: -F and -w
2 qstat -f -D ';' -> -D goes with -F dsv
2 qstat --dialect vms -> there is no dialect 'vms' of this command
1 qstat --why= -> --why needs the identifier of a request
1 qstat --why --json 64 -> --why needs the identifier of a request, not '--json'
1 qstat --why abc -> --why needs the identifier of a request, not 'abc'
2 qselect 17 -> what is '17'? usage: qselect
2 pbsnodes -> which host? usage: pbsnodes
2 pbsnodes -o ymp -> -o is not offered here
1 qsub -lT soon job.sh -> -lT: 'soon' is no time; write it like
1 qsub -lP 0 job.sh -> -lP: a request has at least 1 PE
1 qsub -lt 90,100 job.sh -> -lt: a warning at 100 lies above the limit of 90
1 qsub -a gestern job.sh -> -a: 'gestern' is no date
1 qsub -r sixteen_letters_ job.sh -> -r: a name has 1 to 15 characters
1 qsub -N a/b job.sh -> -N: 'a/b' is no name
1 qsub -p many job.sh -> -p: 'many' is no whole number from -1024 to 1023
1 qsub -l waltime=3 job.sh -> -l: unknown resource waltime; known are cput
1 qsub -l gpus=-1 job.sh -> -l: gpus=-1: units are a whole number from 0 upward
1 qsub --gpus unlimited job.sh -> --gpus: 'unlimited' is no number of units
1 qsub -m x job.sh -> -m: 'x' is none of n or letters of a, b, e
1 qsub -s ksh job.sh -> -s: 'ksh' is no shell
1 qsub --after 3:soon job.sh -> --after: '3:soon' is no dependency
1 qsub --array 9-1 job.sh -> --array: 9-1: 1 comes before 9
1 qsub -J 1-x job.sh -> -J: '1-x' is no index; write them like 1-10,15,20-30:5
1 qsub --array 0-9999999 job.sh -> --array: index 9999999 is above the greatest, 4000000
1 qsub --dialect dcl job.sh -> --dialect: 'dcl' is neither nqs nor pbs
1 qsub -cwd job.sh -> -c: 'wd' is no checkpoint interval; if Grid Engine's -cwd is meant
1 qsub none.sh -> none.sh: cannot read the script: No such file or directory
1 qsub . -> .: cannot read the script: Is a directory
1 qsub --list none.list -> none.list: cannot read the list: No such file or directory
1 qsub -l 'software=f(x,mem=1gb' job.sh -> -l:
1 qsub -l software=x),mem=1gb job.sh -> -l:
1 qsub -W 'depend=afterok:(1,umask=022' job.sh -> -W:
1 submit -> nothing is named
1 submit --wrap=x job.sh -> job.sh: --wrap stands for the script
1 submit --dialect=pbs job.sh -> --dialect: 'pbs' is not slurm
1 submit --bogus job.sh -> unknown option --bogus
1 submit none.sh -> none.sh: cannot read the script
2 qdel 17 --name 'a*' -> 17 is meant by its identifier; leave out --name
1 qsub -q -> -q needs a value
1 qsub -Z job.sh -> unknown option -Z
1 qsub --lst x -> unknown option --lst; did you mean --list?
1 qsub --dry-run=yes -> --dry-run takes no value
1 qsub -xY -> unknown option -xY
1 qsub --x\x1b[31m -> unknown option --x\\u001b[31m
2 qdel --version 17 -> --version stands alone, without '17'
1 mpprun -> which program? usage: mpprun [OPTIONS] PROGRAM [ARGS]...
1 mpprun -n 1-257 true -> -n: '1-257' names more than 256 sizes
1 mpprun -l barrier true -> -l: 'barrier' asks for no units of a consumable; write it like
1 mpprun -l barrier=0 true -> -l: 'barrier=0' asks for no units of a consumable
1 mpprun -t soon true -> -t: 'soon' is no time
1 mpprun -debug -class x true -> -debug stands for -class benchmark; give one of them
1 mpprun -q apps true -> unknown option -q
1 mpprun no-such-program-anywhere -> there is no program no-such-program-anywhere on PATH
1 mpprun ./none -> there is no program ./none
1 mpprun /etc/passwd -> /etc/passwd cannot be executed"""
PBS = """\
2 -r x -> illegal -r value 'x'
2 -Z -> unknown option -Z
2 -p 1024 -> illegal -p value '1024'
2 -j x -> illegal -j value 'x'
2 -c x -> illegal -c value 'x'
2 -a 99 -> illegal -a value '99'
2 -X -> illegal -X value '': X forwarding is not offered here
2 -D /x -> illegal -D value '/x': a root folder for the job is not offered
2 -W soon=1 -> illegal -W value 'soon=1': there is no attribute soon
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
    ("#!/bin/sh\n#QSUB -q x\n#QSUB -lT 6x0", "job.sh line 3: -lT: '6x0' is no time"),
    ("#QSUB lT 60", "job.sh line 1: 'lT' is no option; options begin with a dash"),
    ("#QSUB -q night -lX 4", "job.sh line 1: unknown option -lX; did you mean -l?"),
    ("#QSUB -r 'x", "job.sh line 1: the quote ' at column 5 is not closed"),
    ("\n#@$ -W", "job.sh line 2: unknown option -W"),
    ("#QSUB -x\n#PBS -V", "job.sh line 2: NQS and PBS directives in one script"),
    ("#PBS -r x", "directive error: -r x (job.sh line 1: -r: 'x' is neither y nor n)"),
    ("\n#PBS -Z -q x", "directive error: -Z -q x (job.sh line 2: unknown option -Z"),
    ("\n#PBS -p many", "directive error: -p many (job.sh line 2: -p: 'many' is no whole"),
    ("\n#PBS words", "directive error: words (job.sh line 2: 'words' is no option"),
    ("\n#PBS --wait", "directive error: --wait (job.sh line 2: --wait belongs on the command line"),
    ("\n#PBS -q", "directive error: -q (job.sh line 2: -q needs a value"),
]
LISTS = [
    ("", ": the list is empty"),
    ("ok.sh\n-lT x ok.sh", " line 2: -lT: 'x' is no time"),
    ("ok.sh\n-q x", " line 2: the line names no script"),
    ("'ok.sh", " line 1: the quote ' at column 1 is not closed"),
    ("ok.sh\nbad.sh", " line 2: bad.sh line 2: -p: 'x'"),
    ("--wait ok.sh", " line 1: --wait belongs on the command line"),
    ("after:nobody ok.sh", " line 1: after:nobody: no line before this one is named"),
    ("after:a ok.sh\nname:a ok.sh", " line 1: after:a: no line before this one is named"),
    ("name:a ok.sh\nafter:a:soon ok.sh", " line 2: after:a:soon is no dependency"),
    ("name:a name:b ok.sh", " line 1: name:b: a line has one name"),
    ("name:7up ok.sh", " line 1: name:7up: a name begins with no digit"),
]
SLURM = [
    ("--time=soon", "--time: 'soon' is no time; write it like 30 (minutes)"),
    ("--mem=0", "--mem: '0' is no amount of memory"),
    ("-n 0", "-n: '0' is no number from 1 to"),
    ("-N 4-2", "-N: '4-2': the greater number"),
    ("-p a,b", "-p: 'a,b': one queue is named"),
    ("-d singleton", "-d: 'singleton' is not offered; write it like afterok:17:18"),
    ("-d afterok:1[x].ymp", "-d: 'afterok:1[x].ymp' is not offered"),
    ("--mail-type=SOON", "--mail-type: SOON is not offered; there are NONE, BEGIN"),
    ("-o %t.out", "-o: %t in '%t.out' is not offered"),
    ("--begin=now+2moons", "--begin: 'now+2moons' is no date"),
    ("-G a100:2", "-G: 'a100:2': GPUs are not told apart by type"),
    ("--gres=:2", "--gres: ':2' names no unit; write it like gpu:2"),
    ("'--export=\"A=1'", '--export: the quote " is not closed'),
    ("--open-mode=append", "--open-mode: 'append' is not offered"),
    ("-i data", "-i: standard input of a request is empty"),
    ("--exclusive", "--exclusive: it is not offered: PEs are never shared"),
    ("--qos=high", "--qos: it is not offered: there are no qualities"),
    ("--bogus", "unknown option --bogus"),
    ("-D nowhere", "-D: there is no folder"),
    ("words", "'words' is no option"),
]
SIZES = ("0", "-3", "four", "1.5", "", "0-3", "8-2", "2-", "1,,2", "1,1", "0,2", "unlimited")
NO_SIZE = "is no number of PEs, nor several; write it like 4, 2-8 or"
INDICES = "1," * 300


def rows(table):
    for row in table.splitlines():
        call, _, said = row.partition(" -> ")
        status, _, words = call.partition(" ")
        yield int(status), words, said


ROWS = [
    *((*row, "true") for row in rows(CALLS)),
    *((status, f"qsub --dialect pbs {words} job.sh", said, "true") for status, words, said in rows(PBS)),
    (2, f"qsub --dialect pbs -J {INDICES}x job.sh",
     f"illegal -J value '{INDICES[:200]}...': 'x' is no index; write", ""),
    *((1, f"mpprun -n '{size}' true", f"-n: '{size}' {NO_SIZE}", "") for size in SIZES),
    *((1, "qsub job.sh", said, text) for text, said in DIRECTIVES),
    *((1, "qsub --list x.list", f"x.list{said}", text) for text, said in LISTS),
    *((1, "qsub --dialect slurm job.sh", f"job.sh line 2: {said}", f"\n#SBATCH {option}")
      for option, said in SLURM),
]  # fmt: skip


@pytest.mark.parametrize(("status", "line", "said", "text"), ROWS)
def test_one_line_says_what_is_wrong_and_nothing_is_sent(desk, screen, status, line, said, text):
    for name, held in {"job.sh": text, "x.list": text, "ok.sh": "true", "bad.sh": "#\n#QSUB -p x"}.items():
        Path(name).write_text(f"{held}\n" if held else "")
    words = shlex.split(line)
    found, out, err = screen.run(words)
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert err.startswith(f"{words[0]}: {said}")
    assert {message["cmd"] for message in desk.messages} <= {"now"}, "of dates the daemon is asked first"

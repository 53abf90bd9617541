"""What one user tries against another, and against the daemon: a name, and one line for the shell each.

An attack is won when its line says WON, or when the other's secret is seen. ``$W $R $H $E``: the other's
requests that wait, run, are held, have ended; ``$MINE``: one of the attacker's own; ``$JOB $SHEPHERD $NQSD
$SPAWNER``: processes; ``$NQ``: the daemon's home; ``$HIS``: the other's home folder; ``$SHARED``: a folder in
which everybody may make names.
"""

WIRE = """python - "$NQ/nqsd.sock" <<'END'
import json, os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.settimeout(20)
env = os.environ
SPEC = {{"name": "x", "queue": "other", "script": "", "environment": "", "workdir": "/"}}
sock.sendall({line})
answer = json.loads(sock.makefile().readline())
print(answer, "WON" if answer.get("ok") {more} else "")
END"""
PYTHON = "python - <<'END'\nimport os\njob = int(os.environ['JOB'])\n{code}\nprint('WON')\nEND"


def wire(message: str, more: str = "") -> str:
    """A command over the raw socket, as a Python expression of one dictionary."""
    return WIRE.format(line=f'json.dumps({{"v": 1, "id": 1, **{message}}}).encode() + b"\\n"', more=more)


def python(code: str) -> str:
    return PYTHON.format(code=code)


def mine(script: str, out: str = "$OWN/out", options: str = "") -> str:
    """A request of the attacker's own that tries it from inside; its output decides."""
    return (
        f"rm -f $OWN/out; qsub --wait -s /bin/sh -eo {options} -o {out} <<'END'\n{script}\necho it ran\nEND\n"
        f"cat {out}; case {out} in $OWN/*) grep -q 'it ran' {out} || echo WON: it did not run;; esac"
    )


DONE = "and (answer['result'] or {}).get('done')"
"""A command for several requests is answered well even where nothing was done."""

OTHERS = "and env['BEN'] not in os.popen('qstat --json ' + answer['result'].get('ids', ['0'])[0]).read()"
"""It was taken, and as somebody else's than his who sent it."""

ATTACKS = {
    # the commands
    "delete a waiting request": "qdel $W && echo WON",
    "kill a running request": "qdel -k $R && echo WON",
    "signal a running request": "qdel -9 $R && echo WON",
    "delete all of the other's requests": "qdel -u $ANNE $W && echo WON",
    "hold a waiting request": "qhold $W && echo WON",
    "release a held request": "qrls $H && echo WON",
    "move a request to another queue": "qmove other $W && echo WON",
    "read the output of a running request": "qcat $R && echo WON",
    "read the error output of a running request": "qcat -e $R && echo WON",
    "read the undelivered output of an ended request": "qcat $K && echo WON",
    "read the undelivered error output of an ended request": "qcat -e -f $K && echo WON",
    "delete as an operator": 'qmgr -c "delete request $W" && echo WON',
    "hold as an operator": 'qmgr -c "hold request $W" && echo WON',
    "release as an operator": 'qmgr -c "release request $H" && echo WON',
    "suspend as an operator": 'qmgr -c "suspend request $R" && echo WON',
    "rerun as an operator": 'qmgr -c "rerun request $R" && echo WON',
    "alter the priority of a request": 'qmgr -c "modify request $W priority=1" && echo WON',
    "outrank: schedule the own request first": 'qmgr -c "schedule request $MINE first" && echo WON',
    "outrank: schedule the own request now": 'qmgr -c "schedule request $MINE now" && echo WON',
    "outrank: more share for the own group": 'qmgr -c "create group thieves share=1000" && echo WON',
    "become a manager": 'qmgr -c "set managers = ($BEN:m)" && echo WON',
    "stop a queue": 'qmgr -c "stop queue batch" && echo WON',
    "change the limits of a queue": 'qmgr -c "set queue batch run_limit=1" && echo WON',
    "have the daemon run a command (probe)": 'qmgr -c "create probe p command=id every=60" && echo WON',
    "have the daemon run a command (mail)": 'qmgr -c "set mail command=id" && echo WON',
    "shut the daemon down": "qmgr -c shutdown && echo WON",
    "stop the daemon": "nqsd stop && echo WON",
    "start a second daemon on the home": "nqsd start && echo WON",
    "submit as the other": "echo id | qsub -u $ANNE && echo WON",
    "take over the other's submission by its key":
        'id=$(echo id | qsub --key secret-key) && [ "$id" = "$W" ] && echo WON',
    # the raw socket
    "forged owner in a submission": wire(
        '{"cmd": "submit", "items": [{"spec": {**SPEC, "owner": env["ANNE"], "uid": 0}, '
        '"script": "id", "environment": ""}]}',
        OTHERS,
    ),
    "root's number in a submission": wire(
        '{"cmd": "submit", "user": "root", "items": [{"spec": {**SPEC, "owner": "root", "uid": 0, "gid": 0}, '
        '"script": "id", "environment": ""}]}',
        OTHERS,
    ),
    "read output over the raw socket": wire(
        '{"cmd": "cat", "text": "cat", "request": env["R"], "stream": "stdout", "offset": 0}',
        "and not answer.get('status') and not answer.get('err')",
    ),
    "forged caller in a deletion": wire(
        '{"cmd": "delete", "ids": [env["W"]], "caller": {"user": "root", "uid": 0, "trusted": True}}', DONE
    ),
    "forced deletion over the raw socket": wire(
        '{"cmd": "delete", "ids": [env["R"]], "kill": True, "force": True, "owner": env["ANNE"]}', DONE
    ),
    "hold over the raw socket": wire('{"cmd": "hold", "ids": [env["W"]], "user": env["ANNE"]}', DONE),
    "release over the raw socket": wire('{"cmd": "release", "ids": [env["H"]], "letter": "s"}', DONE),
    "alter over the raw socket": wire(
        '{"cmd": "modify", "ids": [env["W"]], "values": {"owner": env["BEN"], "priority": 1}}', DONE
    ),
    "suspend over the raw socket": wire('{"cmd": "suspend", "ids": [env["R"]], "resume": False}', DONE),
    "change settings over the raw socket": wire(
        '{"cmd": "configure", "uid": 0, "trusted": True, '
        '"changes": [{"op": "set", "path": "global/run_limit", "value": 1}]}'
    ),
    "apply files over the raw socket": wire('{"cmd": "apply_files", "files": []}'),
    "reload exits over the raw socket": wire('{"cmd": "reload_exits"}'),
    "correct the use of a group over the raw socket": wire(
        '{"cmd": "correct_usage", "group": "default", "ms": 0, "relative": False}'
    ),
    "shut down over the raw socket": wire('{"cmd": "shutdown", "mode": "requeue", "uid": 0}'),
    "ask for a script over the raw socket": wire('{"cmd": "blob", "id": env["W"]}'),
    # the file system
    "read the database": "cat $NQ/nqs.db && echo WON",
    "read the database's log": "cat $NQ/nqs.db-wal && echo WON",
    "write the database": "echo x >> $NQ/nqs.db && echo WON",
    "list the spool": "ls $NQ/spool && echo WON",
    "read a login in the spool": "cat $NQ/spool/logins/* && echo WON",
    "read output in the spool": "cat $NQ/spool/*/stdout && echo WON",
    "tell the daemon a false end": python(
        "import socket, json\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "s.sendto(b'{}', os.environ['NQ'] + '/spool/reports.sock')"
    ),
    "replace the socket": "rm -f $NQ/nqsd.sock && echo WON",
    "change the mode of the socket": "chmod 600 $NQ/nqsd.sock && echo WON",
    "write an exit": "echo 'x = 1' > $NQ/exits/evil.py && echo WON",
    "write a configuration": "echo 'stop queue batch' > $NQ/queues.d/99.qmgr && echo WON",
    "overwrite the pid file": "echo 1 > $NQ/nqsd.pid && echo WON",
    "make a file in the home": "touch $NQ/x && echo WON",
    "move the home away": "mv $NQ $NQ.away && echo WON",
    "write the daemon's log": "echo x >> $NQ/log/nqsd.log && echo WON",
    "read mails that wait": "ls $NQ/mail && echo WON",
    # processes
    "kill the other's job": "kill -9 $JOB && echo WON",
    "stop the other's job": "kill -STOP $JOB && echo WON",
    "kill its shepherd": "kill -9 $SHEPHERD && echo WON",
    "kill the spawner": "kill -9 $SPAWNER && echo WON",
    "kill the daemon": "kill -9 $NQSD && echo WON",
    "read the job's environment": "cat /proc/$JOB/environ && echo WON",
    "read the job's open script": "cat /proc/$JOB/fd/* && echo WON",
    "read the job's memory": "head -c 1 /proc/$JOB/mem && echo WON",
    "enter the shepherd's folder": "ls /proc/$SHEPHERD/cwd/ && echo WON",
    "read what the daemon has open": "ls -l /proc/$NQSD/fd/ && echo WON",
    "trace the job": python(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.ptrace(16, job, None, None) == 0"
    ),
    "bind the job to another CPU": python("os.sched_setaffinity(job, {0})"),
    "lower the job's limits": python("import resource\nresource.prlimit(job, resource.RLIMIT_CPU, (1, 1))"),
    "make the job nicer": "renice -n 19 -p $JOB && echo WON",
    "kill the job's cgroup": "echo 1 > $CAGE/cgroup.kill && echo WON",
    "put a process into the job's cgroup": "echo $$ > $CAGE/cgroup.procs && echo WON",
    # output
    "write output into the other's home": mine("echo x", "$HIS/planted")
        + "; [ -e $HIS/planted ] && echo WON",
    "write output in place into the other's home":
        "echo id | qsub -ro -o $HIS/planted; [ -e $HIS/planted ] && echo WON",
    "read the other's output": "cat $HIS/* && echo WON",
    "link in the output folder":
        "ln -sf $HIS/precious $SHARED/anne.out; ln -f $HIS/precious $SHARED/hard && echo WON",
    # from inside a request
    "list the spool from a request": mine("ls $NQSPY_HOME/spool && echo WON"),
    "write into the spool from a request": mine("touch $NQSPY_HOME/spool/x && echo WON"),
    "become root in a request": mine("setpriv --reuid 0 id && echo WON"),
    "find an open descriptor in a request": mine(
        "for n in 3 4 5 6 7 8 9; do [ -w /proc/self/fd/$n ] && echo WON; done; true"
    ),
    "leave the cgroup from a request": mine(
        "for f in /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs; do "
        "(echo $$ > $f) 2>/dev/null && echo WON; done; true"
    ),
    "raise a hard limit in a request": mine("ulimit -H -c 0; ulimit -H -c 100 && echo WON"),
    "lower the niceness in a request": mine("renice -n -5 -p $$ && echo WON"),
}  # fmt: skip
"""Every attack; the manual's page "security" lists their names."""

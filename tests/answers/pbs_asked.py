"""Questions of a PBS client, and its reading of the answers."""

import json
import re


def number(id):
    return int(id.partition(".")[0])


def ask(site, form="table", by="root", **fields):
    """Ask for a list; return exit status, stdout, stderr."""
    answer = site.ask(by, "qstat", text=form, **fields)
    return answer["exit"], answer["out"], answer["err"]


def ids(site, by="root", **fields):
    """Return the jobs of a table."""
    status, out, err = ask(site, by=by, **fields)
    assert (status, err) == (0, "")
    return [line.split()[0] for line in out.splitlines()[2:]]


def jobs(site, by="root", **fields):
    """Return the jobs of a JSON document."""
    status, out, err = ask(site, "full", by, format="json", **fields)
    document = json.loads(out)
    assert re.fullmatch(r"[0-9.]+", document["pbs_version"])
    assert document["pbs_server"] == site.daemon.engine.site.name
    assert isinstance(document["timestamp"], int)
    return status, document.get("Jobs"), err


def selected(site, *criteria, letters="", by="root"):
    answer = site.ask(by, "qselect", text="ids", criteria=[list(each) for each in criteria], letters=letters)
    assert (answer["exit"], answer["err"]) == (0, ""), answer
    return answer["out"].splitlines()

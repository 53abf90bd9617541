"""Launchers of parallel programs under a real daemon: what `mpirun` and its like are told, and that an MPI
program has as many processes as there are PEs, on exactly those."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from daemon.live import Live, command, office
from daemon.test_daemon_mpprun import SITE, WAITS, Called, go, gone, pid

PROGRAM = r"""
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words)
{
    int rank, size, cpu, at;
    char line[8192];
    cpu_set_t cpus;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sched_getaffinity(0, sizeof cpus, &cpus);
    at = sprintf(line, "%d/%d:", rank, size);
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            at += sprintf(line + at, " %d", cpu);
    line[at++] = '\n';
    if (write(1, line, at) != at)
        return 1;
    return MPI_Finalize();
}
"""
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
"""Open MPI wants to be told that it is meant; tests may run as root."""
FILES = (
    "PBS_NODEFILE", "HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
)  # fmt: skip
OFFICE, site = SITE, office


@pytest.fixture(params=["openmpi", "mpich"])
def mpirun(site, request):
    """Return the launcher and a program built for it that prints a line for each rank: `rank/size: CPUs`."""
    kind = request.param
    launcher, compiler = shutil.which(f"mpirun.{kind}"), shutil.which(f"mpicc.{kind}")
    if launcher is None or compiler is None:
        pytest.skip(f"there is no mpirun.{kind} with its mpicc.{kind} here (Debian: {kind}, and its headers)")
    program = site.work / f"rank.{kind}"
    if not program.exists():
        (site.work / "rank.c").write_text(PROGRAM)
        subprocess.run([compiler, "rank.c", "-o", program], cwd=site.work, check=True)
    return launcher, str(program)


def cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def test_an_mpi_program_has_a_process_on_each_pe_of_its_application(site, mpirun):
    done = site.run("mpprun", "-n", "2", *mpirun, env=AS_ROOT).ok()
    both = f"{cpus()[0]} {cpus()[1]}"
    assert sorted(done.lines) == [f"0/2: {both}", f"1/2: {both}"]


@contextmanager
def first_pe_taken(site: Live) -> Iterator[None]:
    """Hold PE 0 by another request in the block."""
    with TemporaryDirectory(dir=site.work) as folder:
        name = f"{Path(folder).name}/holds"
        holds = Called(site, "-n", "1", "sh", "-c", WAITS.format(name), TMPDIR=folder)
        try:
            pid(site, name)
            yield
        finally:
            go(site, name)
            assert holds.ends() == 0


def test_an_mpi_program_stays_on_the_pes_that_it_has(site, mpirun):
    with first_pe_taken(site):
        done = site.run("mpprun", "-n", "1", *mpirun, env=AS_ROOT).ok()
        assert done.lines == [f"0/1: {cpus()[1]}"]
        more = site.run("mpprun", mpirun[0], "-n", "3", mpirun[1], env=AS_ROOT).ok()
        assert sorted(more.lines) == [f"{rank}/3: {cpus()[1]}" for rank in range(3)]


@pytest.mark.parametrize("head", ["#QSUB -lP 2", "#PBS -l select=2", "#SBATCH -n 2"])
def test_an_mpi_program_has_a_process_on_each_pe_of_a_request(site, mpirun, head):
    dialect = {"#Q": "nqs", "#P": "pbs", "#S": "slurm"}[head[:2]]
    shell = {"nqs": ["-s", "/bin/sh"], "pbs": ["-S", "/bin/sh"], "slurm": []}[dialect]
    export = "export " + " ".join(f"{name}={value}" for name, value in AS_ROOT.items())
    (site.work / "job.sh").write_text(f"#!/bin/sh\n{head}\n{export}\n{' '.join(mpirun)}\n")
    id = site.run("qsub", "--dialect", dialect, *shell, "-o", "mpi.out", "job.sh").ok().out.split()[-1]
    assert site.ended(id)["exit_status"] == 0
    both = f"{cpus()[0]} {cpus()[1]}"
    assert sorted(site.text("mpi.out").splitlines()) == [f"0/2: {both}", f"1/2: {both}"]


def test_an_application_is_told_of_its_own_pes_whatever_its_caller_is_told(site):
    names = (*FILES, "NCPUS", "PET_NPROC_PER_NODE")
    theirs = dict.fromkeys(names, "9") | {"OMP_NUM_THREADS": "3", "HYDRA_LAUNCHER": "ssh"}
    show = "import os; print(*(os.environ.get(name) for name in {!r}.split()), sep='\\n')"
    names_shown = " ".join((*names, "OMP_NUM_THREADS", "HYDRA_LAUNCHER", "PET_STANDALONE", "NQSPY_OWN"))
    done = site.run("mpprun", "-n", "2", "python3", "-c", show.format(names_shown), env=theirs).ok()
    first, *files, ncpus, processes, threads, launcher, alone, own = done.lines
    folder = first.removesuffix("/hosts")
    assert files == [first, f"{folder}/slots", f"{folder}/slots"]
    assert (ncpus, processes, threads, launcher, alone, own) == ("2", "2", "3", "ssh", "1", "None")
    assert site.run("mpprun", "sh", "-c", "echo $OMP_NUM_THREADS").ok().out == "\n"


def test_a_request_has_a_line_a_pe_in_the_file_of_hosts_and_in_it_an_application_its_size(site):
    run = " ".join(command("mpprun"))
    script = f"wc -l < $PBS_NODEFILE; echo $PET_NPROC_PER_NODE; {run} -n 1 sh -c 'echo $NCPUS'\n"
    id = site.submit(script, pes=2, stdout=site.work / "told", join=True)
    assert site.ended(id)["exit_status"] == 0
    assert site.text("told").split() == ["2", "2", "1"]


def test_an_application_of_several_sizes_finds_the_one_it_got(site):
    show = ("sh", "-c", "echo $NQSPY_PES $NCPUS $(wc -l < $PBS_NODEFILE)")
    assert site.run("mpprun", "-n", "1-2", *show).ok().out == "0-1 2 2\n"
    with first_pe_taken(site):
        assert site.run("mpprun", "-n", "1,2", *show).ok().out == "1 1 1\n"


def test_applications_find_their_units_in_a_variable_and_not_their_callers(site):
    site.set("create consumable barrier count=4 policy=round_robin env=BARRIER_CIRCUIT")
    show, caller = ("sh", "-c", "echo $BARRIER_CIRCUIT $NQSPY_UNITS"), {"BARRIER_CIRCUIT": "9"}
    outputs = [site.run("mpprun", "-l", "barrier=1", *show, env=caller).ok().out for _ in range(2)]
    assert outputs == ["0 barrier=0\n", "1 barrier=1\n"]
    assert site.run("mpprun", *show, env=caller).ok().out == "\n"
    gone(site)

#!/bin/bash
# As Nextflow's wrapper of a task: the folder is where it was handed in.
nxf_exit() { status=${status:-$?}; printf -- $status > .exitcode; exit $status; }
cd "$NXF_CHDIR"
trap nxf_exit EXIT
trap 'kill $pid' TERM INT USR2
touch .command.begin
bash -ue .command.sh & pid=$!
wait $pid || status=$?

#!/bin/sh
# Snakemake's status command: success, failed or running.
qstat -x -f "$1" | awk '
    $1 == "job_state" { state = $3 }
    $1 == "Exit_status" { status = $3 }
    END { print state != "F" ? "running" : status == "0" ? "success" : "failed" }'

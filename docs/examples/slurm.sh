#!/bin/sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
# One report for each task, named by host and process. If a task is killed, its live file is
# read on its node before the step ends, and its report is written as well.
reports=$SLURM_SUBMIT_DIR/reports.$SLURM_JOB_ID
mkdir -p "$reports"
# shellcheck disable=SC2016 # each task expands its own
srun sh -c 'live=$(mktemp -d) || exit
  cuwarden run --live="$live" --report="$1/%h.%p.txt" -- ./train
  status=$?
  for file in "$live"/*.live; do # also of tasks that wrote their report: same numbers
    [ ! -e "$file" ] || cuwarden report -o "$1/task-$SLURM_PROCID.txt" "$file"
  done
  rm -rf "$live"
  exit $status' sh "$reports"

#!/bin/bash
#SBATCH --job-name=lockstep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
# Trains on two hosts, a rank on each: sbatch slurm.sh RUN.txtpb RUN_DIR [options of lockstep train]
# RUN_DIR lies where all hosts see it. 300 s before the time is over Slurm signals the ranks, which save and end
# with 75; the job is queued again and goes on in RUN_DIR. `scancel --signal=USR1` stops a job for good: the
# ranks save likewise, and RUN_DIR/stop keeps the job out of the queue (remove it to go on).
run=${1:?usage: sbatch slurm.sh RUN.txtpb RUN_DIR [options of lockstep train]}
folder=${2:?usage: sbatch slurm.sh RUN.txtpb RUN_DIR [options of lockstep train]}
shift 2
status=0
srun lockstep train "$run" --run-dir "$folder" "$@" || status=$?
if [ "$status" = 75 ] && [ ! -e "$folder/stop" ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"

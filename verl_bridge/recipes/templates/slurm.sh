#!/usr/bin/env bash
#SBATCH --nodes=<all_nodes>
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=<node_gpus>
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --output=slurm-%j.log
# Starts Ray on all nodes of a Slurm job, and the training on the first. Submit it in this folder: sbatch slurm.sh
# Arguments are passed to verl. Activate the Python environment first, or set PYTHON and RAY.
set -euo pipefail

folder="${SLURM_SUBMIT_DIR:?submit this script with sbatch}"
if [[ ! -f "$folder/run.sh" ]]; then
  echo "slurm.sh: no run.sh in $folder; submit with: cd FOLDER && sbatch slurm.sh" >&2
  exit 2
fi
cd "$folder"

python="${PYTHON:-python}"
ray="${RAY:-ray}"
ulimit -n 65535 2>/dev/null || echo "slurm.sh: 'ulimit -n 65535' failed; $(ulimit -n) files may be too few" >&2

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head="${hosts[0]}"
# Steps share the node, and all its cores: by default Slurm binds a task to one.
on() { srun --overlap --cpu-bind=none --nodes=1 --ntasks=1 --nodelist="$1" "${@:2}"; }

ip="$(on "$head" hostname --ip-address)"
ip="${ip%% *}"
address="$ip:${RAY_PORT:-6379}"

on "$head" "$ray" start --block --head --node-ip-address="$ip" --port="${address##*:}" --num-gpus=<node_gpus> &
# The other nodes wait for the first.
export RAY_raylet_start_wait_time_s=300
for host in "${hosts[@]:1}"; do
  on "$host" "$ray" start --block --address="$address" --num-gpus=<node_gpus> &
done

# verl stops if it starts before all nodes have joined.
export RAY_ADDRESS="$address"
count='
import sys, time, ray
limit = time.monotonic() + 600
while True:
    try:
        ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
        if sum(node["Alive"] for node in ray.nodes()) >= int(sys.argv[2]):
            break
        ray.shutdown()
    except ConnectionError:
        pass
    if time.monotonic() > limit:
        sys.exit("slurm.sh: not all nodes joined the Ray cluster within 600 s")
    time.sleep(5)
'
on "$head" "$python" -c "$count" "$address" "${#hosts[@]}"
on "$head" env "PYTHON=$python" bash "$folder/run.sh" "$@"

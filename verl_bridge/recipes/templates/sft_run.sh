#!/usr/bin/env bash
# Fine-tunes with config.yaml. Arguments are passed to verl, as in: bash run.sh trainer.total_epochs=2
set -euo pipefail

# Modules in the working directory can be imported.
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$PWD"

folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$folder"

export HYDRA_FULL_ERROR=1
export TOKENIZERS_PARALLELISM="${TOKENIZERS_PARALLELISM:-true}"

# Keys are read from environment variables and are not written to this file.
if [[ -n "${WANDB_API_KEY:-}" ]]; then
  set -- 'trainer.logger=[console,wandb]' "$@"
fi

python="${PYTHON:-python}"
config=(--config-path "$folder" --config-name config "folder='${folder//\'/\\\'}'")

# On a CPU: VERL_USE_EXTERNAL_MODULES=verl_bridge.cpu bash run.sh
if [[ ",${VERL_USE_EXTERNAL_MODULES:-}," == *,verl_bridge.cpu,* ]]; then
  "$python" -m verl_bridge.cpu.sft "${config[@]}" "$@"
else
  gpus="${GPUS:-<gpus>}"
  "$python" -m torch.distributed.run --standalone --nproc-per-node "$gpus" \
    -m verl.trainer.sft_trainer "${config[@]}" "trainer.n_gpus_per_node=$gpus" "$@"
fi
#if evaluations

# Evaluate the last checkpoint; an interrupted evaluation is resumed.
step="$(cat checkpoints/latest_checkpointed_iteration.txt)"
<evaluations>
#end

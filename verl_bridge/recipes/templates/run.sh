#!/usr/bin/env bash
# Trains by config.yaml beside it. Arguments go to verl, as in: bash run.sh trainer.total_epochs=2
set -euo pipefail

# A module of your own may lie where this is started.
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$PWD"

folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$folder"

# Ray and many environments open more files than a shell allows by default.
ulimit -n 65535 2>/dev/null || echo "run.sh: 'ulimit -n 65535' was refused; $(ulimit -n) files may be too few" >&2

export HYDRA_FULL_ERROR=1
export TOKENIZERS_PARALLELISM="${TOKENIZERS_PARALLELISM:-true}"
# verl_bridge.trainer has verl log what happens in the environments.
#if own_algorithm
# verl_bridge.advantage has the algorithm <algorithm>, which is not one of verl's own.
#end
export VERL_USE_EXTERNAL_MODULES="<modules>${VERL_USE_EXTERNAL_MODULES:+,$VERL_USE_EXTERNAL_MODULES}"

# Keys are read from the environment, and never written here.
if [[ -n "${WANDB_API_KEY:-}" ]]; then
  set -- 'trainer.logger=[console,wandb]' "$@"
fi

exec "${PYTHON:-python}" -m verl.trainer.main_ppo \
  --config-path "$folder" --config-name config "folder='$folder'" "$@"

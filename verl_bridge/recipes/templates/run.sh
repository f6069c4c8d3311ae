#!/usr/bin/env bash
# Trains with config.yaml. Arguments are passed to verl, as in: bash run.sh trainer.total_epochs=2
set -euo pipefail

# Modules in the working directory can be imported.
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$PWD"

folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$folder"

# Ray and many environments open more files than a shell allows by default.
ulimit -n 65535 2>/dev/null || echo "run.sh: 'ulimit -n 65535' failed; $(ulimit -n) files may be too few" >&2

export HYDRA_FULL_ERROR=1
export TOKENIZERS_PARALLELISM="${TOKENIZERS_PARALLELISM:-true}"
# verl_bridge.trainer keeps failed episodes out of the advantages, and adds metrics of the environments to verl's log.
export VERL_USE_EXTERNAL_MODULES="verl_bridge.trainer${VERL_USE_EXTERNAL_MODULES:+,$VERL_USE_EXTERNAL_MODULES}"

# Keys are read from environment variables and are not written to this file.
if [[ -n "${WANDB_API_KEY:-}" ]]; then
  set -- 'trainer.logger=[console,wandb]' "$@"
fi

#if several_nodes
# Ray's processes on other nodes get only these variables of this shell: modules, and servers of the environments.
for name in PYTHONPATH VERL_USE_EXTERNAL_MODULES ${!AGENTGYM_@}; do
  if [[ "$name" != AGENTGYM_* || "$name" == *_URL ]]; then
    value="${!name}"
    set -- "++ray_kwargs.ray_init.runtime_env.env_vars.$name='${value//\'/\\\'}'" "$@"
  fi
done

#end
exec "${PYTHON:-python}" -m verl.trainer.main_ppo \
  --config-path "$folder" --config-name config "folder='${folder//\'/\\\'}'" "$@"

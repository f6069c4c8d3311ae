#!/usr/bin/env bash
# Starts the training on a running Ray cluster of <all_nodes> nodes. Arguments are passed to verl.
# RAY_API_SERVER_ADDRESS is the address of Ray's dashboard. All nodes need this folder at the same path.
set -euo pipefail

folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

# The job gets only these variables of this shell: Python, and servers of the environments.
variables=("PYTHON=${PYTHON:-python}")
for name in ${!AGENTGYM_@}; do
  if [[ "$name" == *_URL ]]; then
    variables+=("$name=${!name}")
  fi
done

exec "${RAY:-ray}" job submit --address "${RAY_API_SERVER_ADDRESS:-http://127.0.0.1:8265}" \
  -- env "${variables[@]}" bash "$folder/run.sh" "$@"

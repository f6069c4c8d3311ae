#!/usr/bin/env bash
# Starts the training on a running Ray cluster of <all_nodes> nodes. Arguments are passed to verl.
# RAY_API_SERVER_ADDRESS is the address of Ray's dashboard. All nodes need this folder at the same path.
set -euo pipefail

folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

exec "${RAY:-ray}" job submit --address "${RAY_API_SERVER_ADDRESS:-http://127.0.0.1:8265}" \
  -- env "PYTHON=${PYTHON:-python}" bash "$folder/run.sh" "$@"

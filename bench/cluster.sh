#!/usr/bin/env bash
# Measures one transfer on many workers of this machine: see bench/cluster.py.
exec python3 "$(dirname "$0")/cluster.py" "$@"

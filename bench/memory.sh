#!/usr/bin/env bash
# Measures whether remembered numbers of jobs ever cost time: runs under alternating conditions, each with
# the memory that all of them share and with an empty one.
#
#   bench/memory.sh [--rounds N] [--files N] [--dir DIR] RESULTS
#
# RESULTS is a folder for raw numbers (memory.tsv, one line for each run) and for memory.md. In each round
# every condition (plain, one CPU, nice 10, a limit of 200 MB/s) copies N files of 4 KiB (default: 20000)
# twice, in random order: once with the shared memory, once with an empty one. Long copies of four times as
# many files come between rounds, so that there is something to remember. Wanted: a ratio of speeds of 0.97
# or more for each condition. DIR (default: /dev/shm) is the folder to work in; HAKOBU names the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
exec python3 "$here/memory.py" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

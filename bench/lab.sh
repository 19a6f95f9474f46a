#!/usr/bin/env bash
# Measures the lab itself: differences that it claims between a program and itself, what it costs the
# programs that it measures, and how long its page of 500 runs takes.
#
#   bench/lab.sh [--rows NAME,NAME…] [--campaigns N] [--runs N] [--rounds N] RESULTS
#
# RESULTS is a folder for raw numbers (lab.tsv) and for lab.md. Works on tmpfs. Rows: twins (20 campaigns of 10
# runs), outside, report (15 rounds). Needs python3 and rsync.
#
# HAKOBU names the program (default: target/release/hakobu), KEEP_WORK=1 keeps the work folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-lab-XXXXXX)
trap '[[ ${KEEP_WORK:-0} == 1 ]] || rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM

python3 "$here/lab.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

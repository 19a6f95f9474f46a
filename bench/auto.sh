#!/usr/bin/env bash
# Measures `-j auto` against the best fixed number of jobs, for docs/benchmarks/jobs.md.
#
#   bench/auto.sh [--quick] [--rounds N] [--scale X] [--disk DIR] [--rows NAME,NAME…] RESULTS
#
# RESULTS is a folder for raw numbers (auto.tsv, one line for each run) and for auto.md. For each row, and
# for transfers of 10 and of 2 s: a sweep of fixed numbers of jobs, 3 runs a point in random order; then the
# best of them, `-j auto` from a cold start and `-j auto` with what it remembers, 7 runs each in random
# order. Needs root (mounts), gcc, python3 and 15 GB of memory at --scale 1. --scale makes transfers shorter,
# --quick makes 3 rounds instead of 7 and sweeps of 1 run a point, --rows picks rows (bench/auto.sh --list
# names them). --disk is a folder on the disk that is read cold (default: RESULTS); reads take the page cache
# of the whole machine away.
#
# HAKOBU names the program (default: target/release/hakobu), KEEP_WORK=1 keeps the work folders.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${1:-} == --list ]]; then exec python3 "$here/auto.py" --list; fi
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/auto.sh: needs root to mount" >&2; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-auto-XXXXXX)
cleanup() {
  if mountpoint -q "$work/dst"; then umount -l "$work/dst"; fi
  [[ ! -s $work/loop ]] || losetup -d "$(cat "$work/loop")" || true
  [[ ${KEEP_WORK:-0} == 1 ]] || rm -rf --one-file-system "$work" $(cat "$work/disk" 2>/dev/null || true)
}
trap cleanup EXIT
trap 'exit 130' INT TERM

gcc -O2 "$here/timed.c" -o "$work/timed"
export AWS_ACCESS_KEY_ID=hakobubench AWS_SECRET_ACCESS_KEY=hakobubenchsecret AWS_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true XDG_STATE_HOME="$work/state"
python3 "$here/auto.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

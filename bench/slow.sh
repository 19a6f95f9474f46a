#!/usr/bin/env bash
# Measures what hakobu makes of a file system whose every operation takes a given time (bench/slowfs.c), beside cp,
# rsync, diff, du, rm and s5cmd. Rounds are interleaved, and the kernel's names and attributes dropped before each.
#
#   bench/slow.sh [--delay-us N] [--rounds N] [--rows NAME,NAME…] RESULTS
#
# RESULTS is a folder for raw numbers (raw.tsv, one line for each run) and for report.md. Rows: large (one file of
# 400 MB), tree (4,370 files in 190 directories), flat (20,000 files in one), auto (-j auto against fixed numbers).
# Needs root to mount, gcc, python3 and 6 GB of memory; contenders that are not installed are left out with a line.
# Defaults: 1000 us, 7 rounds, all rows but auto.
#
# HAKOBU names the program (default: target/release/hakobu).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/slow.sh: needs root to mount" >&2; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-slow-XXXXXX)
cleanup() {
  if mountpoint -q "$work/far"; then umount -l "$work/far"; fi
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
gcc -O2 "$here/timed.c" -o "$work/timed"
gcc -O2 "$here/slowfs.c" -o "$work/slowfs"
gcc -O2 -pthread "$here/ruler.c" -o "$work/ruler"
export XDG_STATE_HOME="$work/state" AWS_EC2_METADATA_DISABLED=true
export AWS_ACCESS_KEY_ID=bench AWS_SECRET_ACCESS_KEY=bench AWS_REGION=us-east-1
python3 "$here/slow.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

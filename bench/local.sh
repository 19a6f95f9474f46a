#!/usr/bin/env bash
# Measures hakobu beside other copiers, for every figure of docs/benchmarks/local.md.
#
#   bench/local.sh [--quick] [--rounds N] [--scale X] [--rows NAME,NAME…] RESULTS
#
# RESULTS is a folder for raw numbers (raw.tsv, one line for each run) and for report.md, the section for
# that page. Needs root (loop mounts), about 14 GB of memory for all rows, gcc, python3; contenders
# that are not installed are left out with a line. --quick makes 3 rounds instead of 9, --scale makes
# trees smaller, --rows picks rows (bench/local.sh --list names them).
#
# HAKOBU names the program (default: target/release/hakobu), FLOOR another ruler's C source that takes
# the same arguments as bench/ruler.c, KEEP_WORK=1 keeps the work folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${1:-} == --list ]]; then exec python3 "$here/local.py" --list; fi
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/local.sh: needs root to mount images" >&2; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-bench-XXXXXX)
cleanup() {
  for mounted in "$work"/ext4 "$work"/xfs "$work"/large; do
    if mountpoint -q "$mounted"; then umount -l "$mounted"; fi
  done
  [[ ${KEEP_WORK:-0} == 1 ]] || rm -rf --one-file-system "$work"
}
trap cleanup EXIT

gcc -O2 "$here/timed.c" -o "$work/timed"
gcc -O2 -pthread "${FLOOR:-$here/ruler.c}" -o "$work/ruler"
export PATH="$PATH:$HOME/.cargo/bin"
python3 "$here/local.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

#!/usr/bin/env bash
# Measures how well `--bwlimit` holds: the mean, the best and the worst second, and what it costs.
#
#   bench/limits.sh [--quick] [--scale X] [--rows NAME,NAME…] RESULTS
#
# RESULTS is a folder for raw numbers (limits.tsv, one line for each run) and for limits.md. Needs root (a
# tmpfs and a network namespace of its own), iproute2, python3 and 4 GB of memory. --scale makes transfers shorter than 10 s, --quick
# makes 1 round instead of 3, --rows picks rows (bench/limits.sh --list names them).
#
# HAKOBU names the program (default: target/release/hakobu), KEEP_WORK=1 keeps the work folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${1:-} == --list ]]; then exec python3 "$here/limits.py" --list; fi
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/limits.sh: needs root to mount" >&2; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-limits-XXXXXX)
cleanup() {
  if mountpoint -q "$work/dst"; then umount -l "$work/dst"; fi
  [[ ${KEEP_WORK:-0} == 1 ]] || rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

export AWS_ACCESS_KEY_ID=hakobubench AWS_SECRET_ACCESS_KEY=hakobubenchsecret AWS_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true XDG_STATE_HOME="$work/state"
# shellcheck disable=SC2016  # the inner shell expands it
unshare -n sh -c 'ip link set lo up && exec "$@"' - \
  python3 "$here/limits.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

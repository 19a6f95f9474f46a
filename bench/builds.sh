#!/usr/bin/env bash
# Measures two builds of hakobu in turn, so that a change which costs time is seen before it lands.
#
#   bench/builds.sh [--rounds N] [--rows NAME,NAME…] OLD NEW RESULTS
#
# OLD and NEW are programs; RESULTS is a folder for raw numbers (raw.tsv, one line for each run) and for
# report.md: for each row the seconds of both, and old ÷ new (above 1: the new one is faster). --rows picks
# rows by the beginnings of their names (bench/builds.sh --list names them). The rows auto-* are of NEW alone:
# -j 2 in the place of OLD, and -j auto. Trees and images are on tmpfs, S3 is `hakobu serve null`. Needs root
# (loop mounts), 10 GB of memory, gcc, python3.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${1:-} == --list ]]; then exec python3 "$here/builds.py" --list; fi
[[ $# -gt 2 && ${1:-} != --help ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/builds.sh: needs root to mount images" >&2; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-bench-XXXXXX)
cleanup() {
  for mounted in "$work"/ext4 "$work"/xfs; do
    if mountpoint -q "$mounted"; then umount -l "$mounted"; fi
  done
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

gcc -O2 "$here/timed.c" -o "$work/timed"
gcc -O2 -pthread "${FLOOR:-$here/ruler.c}" -o "$work/ruler"
export AWS_ACCESS_KEY_ID=bench AWS_SECRET_ACCESS_KEY=bench AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
python3 "$here/builds.py" --work "$work" "$@"

#!/usr/bin/env bash
# Measures hakobu beside s5cmd, aws and s3cmd against S3 servers on this machine, for docs/benchmarks/s3.md.
#
#   bench/s3.sh [--quick] [--rounds N] [--scale X] [--rows NAME,NAME…] RESULTS
#
# RESULTS is a folder for raw numbers (raw.tsv, one line for each run) and for report.md. Works on tmpfs
# and takes up to 16 GB of it at --scale 1. Needs gcc and python3; contenders and servers that are not on
# PATH (s5cmd, aws, s3cmd with parallel; versitygw, s3s-fs) are left out with a line. --quick makes 3
# rounds instead of 7, --scale makes data sets smaller, --rows picks rows (bench/s3.sh --list names them).
#
# HAKOBU names the program (default: target/release/hakobu), KEEP_WORK=1 keeps the work folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${1:-} == --list ]]; then exec python3 "$here/s3.py" --list; fi
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-s3-XXXXXX)
trap '[[ ${KEEP_WORK:-0} == 1 ]] || rm -rf --one-file-system "$work"' EXIT

gcc -O2 "$here/timed.c" -o "$work/timed"
export AWS_ACCESS_KEY_ID=hakobubench AWS_SECRET_ACCESS_KEY=hakobubenchsecret AWS_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true XDG_STATE_HOME="$work/state"
python3 "$here/s3.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

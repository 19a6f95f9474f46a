#!/usr/bin/env bash
# Measures `hakobu io` beside fio, with the same options on the same files, for docs/benchmarks/io.md.
#
#   bench/io.sh [--quick] [--rounds N] [--seconds S] [--rows NAME,NAME…] [--disk FOLDER] [--pin CPU] RESULTS
#
# RESULTS is a folder for raw numbers (io.tsv, one line for each run) and for io.md. Works on tmpfs and
# takes 2 GB of it. Needs root (loop devices, control groups), gcc, python3, fio and losetup. Each round
# runs all contenders of a row in turn; --quick makes 3 rounds of 1 s instead of 7 of 3 s, --rows picks
# rows by the beginnings of their names (bench/io.sh --list names them), --disk is the folder for the rows
# of a real disk (left out without it), --pin keeps all one-thread rows on one CPU.
#
# HAKOBU names the program (default: target/release/hakobu), KEEP_WORK=1 keeps the work folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${1:-} == --list ]]; then exec python3 "$here/io.py" --list; fi
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/io.sh: needs root for loop devices and control groups" >&2; exit 2; }
command -v fio >/dev/null || { echo "bench/io.sh: fio is not installed" >&2; exit 2; }

work=$(mktemp -d /dev/shm/hakobu-io-XXXXXX)
trap '[[ ${KEEP_WORK:-0} == 1 ]] || rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM

gcc -O2 "$here/timed.c" -o "$work/timed"
gcc -O2 "$here/pread.c" -o "$work/pread"
python3 "$here/io.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

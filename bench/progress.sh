#!/usr/bin/env bash
# Compares what progress shows with what has moved, and measures what progress costs. As root.
#
#   bench/progress.sh [--rounds N] [--scale X] [--only PART] [--dir DIR] RESULTS
#
# RESULTS is a folder for raw numbers (progress.tsv) and for progress.md. Each case runs twice: once to know how long it
# takes, once with SIGUSR1 at ten moments. What has moved comes from the kernel: between paths /proc/PID/io, with S3 the
# loopback's counters in a network namespace of its own, where `hakobu serve null` is the other end (of a download also
# what was written: the rest is unread in sockets). Wanted: the line
# differs from that by 10 % or by what moves in 1 s; from a third of the run on, the time left in `--json` is right
# within 25 % (or 0.5 s). The cost is CPU time: a copy of 20,000 files of 4 KiB with a bar on a terminal, with `--json`,
# and with neither, N times in turn (default 15). X multiplies amounts; PART is a part of a case's name, or `cost`; DIR
# (default: /dev/shm) is the folder to work in, with room for 10 GB; HAKOBU names the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin
# shellcheck disable=SC2016  # the inner shell expands it
exec unshare --net bash -c 'ip link set lo up && exec python3 "$@"' bash \
  "$here/progress.py" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

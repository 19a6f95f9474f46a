#!/usr/bin/env bash
# Measures transfers to another machine beside rsync, scp, tar | ssh and cat | ssh, all over the same ssh: a private
# sshd on 127.0.0.1 with keys and a configuration of its own, behind bench/delay.c where a row has a round trip.
#
#   bench/remote.sh [--rounds N] [--scale X] [--way push|pull] [--rows NAME,NAME…] [--without NAME,NAME…] RESULTS
#
# RESULTS is a folder for raw numbers (remote.tsv, one line for each run) and for remote.md. --rows picks rows by the
# beginnings of their names (bench/remote.sh --list names them), --scale multiplies numbers of files and the sizes of
# large ones, --without leaves contenders out. Rounds are in turn (A B C, B C A, …; default 7, after one to warm up
# whose result is compared with the source); a round begins with a login that does nothing, and times are beyond its
# median. CPU seconds are those of both ends with ssh and sshd: each end has a cgroup of its own. Peaks of memory are
# of the largest process of an end. Bytes are those on the loopback of a network namespace, headers included.
#
# Everything is on tmpfs (4 GB with --scale 1) and goes with the run. Needs root (the namespace, cgroups), sshd, rsync,
# scp, gcc, python3. HAKOBU names the program (default: target/release/hakobu).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${1:-} == --list ]]; then exec python3 "$here/remote.py" --list; fi
[[ $# -gt 0 && ${1:-} != --help ]] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/remote.sh: needs root for a network namespace and cgroups" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin

work=$(mktemp -d /dev/shm/hakobu-remote-XXXXXX)
cleanup() { rm -rf --one-file-system "$work"; }
trap cleanup EXIT
trap 'exit 130' INT TERM
gcc -O2 "$here/timed.c" -o "$work/timed"
gcc -O2 "$here/delay.c" -o "$work/delay"
# shellcheck disable=SC2016  # the inner shell expands it
unshare --net bash -c 'ip link set lo up && exec python3 "$@"' bash \
  "$here/remote.py" --work "$work" --hakobu "${HAKOBU:-$here/../target/release/hakobu}" "$@"

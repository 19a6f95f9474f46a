#!/usr/bin/env bash
# Measures one large file where every operation waits: between a file system in user space with a delay for each
# operation (bench/slowfs.c) and memory, in both directions and on it, against cp. Rounds are interleaved.
#
#   bench/slow.sh [--delay-us N] [--mb N] [--rounds N] RESULTS
#
# RESULTS is a folder for raw numbers (slow.tsv: work, program, round, seconds) and for slow.md. Needs root to mount,
# gcc and 3 GB of memory. Defaults: 1000 us, 400 MB, 7 rounds.
#
# HAKOBU names the program (default: target/release/hakobu), OTHER a second build of it to compare with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

delay_us=1000 mb=400 rounds=7
while [[ ${1:-} == --* ]]; do
  case $1 in
    --delay-us) delay_us=$2 ;;
    --mb) mb=$2 ;;
    --rounds) rounds=$2 ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift 2
done
[[ $# == 1 ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/slow.sh: needs root to mount" >&2; exit 2; }
results=$1
hakobu=${HAKOBU:-$here/../target/release/hakobu}

work=$(mktemp -d /dev/shm/hakobu-slow-XXXXXX)
cleanup() {
  if mountpoint -q "$work/far"; then umount -l "$work/far"; fi
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
export XDG_STATE_HOME="$work/state"

gcc -O2 -pthread "$here/slowfs.c" -o "$work/slowfs"
mkdir -p "$work/far" "$work/near" "$results"
"$work/slowfs" "$work/far" "$delay_us" 300 &
for _ in $(seq 100); do mountpoint -q "$work/far" && break; sleep 0.1; done
head -c "${mb}MB" /dev/urandom > "$work/near/source"
touch -d '2 days ago' "$work/near/source"
cp --preserve=timestamps "$work/near/source" "$work/far/source"

# Seconds that a command takes; the copy is compared and removed.
measure() {
  local target=$1 begun ended
  shift
  begun=$(date +%s%N)
  "$@"
  ended=$(date +%s%N)
  cmp -s "$work/near/source" "$target" || { echo "bench/slow.sh: wrong content: $*" >&2; exit 1; }
  rm "$target"
  awk -v ns=$((ended - begun)) 'BEGIN { printf "%.4f\n", ns / 1e9 }'
}

: > "$results/slow.tsv"
for round in $(seq "$rounds"); do
  for name in far-near near-far far-far; do
    source=$work/${name%-*}/source target=$work/${name#*-}/target
    programs=(hakobu cp)
    [[ -z ${OTHER:-} ]] || programs+=(other)
    for program in "${programs[@]}"; do
      case $program in
        hakobu) command=("$hakobu" cp --no-memory) ;;
        other) command=("$OTHER" cp --no-memory) ;;
        cp) command=(cp) ;;
      esac
      seconds=$(measure "$target" "${command[@]}" "$source" "$target")
      printf '%s\t%s\t%s\t%s\n' "$name" "$program" "$round" "$seconds" >> "$results/slow.tsv"
    done
  done
done

python3 - "$results/slow.tsv" > "$results/slow.md" <<'PYTHON'
import collections, statistics, sys
times = collections.defaultdict(dict)
for line in open(sys.argv[1]):
    work, program, number, seconds = line.split()
    times[work, program][number] = float(seconds)
print("| work | program | median s | fastest | slowest | times as long as hakobu, paired |")
print("|---|---|---|---|---|---|")
for (work, program), of in times.items():
    ratio = statistics.median(of[number] / times[work, "hakobu"][number] for number in of)
    seconds = sorted(of.values())
    print(f"| {work} | {program} | {statistics.median(seconds):.2f} | {seconds[0]:.2f} | {seconds[-1]:.2f} | {ratio:.2f} |")
PYTHON
cat "$results/slow.md"

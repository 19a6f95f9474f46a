#!/usr/bin/env bash
# Measures one large object over a link of 1 Gbit/s to a server that answers after 1, 20 and 100 ms: bytes a second as
# a share of the link's. The server lives in a network namespace behind a pair of virtual interfaces with token
# buckets (tc-tbf(8)), and delays its answers itself (serve null --latency).
#
#   bench/distance.sh [--rounds N] [--mb N] RESULTS
#
# RESULTS is a folder for raw numbers (distance.tsv: latency, direction, program, round, seconds) and distance.md.
# Needs root, ip and tc, and room for the object in memory twice. Defaults: 5 rounds, 2000 MB. s5cmd is left out where
# it is not installed.
#
# HAKOBU names the program (default: target/release/hakobu).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

rounds=5 mb=2000
while [[ ${1:-} == --* ]]; do
  case $1 in
    --rounds) rounds=$2 ;;
    --mb) mb=$2 ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift 2
done
[[ $# == 1 ]] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
[[ $(id -u) == 0 ]] || { echo "bench/distance.sh: needs root for a network namespace" >&2; exit 2; }
results=$1
hakobu=$(realpath "${HAKOBU:-$here/../target/release/hakobu}")

work=$(mktemp -d /dev/shm/hakobu-distance-XXXXXX)
space=hakobu-$$ near=hk$$a far=hk$$b server=
cleanup() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  ip netns del "$space" 2>/dev/null || true
  ip link del "$near" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
export XDG_STATE_HOME="$work/state" AWS_EC2_METADATA_DISABLED=true
export AWS_ACCESS_KEY_ID=bench AWS_SECRET_ACCESS_KEY=bench AWS_REGION=us-east-1

ip netns add "$space"
ip link add "$near" type veth peer name "$far" netns "$space"
ip addr add 198.18.77.1/30 dev "$near"
ip -n "$space" addr add 198.18.77.2/30 dev "$far"
ip link set "$near" up
ip -n "$space" link set "$far" up
bucket=(root tbf rate 1gbit burst 256kb latency 50ms)
tc qdisc add dev "$near" "${bucket[@]}"
ip netns exec "$space" tc qdisc add dev "$far" "${bucket[@]}"

mkdir -p "$results"
head -c "${mb}MB" /dev/urandom > "$work/source"
programs=(hakobu)
if type -P s5cmd >/dev/null; then programs+=(s5cmd); fi
url=http://198.18.77.2:9920
: > "$results/distance.tsv"
for latency in 1ms 20ms 100ms; do
  ip netns exec "$space" "$hakobu" serve null --listen 198.18.77.2:9920 --keys 1 --object-size "${mb}000000" \
    --latency "$latency" > "$work/ready" 2>/dev/null &
  server=$!
  for _ in $(seq 100); do [[ -s $work/ready ]] && break; sleep 0.05; done
  key=$("$hakobu" ls -R --endpoint-url "$url" s3://bench/ | awk '{ print $NF; exit }')
  for round in $(seq "$rounds"); do
    for way in get put; do
      for program in "${programs[@]}"; do
        case $program in
          hakobu) command=("$hakobu" cp --no-memory --endpoint-url "$url") ;;
          s5cmd) command=(s5cmd --endpoint-url "$url" cp) ;;
        esac
        case $way in
          get) command+=("s3://bench/$key" "$work/target") ;;
          put) command+=("$work/source" s3://bench/up) ;;
        esac
        begun=$(date +%s%N)
        "${command[@]}" > /dev/null
        ended=$(date +%s%N)
        rm -f "$work/target"
        printf '%s\t%s\t%s\t%s\t%s\n' "$latency" "$way" "$program" "$round" \
          "$(awk -v ns=$((ended - begun)) 'BEGIN { printf "%.4f", ns / 1e9 }')" >> "$results/distance.tsv"
      done
    done
  done
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
done

python3 - "$results/distance.tsv" "$mb" > "$results/distance.md" <<'PYTHON'
import collections, statistics, sys
times = collections.defaultdict(list)
for line in open(sys.argv[1]):
    latency, way, program, _, seconds = line.split()
    times[latency, way, program].append(float(seconds))
print("| latency | direction | program | median s | share of 125 MB/s | slowest |\n|---|---|---|---|---|---|")
for (latency, way, program), of in times.items():
    share = lambda s: float(sys.argv[2]) / s / 125
    print(f"| {latency} | {way} | {program} | {statistics.median(of):.2f} | {share(statistics.median(of)):.3f} | {share(max(of)):.3f} |")
PYTHON
cat "$results/distance.md"

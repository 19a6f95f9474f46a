#!/usr/bin/env bash
# Makes the picture of README.md, docs/images/demo.svg: 16 GB in 8,000 sparse files, in memory, are uploaded to
# `hakobu serve null` on this machine, and bench/recording.py draws the terminal. Run it on a quiet machine with a
# release build; about half a minute.
#
#   bench/recording.sh [--files N] [--output FILE]
#
# HAKOBU names the program (default: target/dist/hakobu or target/release/hakobu).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
files=8000 output=$here/../docs/images/demo.svg
while [[ ${1:-} == --* ]]; do
  case $1 in
    --files) files=$2 ;;
    --output) output=$(realpath "$2") ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift 2
done
for program in "${HAKOBU:-}" "$here"/../target/{dist,x86_64-unknown-linux-musl/dist,release}/hakobu; do
  [[ -x $program ]] && break
done
[[ -x $program ]] || { echo "bench/recording.sh: no program: build it, or name it with HAKOBU" >&2; exit 1; }
HAKOBU=$(realpath "$program")
export HAKOBU
scene=$(mktemp -d -p /dev/shm)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$scene"' EXIT
cd "$scene"
mkdir photos
for ((at = 0; at < files; at += 500)); do
  mkdir "photos/$at"
  truncate -s 2000000 "photos/$at/"{001..500}.raw
done
export AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1 XDG_STATE_HOME=$scene/state
"$HAKOBU" serve null --listen 127.0.0.1:0 >ready 2>&1 &
server=$!
for _ in $(seq 100); do
  AWS_ENDPOINT_URL=$(grep -o 'http://[0-9.:]*' ready | head -n 1) && break
  sleep 0.1
done
export AWS_ENDPOINT_URL
python3 -B "$here/recording.py" --output "$output" hakobu sync -a photos/ s3://data/photos/

#!/usr/bin/env bash
# Makes the tables of local copies and of objects in BENCHMARKS.md and README.md: runs the rows that it shows with
# bench/local.sh and bench/s3.sh, and writes the page.
#
#   bench/page.sh [--from FILE.tsv,FILE.tsv…] [--rounds N] [--quick] RESULTS
#
# RESULTS is a folder for raw numbers (local/raw.tsv, s3/raw.tsv) and for page.md. --from writes the page from raw
# numbers that exist and measures nothing. --quick takes a fiftieth of the data and three rounds: it shows that
# everything works, and its figures mean nothing. Needs what the two scripts need; HAKOBU names the program; sizes are
# those of the programs that `make dist lean` left in target/package. About an hour; --quick some minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rounds=7 scale=1 from=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --from) from=$2 ;;
    --rounds) rounds=$2 ;;
    --quick)
      rounds=3 scale=0.02
      shift
      continue
      ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift 2
done
results=${1:?usage: bench/page.sh [--from FILES] [--rounds N] [--quick] RESULTS}
mkdir -p "$results"
if [[ -z $from ]]; then
  "$here/local.sh" --rounds "$rounds" --scale "$scale" --rows copy,unchanged,large,memory "$results/local"
  "$here/s3.sh" --rounds "$rounds" --scale "$scale" --rows small,medium,large,list,versitygw,large-versitygw "$results/s3"
  from=$results/local/raw.tsv,$results/s3/raw.tsv
fi
IFS=, read -ra files <<<"$from"
PYTHONDONTWRITEBYTECODE=1 python3 "$here/page.py" --scale "$scale" "${files[@]}" >"$results/page.md"
if [[ -f $results/local/report.md ]]; then
  sed -n '/^### memory/,/^### /{/^### memory/d;/^### /d;p}' "$results/local/report.md" >>"$results/page.md"
fi
for program in "$here"/../target/package/x86_64{,-lean}/hakobu; do
  if [[ -f $program ]]; then
    name=$(basename "$(dirname "$program")")
    awk -v bytes="$(stat -c %s "$program")" -v name="$name" \
      'BEGIN { printf "| the static program, %s | %.1f MB |\n", name, bytes / 1e6 }' >>"$results/page.md"
  fi
done
echo "$results/page.md"

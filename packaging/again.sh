#!/usr/bin/env bash
# Builds again what packaging/dist.sh TARGET [lean] left, in another folder with another home, umask and time zone, and
# compares the archives byte by byte. Called by packaging/check.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?usage: packaging/again.sh TARGET [lean]}
kind=${2:-}
. packaging/same.sh "$target"
# The copy has flags of its own.
unset CARGO_ENCODED_RUSTFLAGS "CFLAGS_${target//-/_}" CARGO_TARGET_DIR
archives=(target/package/hakobu-*-"${target%%-*}-linux${kind:+-$kind}.tar.gz")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/cargo" "$work/another folder"
ln -s "${CARGO_HOME:-$HOME/.cargo}"/* "$work/cargo/"
git ls-files -z | tar --null -T - -cf - | tar -C "$work/another folder" -xf -
(
  umask 077
  CARGO_HOME=$work/cargo TZ=Asia/Tokyo "$work/another folder/packaging/dist.sh" "$target" $kind
)
first=${archives[0]} second="$work/another folder/${archives[0]}"
if ! cmp "$first" "$second"; then
  diff <(tar -tvzf "$first") <(tar -tvzf "$second") || true
  mkdir "$work/first" "$work/second"
  tar -C "$work/first" -xzf "$first"
  tar -C "$work/second" -xzf "$second"
  diff -rq "$work/first" "$work/second" || true
  # A path of one of the builds is the usual cause.
  grep -arhoE "[[:print:]]*(${PWD}|${work})[[:print:]]*" "$work/first" "$work/second" | sort | uniq -c | head -20 || true
  exit 1
fi
echo "$first: the same bytes from another folder"

#!/usr/bin/env bash
# Builds every package and runs its result; called by .ci/full. What a machine cannot have (a container engine) is
# named, and an error with HAKOBU_REQUIRE_ALL=1 unless HAKOBU_WITHOUT names it.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
servers=()
trap '((${#servers[@]} == 0)) || kill "${servers[@]}" || true; rm -rf "$work"' EXIT
mkdir "$work/home"
demo=(demo --files 200 --large 0)

# Runs a program with a home of its own.
at_home() {
  HOME=$work/home XDG_STATE_HOME=$work/state "$@"
}

# Fails unless a folder holds the manual pages and the completions.
has_texts() {
  local man=$1 bash=$2
  man -l "$man/hakobu-sync.1"* | grep 'EXIT STATUS' >/dev/null
  bash -n "$bash"
}

run_archive() {
  local name=$1 runner=${2:-}
  mkdir "$work/$name"
  tar -C "$work/$name" --strip-components=1 -xzf target/package/hakobu-*-"$name".tar.gz
  (cd target/package && sha256sum -c --quiet hakobu-*-"$name".tar.gz.sha256)
  has_texts "$work/$name/man/man1" "$work/$name/completions/hakobu.bash"
  grep -q '^ring ' "$work/$name/THIRD-PARTY-LICENCES.txt"
  at_home $runner "$work/$name/hakobu" help topics | grep tuning >/dev/null
}

# Waits for the first line of a file that a server writes, and prints it.
first_line() {
  for _ in {1..100}; do
    if [[ -s $1 ]]; then
      head -n 1 "$1"
      return
    fi
    sleep 0.1
  done
  echo "$1: no server has begun" >&2
  return 1
}

without() {
  if [[ ${HAKOBU_REQUIRE_ALL:-0} == 1 && ,${HAKOBU_WITHOUT:-}, != *,$1,* ]]; then
    echo "HAKOBU_REQUIRE_ALL is set, and: $2" >&2
    exit 1
  fi
  echo "skipped: $2"
}

# Each crate builds from what its package holds.
cargo package --workspace --allow-dirty --quiet

packaging/dist.sh x86_64-unknown-linux-musl
packaging/again.sh x86_64-unknown-linux-musl
run_archive x86_64-linux
at_home "$work/x86_64-linux/hakobu" "${demo[@]}"
# Commands that are measured are started by calls of the program's own.
at_home "$work/x86_64-linux/hakobu" watch -o /dev/null -- true
at_home "$work/x86_64-linux/hakobu" bench -q -r 2 -w 0 --results "$work/results" true
# As in an image from scratch: no library, no file of the system but devices and processes.
if [[ $(id -u) == 0 ]]; then
  root=$work/root
  mkdir -p "$root"/{dev,proc,tmp}
  cp "$work/x86_64-linux/hakobu" "$root/hakobu"
  unshare --mount sh -ec 'mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; shift; exec chroot "$@"' \
    sh "$root" "$root" /hakobu "${demo[@]}"
else
  without root "a run without any file of the system: needs root"
fi

packaging/dist.sh x86_64-unknown-linux-musl lean
packaging/again.sh x86_64-unknown-linux-musl lean
run_archive x86_64-linux-lean
# It has a profile, compiler flags and a link of its own: every kind of its work is done once.
lean=$work/x86_64-linux-lean/hakobu
at_home "$lean" cp -a docs "$work/docs"
at_home "$lean" verify docs "$work/docs"
export AWS_ACCESS_KEY_ID=check AWS_SECRET_ACCESS_KEY=check-check AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
mkdir -p "$work/store/bucket"
"$work/x86_64-linux/hakobu" serve s3 "$work/store" >"$work/served" &
servers+=($!)
port=$(first_line "$work/served" | sed 's/.*://; s,/$,,')
packaging/tls.py "$port" "$work" >"$work/tls" &
servers+=($!)
for url in "http://127.0.0.1:$port" "https://localhost:$(first_line "$work/tls")"; do
  s3=(env AWS_ENDPOINT_URL="$url" AWS_CA_BUNDLE="$work/cert.pem" "$lean")
  at_home "${s3[@]}" sync -r docs/ "s3://bucket/${url%%:*}/"
  at_home "${s3[@]}" cp -r "s3://bucket/${url%%:*}/" "$work/${url%%:*}/"
  diff -r docs "$work/${url%%:*}"
  if at_home "${s3[@]}" cp "s3://bucket/nothing" "$work/nothing" 2>"$work/error"; then exit 1; fi
  grep -q "s3://bucket/nothing" "$work/error"
done
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_EC2_METADATA_DISABLED
kill "${servers[@]}"
servers=()

packaging/dist.sh aarch64-unknown-linux-musl
run_archive aarch64-linux qemu-aarch64-static
at_home qemu-aarch64-static "$work/aarch64-linux/hakobu" "${demo[@]}"

# The second build has nothing to compile: what differed would be the wheel's own.
packaging/wheel.sh
cp target/package/hakobu-*.whl "$work"
(umask 077; TZ=Asia/Tokyo packaging/wheel.sh)
cmp target/package/hakobu-*.whl "$work"/hakobu-*.whl
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-index --no-deps target/package/hakobu-*.whl
at_home "$work/venv/bin/hakobu" "${demo[@]}"
"$work/venv/bin/python" -m hakobu --version

packaging/deb.sh
dpkg-deb -x target/package/hakobu_*.deb "$work/deb"
has_texts "$work/deb/usr/share/man/man1" "$work/deb/usr/share/bash-completion/completions/hakobu"
at_home "$work/deb/usr/bin/hakobu" "${demo[@]}"

if docker info >/dev/null 2>&1; then
  docker build -q -t hakobu-check -f packaging/Dockerfile target/package/x86_64
  docker run --rm hakobu-check "${demo[@]}"
  docker image rm hakobu-check >/dev/null
else
  without docker "the container image: needs a running docker"
fi

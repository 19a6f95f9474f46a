#!/usr/bin/env bash
# Builds a wheel of the static program with the Python package: target/package/*.whl. Needs maturin, or python3-venv
# to install it in target/package/venv. The program needs no C library of the system, so the wheel's tag names the
# oldest manylinux.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-x86_64-unknown-linux-musl}
. packaging/cross.sh "$target"
. packaging/same.sh "$target"
maturin=$(type -P maturin || true)
if [[ -z $maturin ]]; then
  python3 -m venv target/package/venv
  target/package/venv/bin/pip install -q 'maturin==1.16.0'
  maturin=target/package/venv/bin/maturin
fi
rm -f target/package/*.whl
"$maturin" build --target "$target" --out target/package

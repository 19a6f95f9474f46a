#!/usr/bin/env bash
# Makes a Debian package of what packaging/dist.sh built for x86-64: target/package/*.deb. Needs cargo-deb.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=x86_64-unknown-linux-musl
type -P cargo-deb >/dev/null || "$cargo" install --locked cargo-deb --version 3.8.0
. packaging/same.sh "$target"
rm -f target/package/*.deb
# Debian's names and places of completions.
mkdir -p target/package/deb/{bash,zsh,fish}
cp target/package/x86_64/completions/hakobu.bash target/package/deb/bash/hakobu
cp target/package/x86_64/completions/hakobu.zsh target/package/deb/zsh/_hakobu
cp target/package/x86_64/completions/hakobu.fish target/package/deb/fish/hakobu.fish
"$cargo" deb --no-build --no-strip --profile dist --target "$target" --output target/package

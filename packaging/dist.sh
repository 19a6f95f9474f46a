#!/usr/bin/env bash
# Builds a static program and packs it: packaging/dist.sh TARGET [lean]. Leaves the folder
# target/package/ARCH[-lean], the archive beside it, and the archive's checksum. CARGO names another cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?usage: packaging/dist.sh TARGET [lean]}
kind=${2:-}
arch=${target%%-*}
cargo=${CARGO:-cargo}
features=()
# Addresses to adjust at the start as a bitmap (DT_RELR), a tenth of the size; musl reads it since 1.2.4.
linker=(-zpack-relative-relocs)
flags=()
profile=dist
bytes_max=25000000
if [[ $kind == lean ]]; then
  features=(--no-default-features)
  profile=lean
  # A panic aborts, so nothing reads the tables that unwind the stack.
  flags=(-Cforce-unwind-tables=no)
  linker+=(--no-eh-frame-hdr "-Tpackaging/no-unwind-tables.ld")
  bytes_max=12000000
fi
. packaging/cross.sh "$target"
. packaging/same.sh "$target" "${flags[@]}"

"$cargo" rustc --locked --profile "$profile" --target "$target" "${features[@]}" --bin hakobu -- \
  "${linker[@]/#/-Clink-arg=$to_linker}"
built=${CARGO_TARGET_DIR:-target}/$target/$profile/hakobu
bytes=$(stat -c %s "$built")
if ((bytes > bytes_max)); then
  echo "$built has $bytes bytes, at most $bytes_max are wanted" >&2
  exit 1
fi
if file -L "$built" | grep -q 'dynamically linked.*interpreter'; then
  echo "$built is not static" >&2
  exit 1
fi

name=hakobu-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)-$arch-linux${kind:+-$kind}
package=target/package/$arch${kind:+-$kind}
rm -rf "$package" target/package/hakobu-*-"$arch-linux${kind:+-$kind}".tar.gz*
mkdir -p "$package/completions"
install -m 755 "$built" "$package/hakobu"
"${runner[@]}" "$package/hakobu" man --install "$package/man"
for shell in bash elvish fish powershell zsh; do
  "${runner[@]}" "$package/hakobu" completions "$shell" >"$package/completions/hakobu.$shell"
done
cp LICENSE-MIT LICENSE-APACHE README.md "$package"
packaging/licences.py --target "$target" "${features[@]}" >"$package/THIRD-PARTY-LICENCES.txt"
packaging/archive.sh "$package" "$name"
echo "target/package/$name.tar.gz: the program has $bytes bytes"

# Sourced: what makes a program and its archive the same bytes in every folder and at any time.
# usage: . packaging/same.sh TARGET [RUSTFLAG...]
# Paths of this machine become names that are the same everywhere: in panic messages (Rust) and assertions (C). Files
# in archives have the time of the last commit (https://reproducible-builds.org/specs/source-date-epoch/), or where
# there is none the oldest one that every format can hold.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
same_rustc=$(type -P "${RUSTC:-rustc}")
same_target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# The last one that fits counts.
same_paths=(
  "$PWD=/hakobu"
  "$same_target=/target"
  "${CARGO_HOME:-$HOME/.cargo}/registry/src=/registry"
  "$("$same_rustc" --print sysroot)/lib/rustlib/src/rust=/rustc/$("$same_rustc" -vV | sed -n 's/^commit-hash: //p')"
)
# shellcheck disable=SC2206  # RUSTFLAGS is words
same_flags=(${RUSTFLAGS:-} "${same_paths[@]/#/--remap-path-prefix=}" "${@:2}")
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${same_flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
# The C compiler's, by target, quoted as in a shell.
same_cflags=CFLAGS_${1//-/_}
printf -v "$same_cflags" '%s%s' "${!same_cflags:-}" "$(printf ' %q' "${same_paths[@]/#/-ffile-prefix-map=}")"
export "${same_cflags?}" CC_SHELL_ESCAPED_FLAGS=1

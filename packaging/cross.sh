# Sourced: what a target needs beside Rust's own, and the program that runs its programs here.
# usage: . packaging/cross.sh TARGET
runner=()
# What marks an argument for the linker: the C compiler links.
to_linker=-Wl,
if type -P rustup >/dev/null && ! rustup target list --installed | grep -qx "$1"; then
  rustup target add "$1"
fi
case $1 in
  x86_64-unknown-linux-musl) type -P musl-gcc >/dev/null || need+=(musl-tools) ;;
  aarch64-unknown-linux-musl)
    type -P aarch64-linux-gnu-gcc >/dev/null || need+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    type -P qemu-aarch64-static >/dev/null || need+=(qemu-user-static)
    # The assembler parts of the cryptography want a C compiler; Rust has the C library and the linker.
    export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc
    export CFLAGS_aarch64_unknown_linux_musl="-U_FORTIFY_SOURCE -mno-outline-atomics"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
    to_linker=
    if [[ $(uname -m) != aarch64 ]]; then runner=(qemu-aarch64-static); fi
    ;;
  *)
    echo "$1: packages are built for x86_64-unknown-linux-musl and aarch64-unknown-linux-musl" >&2
    exit 2
    ;;
esac
if [[ -n ${need:-} ]]; then
  echo "missing packages (Debian's names): ${need[*]}" >&2
  exit 1
fi

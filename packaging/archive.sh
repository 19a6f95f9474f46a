#!/usr/bin/env bash
# Packs a folder: packaging/archive.sh FOLDER NAME makes NAME.tar.gz beside it, in which the folder is called NAME, and
# the archive's checksum. Equal files give equal archives: names are sorted, times are SOURCE_DATE_EPOCH, owners are
# root, and permissions do not depend on the umask.
set -euo pipefail
folder=${1:?usage: packaging/archive.sh FOLDER NAME}
name=${2:?usage: packaging/archive.sh FOLDER NAME}
cd "$(dirname "$folder")"
tar --transform "s,^$(basename "$folder"),$name," --format=ustar --sort=name --owner=0 --group=0 --numeric-owner \
  --mode=u+rw,go-w,a+rX --mtime="@${SOURCE_DATE_EPOCH:?}" -cf - "$(basename "$folder")" | gzip -n >"$name.tar.gz"
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"

//! The options of `sync` about writing files.

use super::reading::Reading;
use crate::options::{Group, flag, put, titled, value, values};
use hakobu_transfer::policy::{Append, Basis};
use std::os::unix::ffi::OsStrExt;

/// All of them, in the order of the help.
pub static WRITTEN: Group<Reading> = titled("How files are written").with(&[
    flag("keep-dirlinks", Some('K'), "a symlink to a directory in DST is that directory")
        .off(&["no-keep-dirlinks", "no-K"])
        .local("")
        .sets(|it, on| it.policy.keep_dirlinks = on),
    flag("backup", Some('b'), "rename entries that would be replaced or removed")
        .off(&["no-backup"])
        .local("")
        .sets(|it, on| it.policy.backup = on),
    value("backup-dir", None, "DIR", "... at the same path below DIR, which is relative to DST")
        .local("")
        .reads(|it, arg| {
            if arg.value.is_empty() {
                return Err("--backup-dir needs a folder".into());
            }
            it.policy.backup = true;
            put(&mut it.policy.backup_dir, Some(arg.path()))
        }),
    value("suffix", None, "SUFFIX", "suffix of backups (~; none with --backup-dir)")
        .local("")
        .reads(|it, arg| put(&mut it.suffix, Some(arg.value.as_bytes().to_vec()))),
    flag("inplace", None, "write into the existing file")
        .off(&["no-inplace"])
        .local("")
        .sets(|it, on| it.policy.inplace = on),
    flag("append", None, "append the missing data to shorter files in DST")
        .local("")
        .sets(|it, on| it.policy.append = if on { Append::Blindly } else { Append::No }),
    flag(
        "append-verify",
        None,
        "... after comparing the data that is there; copy anew if it differs",
    )
    .local("")
    .sets(|it, on| it.policy.append = if on { Append::Verified } else { Append::No }),
    flag("preallocate", None, "reserve the blocks of new files before they are written")
        .local("large files are preallocated anyway")
        .sets(|it, on| it.policy.preallocate = on),
    flag("write-devices", None, "write the content of files into devices of DST")
        .local("objects are files")
        .sets(|it, on| it.policy.write_devices = on),
    flag("delay-updates", None, "rename files into place when all are complete")
        .off(&["no-delay-updates"])
        .local("")
        .sets(|it, on| it.policy.delay_updates = on),
    value("partial-dir", None, "DIR", "keep an interrupted file in DIR of its directory")
        .local("--resume continues interrupted objects")
        .reads(super::values::set_partial_dir),
    flag("partial", None, "keep an interrupted file")
        .off(&["no-partial"])
        .local("--resume continues interrupted objects")
        .sets(|it, on| it.policy.partial = on),
    value("temp-dir", Some('T'), "DIR", "make temporary files in DIR")
        .local("")
        .reads(|it, arg| put(&mut it.policy.temp_dir, Some(arg.path()))),
    value("confine-root", None, "DIR", "refuse DST, and files that options name, outside of DIR")
        .reads(|it, arg| put(&mut it.trusted.root, Some(arg.path()))),
    values("link-dest", None, "DIR", "hard-link unchanged files from DIR")
        .local("")
        .reads(|it, arg| super::values::add_basis(it, arg, Basis::Link)),
    values("copy-dest", None, "DIR", "copy unchanged files from DIR")
        .local("")
        .reads(|it, arg| super::values::add_basis(it, arg, Basis::Copy)),
    values("compare-dest", None, "DIR", "skip files that are unchanged in DIR")
        .local("")
        .reads(|it, arg| super::values::add_basis(it, arg, Basis::Compare)),
    // rsync's default between local paths, and the only way here.
    flag("whole-file", Some('W'), "copy files whole: always so, on one machine")
        .sets(|it, on| it.whole = on),
    flag("fsync", None, "flush every file before its name appears")
        .local("")
        .sets(|it, on| it.policy.fsync = on),
    flag("mkpath", None, "create missing parents of DST")
        .off(&["no-mkpath"])
        .sets(|it, on| it.mkpath = on),
]);

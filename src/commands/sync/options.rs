//! The options of `hakobu sync`: rsync's names with rsync's meaning, and hakobu's own (`-j`, `--joblog`, `--json`).

use crate::cli::{
    Group, JSON, Noted, OptArg, Row, Table, Takes, Typed, flag, push, put, titled, value, values,
};
use crate::commands::cluster;
use crate::commands::cp::NO_FOLLOW;
use crate::commands::sync::SyncArgs;
use crate::commands::{compression, remote};
use crate::number::Digits;
use crate::show::lines::OutFormat;
use crate::{filters, limits, names, objects, owner};
use hakobu_sys::process;
use hakobu_transfer::policy::{Append, Basis, ChmodRules, Delete, Digest, MissingArgs, Sparse};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

/// The command line of `sync`.
pub static TABLE: Table<SyncArgs> = Table {
    command: "sync",
    about: "Make DST a copy of SRC, as rsync does, with all CPUs",
    description: "Copies what is new or differs by size or time, from one or more sources to a \
            directory or to a prefix in S3. SRC/ stands for the contents of SRC; without the \
            slash, SRC itself is created below DST. Nothing is removed without --delete. \
            Either side may be s3://BUCKET/PREFIX, or [USER@]HOST:PATH on another machine that \
            has hakobu, over ssh.",
    usage: "hakobu sync [OPTIONS] SRC... DST\n       hakobu sync [OPTIONS] SRC     (lists SRC)",
    examples: &[
        ("hakobu sync -a src/ user@host:dst/", "Copy to another machine, over ssh; and back."),
        (
            "hakobu sync -aHAX --delete /srv/data/ /mnt/new/",
            "Mirror a tree to another file system.",
        ),
        ("hakobu sync -a --exclude='*.tmp' -n -i src/ dst/", "Show what would change."),
        ("hakobu sync -a src/ s3://data/src/", "Upload a tree, with times and modes."),
    ],
    common: &[
        "archive",
        "delete",
        "exclude",
        "dry-run",
        "itemize-changes",
        "verbose",
        "jobs",
        "bwlimit",
        "checksum",
        "partial",
        "explain",
    ],
    after: "Options that an earlier one implies are turned off by --no-OPTION or --no-x \
            (-a --no-o); they apply in order.\n\
            -F is --filter='dir-merge /.rsync-filter'; a second one adds --filter='- .rsync-filter'.\n\
            SIZE and RATE take K, M, G, T, P (KiB, MiB ...: 1024; KB, MB ...: 1000), a fraction, \
            and a final +1 or -1.\n\
            Exit codes: 0 done, 1 usage, 3 file selection, 11 file I/O, 20 interrupted, 23 some \
            entries failed, 24 some sources vanished, 25 --max-delete held deletions back, \
            30 --stop-after, --stop-at or --timeout ended it; with another machine also 2 \
            protocol, 12 the connection broke, 35 --contimeout, 127 no hakobu there, 255 ssh.",
    options: &[
        &TRANSFERRED,
        &KEPT,
        &LEFT,
        &filters::OPTIONS,
        &filters::STYLED,
        &REMOVED,
        &WRITTEN,
        &WORK,
        &remote::OPTIONS,
        &compression::OPTIONS,
        &OUTPUT,
        &objects::COMMON,
        &objects::SIDES,
        &objects::RAW,
        &objects::VERSION,
        &objects::STAT,
        &objects::TRANSFER,
        &objects::NAMES,
        &objects::CASES,
        &objects::STOP,
        &limits::TRANSFER,
        &names::LINKS,
        &ACCEPTED,
        &cluster::PLANNED,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: false,
};

const FILES: &str = "objects are files";

static TRANSFERRED: Group<SyncArgs> = titled("What is transferred").with(&[
    flag("archive", Some('a'), "same as -rlptgoD (no -A, -X, -H)").sets(|it, _| {
        it.recurse_by_archive |= !it.policy.recurse;
        it.policy.recurse = true;
        it.links = true;
        let keep = &mut it.policy.preserve;
        (keep.mode, keep.times, keep.owner, keep.group) = (true, true, true, true);
        (it.policy.devices, it.policy.specials) = (true, true);
    }),
    flag("recursive", Some('r'), "descend into directories").off(&["no-recursive", "no-r"]).sets(
        |it, on| {
            (it.policy.recurse, it.recurse_by_archive, it.no_recursive) = (on, false, !on);
        },
    ),
    flag("dirs", Some('d'), "create directories without descending")
        .alias(&["old-dirs", "old-d"])
        .off(&["no-dirs", "no-d"])
        .local("S3 has no directories; --dir-markers keeps empty ones")
        .sets(|it, on| it.dirs = Some(on)),
    flag("relative", Some('R'), "keep the path as typed, from /./ on where that occurs")
        .off(&["no-relative", "no-R"])
        .local("name the prefix to keep in the target")
        .sets(|it, on| it.relative = Some(on)),
    flag("no-implied-dirs", None, "with -R: leave directories above SRC as they are")
        .alias(&["no-i-d"])
        .off(&["implied-dirs", "i-d"])
        .local("S3 has no directories")
        .sets(|it, on| it.policy.no_implied_dirs = on),
    flag("links", Some('l'), "copy symlinks as symlinks")
        .off(&["no-links", "no-l"])
        .sets(|it, on| it.links = on),
    flag("copy-links", Some('L'), "copy the files that symlinks point to")
        .sets(|it, on| it.copy_links = on),
    NO_FOLLOW.stored().sets(|it, on| {
        it.copy_links = !on;
        it.links &= !on;
    }),
    flag("copy-dirlinks", Some('k'), "copy symlinks to directories as directories")
        .local("-L follows all symlinks")
        .sets(|it, on| it.policy.copy_dirlinks = on),
    flag("safe-links", None, "skip symlinks that point outside the tree")
        .local("")
        .sets(|it, on| it.policy.safe_links = on),
    flag("copy-unsafe-links", None, "copy what such symlinks point to")
        .local("-L follows all symlinks")
        .sets(|it, on| it.policy.copy_unsafe_links = on),
    flag("copy-devices", None, "copy the content of devices into files")
        .local("hakobu cp reads the content of devices")
        .sets(|it, on| it.policy.copy_devices = on),
    flag("D", Some('D'), "same as --devices --specials")
        .short_only()
        .off(&["no-D"])
        .local(FILES)
        .sets(|it, on| (it.policy.devices, it.policy.specials) = (on, on)),
    flag("devices", None, "create device nodes")
        .off(&["no-devices"])
        .local(FILES)
        .sets(|it, on| it.policy.devices = on),
    flag("specials", None, "create FIFOs and sockets")
        .off(&["no-specials"])
        .local(FILES)
        .sets(|it, on| it.policy.specials = on),
    flag("drop-D", None, "create neither devices nor special files, overriding other options")
        .local(FILES)
        .sets(|it, on| it.drop_specials = on),
    flag(
        "one-file-system",
        Some('x'),
        "do not cross into other file systems; twice: create no mount points",
    )
    .takes(Takes::Count)
    .off(&["no-one-file-system", "no-x"])
    .local("")
    .reads(|it, arg| match arg.count {
        0 | 1 => put(&mut it.policy.one_file_system, arg.on),
        _ => {
            (it.policy.one_file_system, it.policy.omit_mounts) = (true, true);
            Ok(())
        }
    }),
    flag("prune-empty-dirs", Some('m'), "do not create directories that contain no files")
        .off(&["no-prune-empty-dirs", "no-m"])
        .local_target("S3 has no empty directories unless --dir-markers is given")
        .sets(|it, on| it.policy.prune_empty_dirs = on),
    value("files-from", None, "FILE", "copy only the names in FILE ('-': standard input)")
        .reads(|it, arg| put(&mut it.files_from, Some(arg.value.clone()))),
    flag("ignore-missing-args", None, "skip a SRC, or a name of --files-from, that does not exist")
        .local("")
        .sets(|it, _| {
            if it.policy.missing_args == MissingArgs::Tell {
                it.policy.missing_args = MissingArgs::Ignore;
            }
        }),
    flag("delete-missing-args", None, "the same, and remove it from DST")
        .local("")
        .sets(|it, _| it.policy.missing_args = MissingArgs::Delete),
    value("max-size", None, "SIZE", "skip larger files")
        .reads(|it, arg| put(&mut it.policy.max_size, Some(arg.size()?))),
    value("min-size", None, "SIZE", "skip smaller files")
        .reads(|it, arg| put(&mut it.policy.min_size, Some(arg.size()?))),
]);

static KEPT: Group<SyncArgs> = titled("What is kept").with(&[
    flag("hard-links", Some('H'), "keep hard links between files")
        .off(&["no-hard-links", "no-H"])
        .local("every object has one name")
        .sets(|it, on| it.policy.hard_links = on),
    flag("perms", Some('p'), "keep permission bits")
        .off(&["no-perms", "no-p"])
        .sets(|it, on| it.policy.preserve.mode = on),
    flag("owner", Some('o'), "keep the owner (requires root)")
        .off(&["no-owner", "no-o"])
        .sets(|it, on| (it.policy.preserve.owner, it.policy.preserve.owner_explicit) = (on, on)),
    flag("group", Some('g'), "keep the group")
        .off(&["no-group", "no-g"])
        .sets(|it, on| it.policy.preserve.group = on),
    flag("times", Some('t'), "keep modification times")
        .off(&["no-times", "no-t"])
        .sets(|it, on| it.policy.preserve.times = on),
    flag("atimes", Some('U'), "keep access times of files; twice: also --open-noatime")
        .takes(Takes::Count)
        .off(&["no-atimes", "no-U"])
        .local("objects have no access times")
        .reads(|it, arg| {
            it.policy.preserve.file_atimes = arg.on;
            it.policy.open_noatime |= arg.count > 1;
            Ok(())
        }),
    flag("open-noatime", None, "do not change access times of SRC by reading (own files)")
        .off(&["no-open-noatime"])
        .local("")
        .sets(|it, on| it.policy.open_noatime = on),
    flag("executability", Some('E'), "keep whether a file may be executed")
        .local("-p keeps all permission bits")
        .sets(|it, on| it.policy.preserve.executability = on),
    flag("omit-link-times", Some('J'), "do not set the times of symlinks")
        .off(&["no-omit-link-times", "no-J"])
        .local_target("S3 keeps no times of symlinks")
        .sets(|it, on| it.policy.preserve.omit_link_times = on),
    flag("omit-dir-times", Some('O'), "do not set the times of directories")
        .off(&["no-omit-dir-times", "no-O"])
        .local_target("S3 keeps no times of directories")
        .sets(|it, on| it.policy.preserve.omit_dir_times = on),
    flag("acls", Some('A'), "keep ACLs (implies -p)")
        .off(&["no-acls", "no-A"])
        .local("objects have no POSIX ACLs; --acl sets a canned one")
        .sets(|it, on| {
            let keep = &mut it.policy.preserve;
            (keep.acls, keep.acls_explicit) = (on, on);
            keep.mode |= on;
        }),
    flag("xattrs", Some('X'), "keep extended attributes; twice: also those of --fake-super")
        .takes(Takes::Count)
        .off(&["no-xattrs", "no-X"])
        .local("objects have no extended attributes")
        .reads(|it, arg| {
            let keep = &mut it.policy.preserve;
            (keep.xattrs, keep.xattrs_explicit) = (arg.on, arg.on);
            keep.hides_reserved = arg.count < 2;
            Ok(())
        }),
    flag("sparse", Some('S'), "turn runs of zeroes into holes (existing holes are always kept)")
        .off(&["no-sparse", "no-S"])
        .local("")
        .sets(|it, on| it.policy.sparse = if on { Sparse::Always } else { Sparse::Auto }),
    values("chmod", None, "CHANGES", "change permission bits, such as D755,Fu=rw,go-w")
        .local("")
        .reads(add_chmod),
    value("chown", None, "USER:GROUP", "set owner and group (names or numbers)")
        .local("")
        .reads(set_owner),
    value("usermap", None, "MAP", "map owners: FROM:TO,... with names, numbers, LOW-HIGH, *")
        .local("")
        .reads(|it, arg| {
            if it.owners.has_user() {
                return Err("--usermap conflicts with --chown".into());
            }
            let keep = &mut it.policy.preserve;
            (keep.owner, keep.owner_explicit) = (true, true);
            put(&mut it.owners.users, Some(arg.value.clone()))
        }),
    value("groupmap", None, "MAP", "map groups, in the syntax of --usermap").local("").reads(
        |it, arg| {
            if it.owners.has_group() {
                return Err("--groupmap conflicts with --chown".into());
            }
            it.policy.preserve.group = true;
            put(&mut it.owners.groups, Some(arg.value.clone()))
        },
    ),
    flag("super", None, "fail if an owner cannot be kept, even as an ordinary user")
        .off(&["no-super"])
        .sets(|it, on| (it.superuser, it.policy.as_user) = (on, !on)),
    flag(
        "fake-super",
        None,
        "store owners and devices in user.rsync.* attributes, at the sides that are here",
    )
    .off(&["no-fake-super"])
    .local("objects keep owners in their metadata")
    .sets(|it, on| it.fake.both = on),
    values(
        "remote-option",
        Some('M'),
        "OPTION",
        "apply OPTION (such as --fake-super) to the other machine only; without one to DST",
    )
    .local("")
    .reads(|it, arg| push(&mut it.far_options, arg.clone())),
    // Names and numbers are of one machine: they stay unchanged.
    flag("numeric-ids", None, "keep numeric IDs (always so between local paths)")
        .off(&["no-numeric-ids"])
        .sets(|it, on| it.numeric_ids = on),
]);

static LEFT: Group<SyncArgs> = titled("What is left alone").with(&[
    flag("checksum", Some('c'), "compare contents, not size and time")
        .off(&["no-checksum", "no-c"])
        .sets(|it, on| it.policy.checksum = on),
    flag("update", Some('u'), "skip files that are newer in DST")
        .sets(|it, on| it.policy.update = on),
    flag(
        "size-or-newer",
        None,
        "with s3://: copy what has another size or is newer in SRC (the default for uploads)",
    )
    .stored()
    .sets(|it, on| it.policy.newer_only = on),
    flag("size-only", None, "treat files of the same size as equal")
        .sets(|it, on| it.policy.size_only = on),
    flag("ignore-times", Some('I'), "do not skip files of the same size and time")
        .sets(|it, on| it.policy.ignore_times = on),
    value(
        "modify-window",
        Some('@'),
        "SECONDS",
        "treat times this close as equal (0: whole seconds, -1: nanoseconds)",
    )
    .reads(|it, arg| {
        let window_s = arg.parsed().ok_or_else(|| arg.refuse("not a number of seconds"));
        put(&mut it.policy.modify_window_s, Some(window_s?))
    }),
    flag("existing", None, "update only files that exist in DST")
        .alias(&["ignore-non-existing"])
        .sets(|it, on| it.policy.existing = on),
    flag("ignore-existing", None, "copy only files that do not exist in DST")
        .alias(&["no-clobber", "no-overwrite"])
        .sets(|it, on| it.policy.ignore_existing = on),
]);

static REMOVED: Group<SyncArgs> = titled("Removal").with(&[
    flag("delete", None, "delete entries of DST that SRC does not have")
        .sets(|it, on| it.delete = on),
    flag("delete-before", None, "--delete, before copying")
        .sets(|it, _| it.delete_when.push(("delete-before", Delete::Before))),
    flag("delete-during", None, "--delete, directory by directory (the default)")
        .alias(&["del"])
        .sets(|it, _| it.delete_when.push(("delete-during", Delete::During))),
    flag("delete-delay", None, "--delete, after copying (the same here)")
        .sets(|it, _| it.delete_when.push(("delete-delay", Delete::After))),
    flag("delete-after", None, "--delete, after copying (the same here)")
        .sets(|it, _| it.delete_when.push(("delete-after", Delete::After))),
    flag("delete-excluded", None, "--delete, including entries that filters skip")
        .sets(|it, _| (it.delete, it.policy.delete_excluded) = (true, true)),
    value("max-delete", None, "NUM", "remove at most NUM entries").reads(|it, arg| {
        let most = arg.parsed::<i64>().and_then(|n| u64::try_from(n).ok());
        let most = most.ok_or_else(|| arg.refuse("not a number"))?;
        put(&mut it.policy.max_delete, Some(most))
    }),
    flag("ignore-errors", None, "delete even if SRC could not be read")
        .off(&["no-ignore-errors"])
        .sets(|it, on| it.policy.ignore_errors = on),
    flag("force", None, "allow a file to replace a non-empty directory")
        .off(&["no-force"])
        .local("a prefix and an object do not stand in each other's way")
        .sets(|it, on| it.policy.force = on),
    flag("remove-source-files", None, "remove files from SRC after they were copied")
        .sets(|it, on| it.policy.remove_source_files = on),
]);

static WORK: Group<SyncArgs> = titled("Work").with(&[
    limits::JOBS.reads(limits::set_jobs),
    value("joblog", None, "FILE", "write a line per file to FILE, in GNU parallel's columns")
        .reads(|it, arg| put(&mut it.wanted.joblog, Some(arg.value.clone()))),
    value(
        "manifest",
        None,
        "FILE",
        "write a JSON line per entry and its result to FILE (-: stdout)",
    )
    .reads(|it, arg| put(&mut it.wanted.manifest, Some(arg.value.clone()))),
    value("stop-after", None, "MINUTES", "end the run after MINUTES")
        .alias(&["time-limit"])
        .reads(stop_after),
    value("stop-at", None, "TIME", "end the run at [[YYYY-]MM-DDT]HH:MM").reads(stop_at),
    flag("dry-run", Some('n'), "show what would be done; change nothing")
        .alias(&["dryrun"])
        .sets(|it, on| it.policy.dry_run = on),
]);

static OUTPUT: Group<SyncArgs> = titled("Output").with(&[
    flag("verbose", Some('v'), "one line per file; twice: unchanged files as well")
        .takes(Takes::Count)
        .off(&["no-verbose", "no-v"])
        .reads(|it, arg| put(&mut it.verbose, arg.count)),
    flag("quiet", Some('q'), "print only errors")
        .alias(&["only-show-errors"])
        .sets(|it, on| it.wanted.hush(on)),
    flag("itemize-changes", Some('i'), "show changes per file; twice: unchanged files as well")
        .takes(Takes::Count)
        .off(&["no-itemize-changes", "no-i"])
        .reads(|it, arg| put(&mut it.itemize, arg.count)),
    flag("human-readable", Some('h'), "numbers in units of 1000; twice: of 1024")
        .takes(Takes::Count)
        .off(&["no-human-readable", "no-h"])
        .reads(|it, arg| {
            let digits = if arg.on { Digits::of_level(arg.count) } else { Digits::Plain };
            put(&mut it.wanted.digits, digits)
        }),
    flag("stats", None, "print counts at the end").sets(|it, on| it.stats = Some(if on { 2 } else { 0 })),
    flag(
        "progress",
        None,
        "a bar on a terminal (the default after one second), else a line per second, and rsync's lines on standard output",
    )
    .off(&["no-progress"])
    .sets(|it, on| (it.wanted.progress, it.wanted.transfers, it.wanted.whole) = (Some(on), on, false)),
    flag("P", Some('P'), "same as --partial --progress")
        .short_only()
        .local("--progress shows a bar, --resume continues interrupted objects")
        .sets(|it, _| {
            it.policy.partial = true;
            (it.wanted.progress, it.wanted.transfers, it.wanted.whole) = (Some(true), true, false);
        }),
    values(
        "info",
        None,
        "FLAGS",
        "messages to print: name, name2, progress, stats, backup, skip, all, none; 'help' lists them",
    )
    .reads(set_info),
    values("debug", None, "FLAGS", "filter: print which rule decides about an entry; 'help' lists others")
        .reads(set_debug),
    flag("no-inc-recursive", None, "with -j 1: transfer files in the order of their names")
        .alias(&["no-i-r"])
        .off(&["inc-recursive", "i-r"])
        .sets(|it, on| it.ordered = on),
    value("out-format", None, "FORMAT", "format of the line per entry (-i is '%i %n%L', -v is '%n%L')")
        .alias(&["log-format"])
        .reads(|it, arg| put(&mut it.wanted.format, Some(format(arg)?))),
    flag("list-only", None, "list SRC instead of copying")
        .local("hakobu ls lists buckets and prefixes")
        .sets(|it, on| it.policy.list_only = on),
    flag("8-bit-output", Some('8'), "do not escape bytes above 127")
        .off(&["no-8-bit-output", "no-8"])
        .sets(|it, on| it.wanted.eight_bit = on),
    value("log-file", None, "FILE", "append a log of all actions to FILE")
        .reads(|it, arg| put(&mut it.wanted.log_file, Some(arg.value.clone()))),
    value("log-file-format", None, "FORMAT", "format of the lines of --log-file")
        .reads(|it, arg| put(&mut it.wanted.log_format, Some(format(arg)?))),
    JSON.sets(|it, on| it.wanted.json = on),
]);

// The options of `sync` about writing files.

/// All of them, in the order of the help.
pub static WRITTEN: Group<SyncArgs> = titled("How files are written").with(&[
    flag("keep-dirlinks", Some('K'), "a symlink to a directory in DST is that directory")
        .off(&["no-keep-dirlinks", "no-K"])
        .local("")
        .sets(|it, on| it.policy.keep_dirlinks = on),
    flag("backup", Some('b'), "rename entries that would be replaced or removed")
        .off(&["no-backup"])
        .local("")
        .sets(|it, on| it.policy.backup = on),
    value("backup-dir", None, "DIR", "keep backups at the same path below DIR (relative to DST)")
        .local("")
        .reads(|it, arg| {
            if arg.value.is_empty() {
                return Err("--backup-dir needs a directory".into());
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
        "--append, after comparing existing data; copy again if it differs",
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
    value("partial-dir", None, "DIR", "keep an interrupted file in DIR, relative to its directory")
        .local("--resume continues interrupted objects")
        .reads(set_partial_dir),
    flag("partial", None, "keep an interrupted file")
        .off(&["no-partial"])
        .local("--resume continues interrupted objects")
        .sets(|it, on| it.policy.partial = on),
    value("temp-dir", Some('T'), "DIR", "create temporary files in DIR")
        .local("")
        .reads(|it, arg| put(&mut it.policy.temp_dir, Some(arg.path()))),
    value("confine-root", None, "DIR", "refuse DST, and files that options name, outside of DIR")
        .reads(|it, arg| put(&mut it.trusted.root, Some(arg.path()))),
    values("link-dest", None, "DIR", "hard-link unchanged files from DIR")
        .local("")
        .reads(|it, arg| add_basis(it, arg, Basis::Link)),
    values("copy-dest", None, "DIR", "copy unchanged files from DIR")
        .local("")
        .reads(|it, arg| add_basis(it, arg, Basis::Copy)),
    values("compare-dest", None, "DIR", "skip files that are unchanged in DIR")
        .local("")
        .reads(|it, arg| add_basis(it, arg, Basis::Compare)),
    flag("whole-file", Some('W'), "send changed files whole (between local paths always so)")
        .off(&["no-whole-file", "no-W"])
        .sets(|it, on| it.whole = Some(on)),
    flag("fsync", None, "flush every file to disk before it gets its name")
        .local("")
        .sets(|it, on| it.policy.fsync = on),
    flag("mkpath", None, "create missing parents of DST")
        .off(&["no-mkpath"])
        .sets(|it, on| it.mkpath = on),
]);

// Values of options of `sync` that need more than a line to parse.

/// Parses `--out-format`, `--log-file-format`.
///
/// # Errors
/// A letter that is not supported.
pub fn format(arg: &OptArg) -> Result<Arc<OutFormat>, String> {
    let format = OutFormat::parse(arg.value.as_bytes());
    format.map(Arc::new).map_err(|why| format!("--{}: {why}", arg.name))
}

/// Applies `--chmod`.
///
/// # Errors
/// An invalid clause.
pub fn add_chmod(it: &mut SyncArgs, arg: &OptArg) -> Result<(), String> {
    // The umask can only be read by setting it; no other thread runs yet.
    let umask = process::set_umask(0o022);
    process::set_umask(umask);
    let text = arg.value.to_str().ok_or("--chmod: changes are text")?;
    let rules = it.policy.chmod.get_or_insert_with(ChmodRules::default);
    rules.add(text, umask).map_err(|error| format!("--chmod: {error}"))
}

/// Applies `--chown`.
///
/// # Errors
/// An unknown user or group.
pub fn set_owner(it: &mut SyncArgs, arg: &OptArg) -> Result<(), String> {
    let (user, group) = owner::halves(&arg.value)?;
    let maps = [
        (!user.is_empty(), &it.owners.users, "--usermap"),
        (!group.is_empty(), &it.owners.groups, "--groupmap"),
    ];
    if let Some((_, _, map)) = maps.iter().find(|(on, map, _)| *on && map.is_some()) {
        return Err(format!("--chown conflicts with {map}"));
    }
    let keep = &mut it.policy.preserve;
    if !user.is_empty() {
        (keep.owner, keep.owner_explicit) = (true, true);
    }
    if !group.is_empty() {
        (keep.group, keep.owner_explicit) = (true, true);
    }
    put(&mut it.owners.owner, Some(arg.value.clone()))
}

/// Applies `--link-dest` and similar options.
///
/// # Errors
/// Another one of them was given.
pub fn add_basis(it: &mut SyncArgs, arg: &OptArg, basis: Basis) -> Result<(), String> {
    let policy = &mut it.policy;
    if !policy.basis_dirs.is_empty() && policy.basis != basis {
        return Err(format!("--{} cannot be used with {}", arg.name, policy.basis.option()));
    }
    policy.basis = basis;
    policy.basis_dirs.push(arg.path());
    Ok(())
}

/// Applies `--partial-dir`. A folder inside each directory is a single name.
///
/// # Errors
/// A relative path of several names, or of none.
pub fn set_partial_dir(it: &mut SyncArgs, arg: &OptArg) -> Result<(), String> {
    let path = arg.path();
    let is_name = path.components().count() == 1
        && path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !path.is_absolute() && !is_name {
        return Err(arg.refuse("neither the name of a directory nor an absolute path"));
    }
    it.policy.partial = true;
    it.policy.partial_dir = Some(path);
    Ok(())
}

/// Applies `--stop-after`.
///
/// # Errors
/// It is not a number of minutes.
pub fn stop_after(it: &mut SyncArgs, arg: &OptArg) -> Result<(), String> {
    let minutes = arg.parsed::<i64>().and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    let minutes = minutes.ok_or_else(|| arg.refuse("not a number of minutes"))?;
    it.wanted.stop_after = Some(Duration::from_secs(minutes.saturating_mul(60)));
    Ok(())
}

/// Applies `--stop-at`: a time of this day or, if that has passed, of the next one.
///
/// # Errors
/// It is not a time, or it has passed.
pub fn stop_at(it: &mut SyncArgs, arg: &OptArg) -> Result<(), String> {
    let now = jiff::Zoned::now();
    let text = arg.text()?.replace('/', "-");
    let refuse = || arg.refuse("not a time such as 23:30 or 2030-01-31T23:30");
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) => (Some(date), time),
        None => (None, text.as_str()),
    };
    let time = jiff::civil::Time::strptime("%H:%M", time).map_err(|_| refuse())?;
    let date = match date {
        None => None,
        Some(date) if date.split('-').count() == 2 => Some(format!("{}-{date}", now.year())),
        Some(date) => Some(date.to_owned()),
    };
    let day = match &date {
        Some(date) => jiff::civil::Date::strptime("%Y-%m-%d", date).map_err(|_| refuse())?,
        None if time <= now.time() => now.date().tomorrow().map_err(|_| refuse())?,
        None => now.date(),
    };
    let at = day.to_datetime(time).to_zoned(now.time_zone().clone()).map_err(|_| refuse())?;
    let left = Duration::try_from(at.duration_since(&now));
    it.wanted.stop_after = Some(left.map_err(|_| arg.refuse("has passed"))?);
    Ok(())
}

/// Applies the `-M` of a local copy: options for the other side, which is the target.
///
/// # Errors
/// An option that is the same on both sides, or that has no meaning between local paths.
pub fn set_target_options(it: &mut SyncArgs) -> Result<(), String> {
    for arg in &it.far_options {
        match arg.text()? {
            "--fake-super" => it.fake.target = true,
            "--super" => it.fake.not_target = true,
            _ => {
                let why = "only --fake-super and --super, as there is no other machine";
                return Err(arg.refuse(why));
            }
        }
    }
    Ok(())
}

/// Options that may differ at the other end.
const ALONE: &[&str] = &[
    "fake-super",
    "super",
    "fsync",
    "preallocate",
    "sparse",
    "bwlimit",
    "jobs",
    "open-noatime",
    "temp-dir",
    "insecure-links",
];

/// Returns the options that `-M` gives the end on another machine.
///
/// # Errors
/// One that has to be the same at both ends, or is none.
pub fn far_options(it: &SyncArgs) -> Result<Vec<OptArg>, String> {
    let mut options = Vec::new();
    for arg in &it.far_options {
        let typed = super::TABLE.parse(std::slice::from_ref(&arg.value));
        let typed =
            typed.map_err(|_| arg.refuse("it is no option with its value, as in --fsync"))?;
        let is_alone = |of: &OptArg| ALONE.contains(&of.name);
        if typed.options.is_empty()
            || !typed.paths.is_empty()
            || !typed.options.iter().all(is_alone)
        {
            return Err(arg.refuse("it is the same at both ends, or has no meaning there"));
        }
        options.extend(typed.options);
    }
    Ok(options)
}

// rsync's `--info=FLAGS` and `--debug=FLAGS`, and the texts of `--info=help` and `--debug=help`.

/// Flags with an effect.
const BUILT: &str = "NAME       names of what is updated; NAME2: of what is unchanged, too\n\
                     PROGRESS   progress, as --progress; PROGRESS2: of the whole run only\n\
                     STATS      sizes and rate at the end (also with -v); STATS2: counts, too, as --stats\n\
                     BACKUP     entries that are kept as backups (also with -vv)\n\
                     SKIP       entries that an option excludes (also with -vv)\n\
                     ALL, NONE  all or none of these";

/// rsync's flags without an effect: the messages are always printed, or never.
const OTHERS: &[&str] = &["copy", "del", "flist", "misc", "mount", "nonreg", "remove", "symsafe"];

/// rsync's flags of `--debug` without an effect.
const OTHER_DEBUG: &[&str] = &[
    "acl", "backup", "bind", "chdir", "connect", "cmd", "del", "deltasum", "dup", "exit", "flist",
    "fuzzy", "genr", "hash", "hlink", "iconv", "io", "nstr", "own", "proto", "recv", "send",
    "time",
];

/// Splits a list of flags into lower-case names and levels, with the flags as typed.
fn flags(arg: &OptArg) -> Result<Vec<(String, u8, &str)>, String> {
    let flag = |flag: &'_ str| -> Result<(String, u8), String> {
        let name = flag.trim_end_matches(|c: char| c.is_ascii_digit());
        let level = match &flag[name.len()..] {
            "" => 1,
            digits => digits.parse().map_err(|_| arg.refuse("the level is not a number"))?,
        };
        Ok((name.to_ascii_lowercase(), level))
    };
    let typed = arg.text()?.split(',');
    typed.map(|text| flag(text).map(|(name, level)| (name, level, text))).collect()
}

/// Applies one `--debug`.
///
/// # Errors
/// A flag that rsync does not have.
pub fn set_debug(it: &mut SyncArgs, arg: &OptArg) -> Result<(), String> {
    for (name, level, flag) in flags(arg)? {
        let why = match &*name {
            "filter" | "all" => {
                it.rules = Some(level > 0);
                if level <= u8::from(name == "filter") {
                    continue;
                }
                "as filter"
            }
            "none" => {
                it.rules = Some(false);
                continue;
            }
            "help" => continue,
            other if !OTHER_DEBUG.contains(&other) => {
                return Err(format!(
                    "--debug={flag}: there is no such flag (--debug=help lists them)"
                ));
            }
            _ if level == 0 => continue,
            _ => "there is no protocol to watch",
        };
        it.without.push((format!("--debug={flag}"), why));
    }
    Ok(())
}

/// Applies one `--info`.
///
/// # Errors
/// A flag that rsync does not have.
pub fn set_info(it: &mut SyncArgs, arg: &OptArg) -> Result<(), String> {
    let mut without = Vec::new();
    for (name, level, flag) in flags(arg)? {
        match &*name {
            "name" => it.names = Some(level.min(2)),
            "backup" => it.backups = Some(level > 0),
            "skip" => {
                it.skips = Some(level > 0);
                if level > 1 {
                    without.push("skip2 (as skip)");
                }
            }
            "progress" => {
                it.wanted.progress = Some(level > 0);
                (it.wanted.transfers, it.wanted.whole) = (level == 1, level > 1);
            }
            "stats" => it.stats = Some(level),
            "all" | "none" => {
                let level = if name == "none" { 0 } else { level };
                it.names = Some(level.min(2));
                (it.backups, it.skips) = (Some(level > 0), Some(level > 0));
                (it.stats, it.wanted.progress) = (Some(level), Some(level > 0));
                (it.wanted.transfers, it.wanted.whole) = (level == 1, level > 1);
            }
            other if OTHERS.contains(&other) => without.push(flag),
            _ => {
                return Err(format!(
                    "--info={flag}: there is no such flag (--info=help lists them)"
                ));
            }
        }
    }
    if !without.is_empty() {
        let flags = without.join(",");
        it.wanted.notes.push(format!("note: without effect here: --info={flags}"));
    }
    Ok(())
}

/// Returns the text of `--info=help` or `--debug=help` on a command line.
pub fn help_of_flags(arguments: &[OsString], typed: &Typed) -> Option<String> {
    let is_help = |name: &str| arguments.iter().any(|word| word == &*format!("--{name}=help"));
    let info = typed.options.iter().any(|arg| arg.name == "info" && arg.value == "help");
    if info || is_help("info") {
        let others = OTHERS.join(", ").to_ascii_uppercase();
        return Some(format!(
            "Flags of --info, with commas between, each with a level behind it (0 is off):\n\n{BUILT}\n\n\
             Accepted without effect: {others}.\n"
        ));
    }
    is_help("debug").then(|| {
        let others = OTHER_DEBUG.join(", ").to_ascii_uppercase();
        format!(
            "Flags of --debug, with commas between, each with a level behind it (0 is off):\n\n\
             FILTER     which filter rule decides about an entry (also with -vv)\n\
             ALL, NONE  the same, or not\n\n\
             Accepted without effect, as there is no protocol to watch: {others}.\n\
             --explain says what limits a run, -vv and -ii tell of every entry.\n"
        )
    })
}

// The options of rsync that have no effect on a copy between local paths or with `s3://`, in rsync as well: accepted
// with a note, so that scripts run unchanged. Those that are refused stand below.

pub(super) const COMPRESS: &str = "nothing is compressed on the way";
const THREADS: &str = "each sender compresses what it sends";
const NETWORK: &str = "no rsync daemon";
pub(super) const WHOLE: &str = "files are copied whole between local paths";
const CONTENT: &str = "-c compares contents";
const LIST: &str = "no file list is built";
const STREAMS: &str = "names go to standard output, errors to standard error, both by the line";

/// All of them.
pub const ACCEPTED: Noted = Noted(ROWS);

/// Checks the values that rsync refuses although the options have no effect here.
///
/// # Errors
/// `--max-alloc=0`.
pub fn check_accepted(noted: &[OptArg]) -> Result<(), String> {
    let Some(arg) = last(noted, "max-alloc") else { return Ok(()) };
    let text = arg.text()?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match digits.parse::<f64>() {
        Ok(0.0) => Err(arg.refuse("max-alloc must be greater than zero")),
        _ => Ok(()),
    }
}

/// Returns the kind of checksum that `%C` shows: the default of rsync, or that of `--checksum-choice`, of which the
/// second name is for `-c`.
///
/// # Errors
/// A kind that is not supported.
pub fn shown_digest(noted: &[OptArg], checksum: bool) -> Result<Digest, String> {
    let Some(arg) = last(noted, "checksum-choice") else { return Ok(Digest::Xxh128) };
    let (first, second) = arg.text()?.split_once(',').unwrap_or((arg.text()?, arg.text()?));
    match if checksum { second } else { first } {
        "auto" | "xxh128" => Ok(Digest::Xxh128),
        "md5" => Ok(Digest::Md5),
        _ => Err(arg.refuse("%C supports xxh128 (the default) and md5")),
    }
}

fn last<'a>(noted: &'a [OptArg], name: &str) -> Option<&'a OptArg> {
    noted.iter().rfind(|arg| arg.name == name).filter(|arg| arg.on)
}

const ROWS: &[Row] = &[
    value("compress-threads", None, "N", "compression threads").alias(&["zt"]).noted(THREADS),
    flag("secluded-args", Some('s'), "send arguments by the protocol")
        .alias(&["protect-args"])
        .off(&["no-secluded-args", "no-protect-args", "no-s"])
        .noted(NETWORK),
    flag("old-args", None, "let the remote shell split arguments")
        .off(&["no-old-args"])
        .noted(NETWORK),
    flag("blocking-io", None, "blocking I/O for the remote shell")
        .off(&["no-blocking-io"])
        .noted(NETWORK),
    value("address", None, "ADDRESS", "local address of the connection").noted(NETWORK),
    value("port", None, "PORT", "port of the daemon").noted(NETWORK),
    value("sockopts", None, "OPTIONS", "socket options").noted(NETWORK),
    value("protocol", None, "N", "protocol version").noted(NETWORK),
    flag("no-motd", None, "suppress the greeting of a daemon").alias(&["motd"]).noted(NETWORK),
    flag("trust-sender", None, "trust the file list of the other side").noted(NETWORK),
    value("block-size", Some('B'), "SIZE", "block size of differences")
        .off(&["no-block-size"])
        .noted(WHOLE),
    flag("fuzzy", Some('y'), "use a similar file as the basis")
        .off(&["no-fuzzy", "no-y"])
        .noted(WHOLE),
    value("checksum-choice", None, "NAME", "checksum algorithm").alias(&["cc"]).noted(CONTENT),
    value("checksum-seed", None, "N", "seed of the checksums in transit").noted(WHOLE),
    value("max-alloc", None, "SIZE", "largest memory allocation")
        .off(&["no-max-alloc"])
        .noted(LIST),
    value("outbuf", None, "HOW", "output buffering: N, L or B").noted(STREAMS),
    value("stderr", None, "HOW", "messages to print on standard error: e, a or c").noted(STREAMS),
    flag("msgs2stderr", None, "messages of both sides on standard error")
        .off(&["no-msgs2stderr"])
        .noted(STREAMS),
];

const REMOTE: &str = "there is no rsync daemon; HOST:PATH uses ssh";
const BATCH: &str = "runs cannot be replayed; -n with s3:// prints a file for hakobu run";
const ICONV: &str = "names are bytes and stay what they are; convmv(1) converts them";
const VERSION: &str = "the version is an option of hakobu itself: hakobu --version";

/// The options of rsync 3.5 that are refused, each with a reason or "".
pub const UNBUILT: &[(&str, &str)] = &[
    (
        "--daemon --server --sender --config --dparam --detach \
         --password-file --early-input",
        REMOTE,
    ),
    ("--write-batch --only-write-batch --read-batch", BATCH),
    ("--iconv", ICONV),
    ("--munge-links", "--safe-links leaves out symlinks that point outside the tree"),
    ("--copy-as", "run hakobu as that user: sudo -u USER hakobu sync ..."),
    ("--crtimes -N --N", "Linux cannot set birth times; rsync refuses it there as well"),
    ("--version -V", VERSION),
];

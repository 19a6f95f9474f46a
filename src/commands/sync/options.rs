//! The options of `hakobu sync`: rsync's names with rsync's meaning, and hakobu's own (`-j`, `--joblog`, `--json`).

use super::accepted::{ACCEPTED, UNBUILT};
use super::reading::Reading;
use super::values::{add_chmod, format, set_owner};
use super::written::WRITTEN;
use crate::commands::cluster::PLANNED;
use crate::commands::cp::NO_FOLLOW;
use crate::filters;
use crate::limits;
use crate::number::Digits;
use crate::objects;
use crate::options::{Group, JSON, Table, Takes, flag, put, titled, value, values};
use crate::{names, owner};
use hakobu_transfer::policy::{Delete, MissingArgs, Sparse};

/// The command line of `sync`.
pub static TABLE: Table<Reading> = Table {
    command: "sync",
    about: "Synchronise DST with SRC, as rsync does, on all cores",
    usage: "hakobu sync [OPTIONS] SRC... DST\n       hakobu sync [OPTIONS] SRC     (lists SRC)",
    after: "Options that an earlier one implies are turned off by --no-OPTION or --no-x \
            (-a --no-o); they apply in order.\n\
            -F is --filter='dir-merge /.rsync-filter'; a second one adds --filter='- .rsync-filter'.\n\
            SIZE and RATE take K, M, G, T, P (KiB, MiB ...: 1024; KB, MB ...: 1000), a fraction, \
            and a final +1 or -1.\n\
            Exit codes: 0 done, 1 usage, 3 file selection, 11 file I/O, 20 interrupted, 23 some \
            entries failed, 24 some sources vanished, 25 --max-delete held deletions back, \
            30 --stop-after or --stop-at ended it.",
    options: &[
        &TRANSFERRED,
        &KEPT,
        &LEFT,
        &filters::OPTIONS,
        &filters::STYLED,
        &REMOVED,
        &WRITTEN,
        &WORK,
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
        &PLANNED,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: false,
};

const FILES: &str = "objects are files";

static TRANSFERRED: Group<Reading> = titled("What is transferred").with(&[
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
        .local("a store has no directories; --dir-markers keeps empty ones")
        .sets(|it, on| it.dirs = Some(on)),
    flag("relative", Some('R'), "keep the path as typed, from /./ on where that occurs")
        .off(&["no-relative", "no-R"])
        .local("name the prefix to keep in the target")
        .sets(|it, on| it.relative = Some(on)),
    flag("no-implied-dirs", None, "with -R: leave directories above SRC as they are")
        .alias(&["no-i-d"])
        .off(&["implied-dirs", "i-d"])
        .local("a store has no directories")
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
    flag("copy-unsafe-links", None, "... such symlinks become what they name")
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
        "do not cross into other file systems; twice: make no mount points",
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
        .local_target("a store has no empty directories unless --dir-markers is given")
        .sets(|it, on| it.policy.prune_empty_dirs = on),
    value("files-from", None, "FILE", "only these names below SRC ('-': standard input)")
        .reads(|it, arg| put(&mut it.files_from, Some(arg.value.clone()))),
    flag("ignore-missing-args", None, "skip a SRC, or a name of --files-from, that does not exist")
        .local("")
        .sets(|it, _| {
            if it.policy.missing_args == MissingArgs::Tell {
                it.policy.missing_args = MissingArgs::Ignore;
            }
        }),
    flag("delete-missing-args", None, "... and remove it from DST")
        .local("")
        .sets(|it, _| it.policy.missing_args = MissingArgs::Delete),
    value("max-size", None, "SIZE", "skip larger files")
        .reads(|it, arg| put(&mut it.policy.max_size, Some(arg.size()?))),
    value("min-size", None, "SIZE", "skip smaller files")
        .reads(|it, arg| put(&mut it.policy.min_size, Some(arg.size()?))),
]);

static KEPT: Group<Reading> = titled("What is kept").with(&[
    flag("hard-links", Some('H'), "hard links stay hard links")
        .off(&["no-hard-links", "no-H"])
        .local("every object has one name")
        .sets(|it, on| it.policy.hard_links = on),
    flag("perms", Some('p'), "keep permission bits")
        .off(&["no-perms", "no-p"])
        .sets(|it, on| it.policy.preserve.mode = on),
    flag("owner", Some('o'), "keep the owner (superuser)")
        .off(&["no-owner", "no-o"])
        .sets(|it, on| (it.policy.preserve.owner, it.policy.preserve.owner_explicit) = (on, on)),
    flag("group", Some('g'), "keep the group")
        .off(&["no-group", "no-g"])
        .sets(|it, on| it.policy.preserve.group = on),
    flag("times", Some('t'), "keep modification times")
        .off(&["no-times", "no-t"])
        .sets(|it, on| it.policy.preserve.times = on),
    flag("atimes", Some('U'), "keep access times of files; twice: --open-noatime, too")
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
        .local_target("a store keeps no times of symlinks")
        .sets(|it, on| it.policy.preserve.omit_link_times = on),
    flag("omit-dir-times", Some('O'), "do not set the times of directories")
        .off(&["no-omit-dir-times", "no-O"])
        .local_target("a store keeps no times of directories")
        .sets(|it, on| it.policy.preserve.omit_dir_times = on),
    flag("acls", Some('A'), "keep ACLs (implies -p)")
        .off(&["no-acls", "no-A"])
        .local("objects have no POSIX ACLs; --acl sets a canned one")
        .sets(|it, on| {
            let keep = &mut it.policy.preserve;
            (keep.acls, keep.acls_explicit) = (on, on);
            keep.mode |= on;
        }),
    flag("xattrs", Some('X'), "keep extended attributes; twice: those of --fake-super, too")
        .takes(Takes::Count)
        .off(&["no-xattrs", "no-X"])
        .local("objects have no extended attributes")
        .reads(|it, arg| {
            let keep = &mut it.policy.preserve;
            (keep.xattrs, keep.xattrs_explicit) = (arg.on, arg.on);
            keep.hides_reserved = arg.count < 2;
            Ok(())
        }),
    flag("sparse", Some('S'), "turn runs of zeroes into holes (holes are always kept)")
        .off(&["no-sparse", "no-S"])
        .local("")
        .sets(|it, on| it.policy.sparse = if on { Sparse::Always } else { Sparse::Auto }),
    values("chmod", None, "CHANGES", "change permission bits (D755,Fu=rw,go-w)")
        .local("")
        .reads(add_chmod),
    value("chown", None, "USER:GROUP", "set owner and group (names or numbers)")
        .local("")
        .reads(set_owner),
    value("usermap", None, "MAP", "map owners: FROM:TO,… with names, numbers, LOW-HIGH, *")
        .local("")
        .reads(|it, arg| {
            if it.policy.chown_uid.is_some() {
                return Err("--usermap conflicts with --chown".into());
            }
            let keep = &mut it.policy.preserve;
            (keep.owner, keep.owner_explicit) = (true, true);
            put(&mut it.policy.users, owner::map(arg.name, &arg.value, &owner::USERS)?)
        }),
    value("groupmap", None, "MAP", "map groups, as --usermap").local("").reads(|it, arg| {
        if it.policy.chown_gid.is_some() {
            return Err("--groupmap conflicts with --chown".into());
        }
        it.policy.preserve.group = true;
        put(&mut it.policy.groups, owner::map(arg.name, &arg.value, &owner::GROUPS)?)
    }),
    flag("super", None, "fail if an owner cannot be kept, even as an ordinary user")
        .off(&["no-super"])
        .sets(|it, on| (it.superuser, it.policy.as_user) = (on, !on)),
    flag("fake-super", None, "keep owners, devices and the like in user.rsync.*, on both sides")
        .off(&["no-fake-super"])
        .local("objects keep owners in their metadata")
        .sets(|it, on| it.fake.both = on),
    values("remote-option", Some('M'), "OPTION", "--fake-super or --super for DST alone")
        .local("")
        .reads(super::values::set_remote),
    // Names and numbers are of one machine: they stay unchanged.
    flag("numeric-ids", None, "keep numeric IDs (always so between local paths)")
        .off(&["no-numeric-ids"])
        .sets(|it, on| it.numeric_ids = on),
]);

static LEFT: Group<Reading> = titled("What is left alone").with(&[
    flag("checksum", Some('c'), "compare contents, not size and time")
        .off(&["no-checksum", "no-c"])
        .sets(|it, on| it.policy.checksum = on),
    flag("update", Some('u'), "skip files that are newer in DST")
        .sets(|it, on| it.policy.update = on),
    flag(
        "size-or-newer",
        None,
        "with s3://: copy what has another size or is newer in SRC (uploads: always so)",
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
        "times this close are equal (0: whole seconds, -1: ns)",
    )
    .reads(|it, arg| {
        let window_s = arg.parsed().ok_or_else(|| arg.refuse("is not a number of seconds"));
        put(&mut it.policy.modify_window_s, Some(window_s?))
    }),
    flag("existing", None, "update only files that exist in DST")
        .alias(&["ignore-non-existing"])
        .sets(|it, on| it.policy.existing = on),
    flag("ignore-existing", None, "copy only files that do not exist in DST")
        .alias(&["no-clobber", "no-overwrite"])
        .sets(|it, on| it.policy.ignore_existing = on),
]);

static REMOVED: Group<Reading> = titled("Removal").with(&[
    flag("delete", None, "delete entries of DST that SRC does not have")
        .sets(|it, on| it.delete = on),
    flag("delete-before", None, "... before copying")
        .sets(|it, _| it.delete_when.push(("delete-before", Delete::Before))),
    flag("delete-during", None, "... directory by directory (the default)")
        .alias(&["del"])
        .sets(|it, _| it.delete_when.push(("delete-during", Delete::During))),
    flag("delete-delay", None, "... after copying (the same here)")
        .sets(|it, _| it.delete_when.push(("delete-delay", Delete::After))),
    flag("delete-after", None, "... after copying (the same here)")
        .sets(|it, _| it.delete_when.push(("delete-after", Delete::After))),
    flag("delete-excluded", None, "... including entries that the filters skip")
        .sets(|it, _| (it.delete, it.policy.delete_excluded) = (true, true)),
    value("max-delete", None, "NUM", "remove at most NUM entries").reads(|it, arg| {
        let most = arg.parsed::<i64>().and_then(|n| u64::try_from(n).ok());
        let most = most.ok_or_else(|| arg.refuse("is not a number"))?;
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

static WORK: Group<Reading> = titled("Work").with(&[
    limits::JOBS.reads(limits::set_jobs),
    value("joblog", None, "FILE", "one line per file in GNU parallel's columns")
        .reads(|it, arg| put(&mut it.wanted.joblog, Some(arg.value.clone()))),
    value("stop-after", None, "MINUTES", "end the run after this many minutes")
        .alias(&["time-limit"])
        .reads(super::values::stop_after),
    value("stop-at", None, "TIME", "end the run at [[YYYY-]MM-DDT]HH:MM")
        .reads(super::values::stop_at),
    flag("dry-run", Some('n'), "show what would be done, change nothing")
        .alias(&["dryrun"])
        .sets(|it, on| it.policy.dry_run = on),
]);

static OUTPUT: Group<Reading> = titled("Output").with(&[
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
    flag("stats", None, "counts at the end").sets(|it, on| it.stats = Some(if on { 2 } else { 0 })),
    flag(
        "progress",
        None,
        "a bar on a terminal (by default after a second), else a line a second, and rsync's lines on standard output",
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
        "which messages: name, name2, progress, stats, backup, skip, all, none; 'help' lists",
    )
    .reads(super::info::set),
    values("debug", None, "FLAGS", "filter: which rule decides about an entry; 'help' lists others")
        .reads(super::info::debug),
    flag("no-inc-recursive", None, "with -j 1: files in the order of their names")
        .alias(&["no-i-r"])
        .off(&["inc-recursive", "i-r"])
        .sets(|it, on| it.ordered = on),
    value("out-format", None, "FORMAT", "a line for each entry: %i %n%L is -i, %n%L is -v")
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
    value("log-file-format", None, "FORMAT", "format of its lines")
        .reads(|it, arg| put(&mut it.wanted.log_format, Some(format(arg)?))),
    JSON.sets(|it, on| it.wanted.json = on),
]);

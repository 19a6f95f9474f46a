//! Parser of a `sync` command line, for `sync` itself and for runs on many machines.

use super::options::TABLE;
use super::{info, spec};
use crate::commands::cluster::ClusterArgs;
use crate::options::Refused;
use crate::show::Wanted;
use hakobu_transfer::location::Location;
use hakobu_transfer::run::Spec;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Returns the spec of a command line, its requested output, and the options for many machines.
pub fn read(arguments: &[OsString]) -> Result<(Spec, Wanted, ClusterArgs), Refused> {
    let mut typed = TABLE.parse(arguments).map_err(|refused| match refused {
        // A location on another machine matters more than any option error.
        Refused::Usage(message) => Refused::Usage(remote(arguments).unwrap_or(message)),
        other => other,
    })?;
    if let Some(text) = info::help(arguments, &typed) {
        return Err(Refused::Help(text));
    }
    let (spec, mut wanted, args) = spec::of(&mut typed)?;
    if spec.digest.is_some() {
        // `%C` shows what they choose.
        typed.notes.retain(|(option, _)| {
            !option.starts_with("--checksum-choice") && !option.starts_with("--cc")
        });
    }
    wanted.notes.extend(typed.note().filter(|_| !wanted.quiet));
    Ok((spec, wanted, args))
}

/// Returns the message about a location on another machine for a command line with invalid options, whose arguments
/// are therefore unknown: checks the last word, or the one before it, if no option has such a value.
fn remote(arguments: &[OsString]) -> Option<String> {
    let mut words = arguments.iter().rev().filter(|word| !word.as_bytes().starts_with(b"-"));
    let last = words.next()?;
    let before = words.next().filter(|word| {
        let text = word.to_string_lossy();
        let host = text.split_once(':').map_or("", |(host, _)| host);
        host == "rsync" || host.contains('@') || text.contains("::")
    });
    [Some(last), before].into_iter().flatten().find_map(|word| {
        let remote = Location::parse(word).err()?;
        Some(remote.message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;
    use hakobu_core::unit::Jobs;
    use hakobu_transfer::policy::{Delete, Symlinks};
    use hakobu_transfer::run::Layout;

    fn prepared(line: &str) -> Result<(Spec, Wanted), String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let read = read(&arguments).map(|(spec, wanted, _)| (spec, wanted));
        read.map_err(|refused| match refused {
            Refused::Help(_) => "help".to_owned(),
            Refused::Usage(message) => format!("{} {message}", exit::SYNC_USAGE),
            Refused::Failed { code, message } => format!("{code} {message}"),
        })
    }

    fn spec(line: &str) -> Spec {
        match prepared(line) {
            Ok((spec, _)) => spec,
            Err(message) => panic!("{line}: {message}"),
        }
    }

    fn error(line: &str) -> String {
        let message = prepared(line).err().unwrap_or_default();
        message.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn archive_and_what_is_taken_off_again() {
        /// Recursive, links, perms, times, owner, group, devices, specials.
        fn bits(line: &str) -> String {
            let policy = spec(line).policy;
            let keep = policy.preserve;
            [
                ('r', policy.recurse),
                ('l', policy.symlinks == Symlinks::Keep),
                ('p', keep.mode),
                ('t', keep.times),
                ('o', keep.owner),
                ('g', keep.group),
                ('d', policy.devices),
                ('s', policy.specials),
            ]
            .iter()
            .filter_map(|(letter, on)| on.then_some(*letter))
            .collect()
        }
        for (line, expected) in [
            ("-a s d", "rlptogds"),
            ("-rlptgoD s d", "rlptogds"),
            ("s d", ""),
            ("-a --no-o s d", "rlptgds"),
            ("--no-o -a s d", "rlptogds"),
            ("-a --no-times --no-D s d", "rlpog"),
            ("-a --no-devices s d", "rlptogs"),
            ("-a --no-r s d", "lptogds"),
            ("-a --no-links s d", "rptogds"),
            ("-A s d", "p"),
            ("-A --no-p s d", ""),
            ("--chown=5:6 s d", "og"),
            ("--chown=:6 s d", "g"),
            ("-a --files-from=/dev/null s d", "lptogds"),
            ("-ar --files-from=/dev/null s d", "rlptogds"),
            ("-ra --files-from=/dev/null s d", "rlptogds"),
        ] {
            assert_eq!(bits(line), expected, "{line}");
        }
        assert_eq!(spec("-lL s d").policy.symlinks, Symlinks::Follow);
        assert!(spec("-o s d").policy.preserve.owner_explicit);
        assert!(!spec("-a s d").policy.preserve.owner_explicit);
        assert!(!spec("-ao --no-o -a s d").policy.preserve.owner_explicit);
    }

    #[test]
    fn files_from_implies() {
        let spec1 = spec("--files-from=/dev/null s d");
        assert_eq!(spec1.layout, Layout::Rsync { relative: true });
        assert!(spec1.policy.dirs && spec1.files_from == Some(Vec::new()));
        let spec2 = spec("--files-from=/dev/null --no-R --no-d s d");
        assert_eq!(spec2.layout, Layout::Rsync { relative: false });
        assert!(!spec2.policy.dirs);
        assert!(error("--files-from=/dev/null a b d").starts_with("1 --files-from"));
    }

    #[test]
    fn deletion() {
        for (line, when) in [
            ("-r s d", Delete::No),
            ("-r --delete s d", Delete::During),
            ("-r --del s d", Delete::During),
            ("-r --delete --delete-before s d", Delete::Before),
            ("-r --delete-delay --delete s d", Delete::After),
            ("-r --delete-after s d", Delete::After),
            ("-r --delete-excluded s d", Delete::During),
            ("-d --delete s d", Delete::During),
        ] {
            assert_eq!(spec(line).policy.delete, when, "{line}");
        }
        assert!(spec("-r --delete-excluded s d").policy.delete_excluded);
        assert_eq!(spec("-r --del --max-delete=7 s d").policy.max_delete, Some(7));
        assert!(error("-r --del --delete-after s d").starts_with("1 "));
        assert!(error("--delete s d").starts_with("1 --delete does not work without"));
    }

    #[test]
    fn values() {
        let it = spec(
            "-n -xHXS -uc --size-only -I --existing --ignore-existing --max-size=1.5m --min-size=1k \
             --bwlimit=100 --modify-window=-1 --inplace --partial -T tmp --no-S \
             --link-dest=a --link-dest b --fsync --mkpath --remove-source-files --force \
             --ignore-errors -b --suffix=.bak -kK --safe-links -m -j 3 s1 s2 d",
        );
        let policy = &it.policy;
        assert!(policy.dry_run && policy.one_file_system && policy.hard_links);
        assert!(policy.preserve.xattrs && policy.update && policy.checksum && policy.size_only);
        assert!(policy.ignore_times && policy.existing && policy.ignore_existing);
        assert_eq!((policy.max_size, policy.min_size), (Some(1_572_864), Some(1024)));
        assert_eq!(it.limits.bytes_per_s_max, Some(102_400));
        assert_eq!(policy.modify_window_s, Some(-1));
        assert!(policy.inplace && policy.partial && policy.fsync && it.mkpath);
        assert_eq!(policy.temp_dir.as_deref(), Some("tmp".as_ref()));
        assert_eq!(policy.basis_dirs.len(), 2);
        assert!(policy.remove_source_files && policy.force && policy.ignore_errors);
        assert!(policy.backup && policy.suffix == b".bak" && policy.preserve.omit_dir_times);
        assert!(policy.copy_dirlinks && policy.keep_dirlinks && policy.safe_links);
        assert!(policy.prune_empty_dirs && !it.check_space);
        assert_eq!((it.limits.jobs, it.sources.len()), (Jobs::Fixed(3), 2));
        assert_eq!(spec("-b s d").policy.suffix, b"~");
        assert_eq!(
            spec("--chmod=u=rw --chmod D+x s d").policy.chmod.map(|c| c.apply(0, true)),
            Some(0o711)
        );
        assert!(spec("-a s d").check_space);
    }

    #[test]
    fn attributes_stored_with_objects() {
        let fitted = |line: &str| {
            let it = spec(&format!("{line} s s3://abc/d"));
            assert!(!it.policy.devices, "{line}");
            let options = it.objects.options;
            let kept =
                (options.keep_times, options.keep_modes, options.keep_owner, options.keep_group);
            (kept, options.if_none_match)
        };
        assert_eq!(fitted("-r"), ((false, false, false, false), false));
        assert_eq!(fitted("-a"), ((true, true, true, true), false));
        assert_eq!(fitted("-a --no-o"), ((true, true, false, true), false));
        assert_eq!(fitted("-ro"), ((false, false, true, false), false));
        assert_eq!(fitted("-rg"), ((false, false, false, true), false));
        assert_eq!(fitted("-a --no-t"), ((false, true, true, true), false));
        assert_eq!(fitted("-r --no-clobber"), ((false, false, false, false), true));
    }

    #[test]
    fn only_what_was_typed_is_refused_with_objects() {
        let refused = |line: &str| error(line).contains("is not supported for s3://");
        assert!(refused("-rH s s3://abc/d") && refused("-rH s3://abc/s d"));
        assert!(!refused("-r --no-H s s3://abc/d") && !refused("-a s s3://abc/d"));
        assert!(!refused("-rH s d"));
        assert!(refused("-rm s s3://abc/d") && !refused("-rm s3://abc/s d"));
        assert!(refused("-r --force s s3://abc/d"));
    }

    #[test]
    fn listing() {
        let it = spec("s");
        assert!(it.policy.list_only && it.policy.dirs && it.items);
        assert!(spec("-r s").policy.list_only);
        assert!(!spec("--no-d s").policy.dirs);
        assert!(spec("--list-only s d").policy.list_only);
    }

    #[test]
    fn requested_output() {
        use crate::number::Digits;
        use crate::show::Line;
        let wanted = |line: &str| prepared(line).map(|(_, wanted)| wanted).unwrap_or_default();
        assert_eq!(wanted("-v s d").line, Line::Name { all: false });
        assert_eq!(wanted("-vi s d").line, Line::Itemized);
        assert_eq!(wanted("-vi --json s d").line, Line::Json);
        assert_eq!(wanted("--json s d").line, Line::None);
        assert_eq!(wanted("-q -v s d").line, Line::None);
        assert_eq!(wanted("-hh s d").digits, Digits::Kibi);
        assert_eq!(wanted("--no-h s d").digits, Digits::Plain);
        assert!(wanted("-P s d").progress == Some(true) && spec("-P s d").policy.partial);
        assert_eq!(wanted("--info=progress2 s d").progress, Some(true));
        assert_eq!(wanted("-P --no-progress s d").progress, Some(false));
        assert_eq!(wanted("s d").progress, None);
        for (line, items, unchanged) in [
            ("s d", false, false),
            ("-v s d", true, false),
            ("-vv s d", true, true),
            ("-ii s d", true, true),
            ("--joblog=x s d", true, false),
            ("--log-file=x s d", true, false),
        ] {
            let spec = spec(line);
            assert_eq!((spec.items, spec.items_unchanged), (items, unchanged), "{line}");
        }
    }

    #[test]
    fn refused() {
        for (line, expected) in [
            ("", "1 give a source and a target (hakobu sync --help)"),
            ("--backup-dir= s d", "1 --backup-dir needs a folder"),
            ("--inplace --delay-updates s d", "1 --inplace cannot be used with --delay-updates"),
            (
                "--link-dest=a --compare-dest=b s d",
                "1 --compare-dest cannot be used with --link-dest",
            ),
            (
                "--partial-dir=a/b s d",
                "1 --partial-dir=a/b is neither the name of a folder nor an absolute path",
            ),
            ("--stop-after=0 s d", "1 --stop-after=0 is not a number of minutes"),
            ("--max-size=1z s d", "1 --max-size=1z is not a size such as 500, 1.5m, 2GiB or 1MB-1"),
            (
                "--bwlimit=1b s d",
                "1 --bwlimit=1b is too small: give at least 512 bytes, or 0 for no limit",
            ),
            ("--max-delete=x s d", "1 --max-delete=x is not a number"),
            ("--modify-window=x s d", "1 --modify-window=x is not a number of seconds"),
            ("--chmod=u+q s d", "1 --chmod: 'u+q' is not a change of mode bits"),
            (
                "--chown=no-such-user-here s d",
                "1 --chown=no-such-user-here: there is no user 'no-such-user-here'",
            ),
            (
                "--max-alloc=0 s d",
                "1 --max-alloc=0 is refused: max-alloc must be greater than zero",
            ),
            ("--info=frob s d", "1 --info=frob: there is no such flag (--info=help lists them)"),
            ("-j x s d", "1 -j 'x': give a number of jobs up to 4096, +N, -N, N%, 0 or auto"),
            (
                "s host:d",
                "1 'host:d': remote locations are not supported; for a local file write './host:d'",
            ),
            ("rsync://h/m d", "1 'rsync://h/m': rsync:// locations are not supported"),
            ("--files-from=/no/such s d", "1 cannot read '/no/such': No such file or directory"),
            ("--exclude-from=/no/such s d", "11 cannot read '/no/such': No such file or directory"),
            ("-aXX --fake-super s d", "1 -XX cannot be used with --fake-super"),
            (
                "-M--log-file=x s d",
                "1 --remote-option=--log-file=x is not supported: there is no other machine; \
                 --fake-super and --super are, for DST alone",
            ),
            ("-r --delete -b --suffix= s d", "1 --backup needs a suffix that is not empty"),
            ("--nonsense s d", "1 unexpected argument '--nonsense' found (hakobu sync --help)"),
            ("--help", "help"),
        ] {
            assert_eq!(error(line), expected, "{line}");
        }
    }
}

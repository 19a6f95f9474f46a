//! `hakobu rm` of `s3://`: objects, prefixes with `-r`, matches of wildcards.

use crate::cli::Typed;
use crate::commands::rm::{Ask, RmOptions, TABLE};
use crate::commands::session::Session;
use crate::commands::tool;
use crate::show::escape::push_quoted;
use crate::show::lines::push_literally;
use crate::show::output::Output;
use crate::show::{Line, ShowOptions, confirmed};
use crate::{exit, objects};
use hakobu_core::error::quoted;
use hakobu_s3::ops::delete_object;
use hakobu_s3::with_client;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::Pattern;
use hakobu_transfer::run::{Keys, Removal, RemovalTarget};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The parsed command line.
#[derive(Debug)]
pub struct ObjectRemoval {
    removal: Removal,
    wanted: ShowOptions,
    asks_once: bool,
    recursive: bool,
    /// `--version-id` of the single object.
    version: Option<(String, OsString, S3Url)>,
}

/// Parses a command line whose paths are all in S3.
///
/// # Errors
/// An invalid command line.
pub fn plan(typed: &Typed) -> Result<ObjectRemoval, String> {
    TABLE.check_places(typed, true, true)?;
    let read = TABLE.read(typed, RmOptions::new(true))?;
    let RmOptions { recursive, force, ask, dry_run, verbose, json, limits, .. } = read;
    let (args, filters) = (read.objects, read.filters);
    super::refuse_idle(&filters)?;
    let mut targets = Vec::new();
    for path in &typed.paths {
        add_targets(path, recursive, args.is_raw(), &mut targets)?;
    }
    let version = match (args.version(), typed.paths.as_slice()) {
        (None, _) => None,
        (Some(_), _) if args.all_versions() => {
            return Err("--version-id and --all-versions contradict each other".into());
        }
        (Some(version), [path]) => {
            Some((version.to_owned(), path.clone(), objects::object_url(path)?))
        }
        (Some(_), _) => return Err("--version-id goes with one object".into()),
    };
    let line = match (verbose || dry_run, json) {
        (false, _) => Line::None,
        (true, true) => Line::Json,
        (true, false) if dry_run => Line::Mapping("rm"),
        (true, false) => Line::Removed,
    };
    let wanted = ShowOptions {
        command: "rm",
        done: "removed",
        resume: "run the same command again to remove the rest",
        line,
        json,
        problems: verbose,
        dry_run,
        quiet: true,
        stat: args.stat,
        priority: limits.priority,
        styled: filters.is_styled(),
        ..ShowOptions::default()
    };
    let removal = Removal {
        filter: filters.of_names()?,
        all_versions: args.all_versions(),
        must_exist: !force,
        dry_run,
        jobs: limits.base.jobs,
        requests_per_s_max: limits.of_run(true)?.operations_per_s_max,
        items: wanted.items(),
        ..Removal::new(args.settings(), targets)
    };
    Ok(ObjectRemoval { removal, wanted, asks_once: ask == Ask::Once, recursive, version })
}

impl ObjectRemoval {
    /// Returns the removal if it can be merged with others of the same options: not with questions, and not for a
    /// single version.
    pub fn together(self) -> Option<(Removal, ShowOptions)> {
        let alone = self.asks_once || self.version.is_some();
        (!alone).then_some((self.removal, self.wanted))
    }
}

/// Returns the objects that an argument selects for removal.
fn add_targets(
    typed: &OsString,
    recursive: bool,
    raw: bool,
    targets: &mut Vec<RemovalTarget>,
) -> Result<(), String> {
    let S3Url { bucket, key, .. } = objects::url(typed)?;
    if bucket.is_empty() {
        return Err("s3:// means all buckets; hakobu rb removes one".into());
    }
    if let Some(pattern) = Pattern::parse(&key).filter(|_| !raw) {
        targets.push(RemovalTarget { bucket, keys: Keys::Matching(pattern) });
        return Ok(());
    }
    let folder = key.is_empty() || key.ends_with(b"/");
    if folder && !recursive {
        return Err(format!("{} is a prefix (use -r)", quoted(typed)));
    }
    let keys = match (folder, recursive) {
        (false, false) => Keys::One(key),
        (false, true) => Keys::Tree(key),
        (true, _) => Keys::Below(key),
    };
    targets.push(RemovalTarget { bucket, keys });
    Ok(())
}

/// Removes the arguments of a plan; returns the exit code.
pub fn remove(plan: ObjectRemoval) -> u8 {
    let count = plan.removal.targets.len();
    if plan.asks_once && (plan.recursive || count > 3) {
        let how = if plan.recursive { " recursively" } else { "" };
        if !confirmed(&format!("hakobu rm: remove {count} arguments{how}? ")) {
            return exit::OK;
        }
    }
    if let Some((version, typed, url)) = &plan.version {
        return one_version(&plan, version, typed, url);
    }
    let session = match Session::start(plan.wanted, exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let outcome = session.remove(&plan.removal);
    session.end(outcome)
}

fn one_version(plan: &ObjectRemoval, version: &str, typed: &OsString, url: &S3Url) -> u8 {
    if plan.removal.dry_run {
        let out = Output::stdout();
        let mut line = b"rm --version-id ".to_vec();
        push_quoted(version.as_bytes(), &mut line);
        push_literally(&[typed.as_bytes()], &mut line);
        line.push(b'\n');
        out.write(&line);
        return tool::close(&out, exit::OK);
    }
    let removed = with_client(&plan.removal.settings, async |client| {
        delete_object(&client, &url.bucket, &url.key, Some(version)).await
    });
    match removed {
        Ok(()) => exit::OK,
        Err(error) => {
            let out = Output::stdout();
            tool::fail(plan.wanted.json.then_some(&out), "remove", typed, &error);
            tool::close(&out, exit::FAILURE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<ObjectRemoval, String> {
        plan(&TABLE.parse_line(line)?)
    }

    #[test]
    fn arguments_become_removal_targets() {
        let targets = |line: &str| planned(line).map(|plan| format!("{:?}", plan.removal.targets));
        for (line, parts) in [
            ("s3://abc/k", &["One"][..]),
            ("-r s3://abc/k", &["Tree"]),
            ("-r s3://abc/k/", &["Below"]),
            ("-r s3://abc", &["Below"]),
            ("s3://abc/k*", &["Matching"]),
            ("--raw s3://abc/k*", &["One"]),
        ] {
            let found = targets(line).unwrap();
            for part in ["One", "Tree", "Below", "Matching"] {
                let expected = parts.contains(&part);
                assert_eq!(found.contains(part), expected, "{part} of {line}: {found}");
            }
        }
        for line in [
            "s3://abc",
            "s3://abc/p/",
            "s3://",
            "-i s3://abc/k",
            "-d s3://abc/k",
            "--version-id=x s3://abc/k s3://abc/l",
            "--version-id=x --all-versions s3://abc/k",
        ] {
            assert!(planned(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_prefix_ends_where_it_ends() {
        let plan = planned("-rf s3://abc/logs").unwrap();
        let expected = RemovalTarget { bucket: "abc".into(), keys: Keys::Tree(b"logs".to_vec()) };
        assert_eq!(plan.removal.targets, [expected]);
        assert!(!plan.removal.must_exist);
    }
}

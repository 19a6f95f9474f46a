//! `hakobu rm` of `s3://`: objects, prefixes with `-r`, what wildcards match.

use super::Ask;
use crate::commands::{Session, tool};
use crate::effort::Effort;
use crate::exit;
use crate::objects::{self, Asked};
use crate::options::Typed;
use crate::show::output::Output;
use crate::show::{Line, Wanted, confirmed};
use hakobu_transfer::error::quoted;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::Pattern;
use hakobu_transfer::run::{Doomed, Removal};
use hakobu_transfer::s3::blocking::with_client;
use hakobu_transfer::s3::ops::delete_object;
use std::ffi::OsString;

/// What was asked for.
#[derive(Debug)]
pub struct Plan {
    removal: Removal,
    wanted: Wanted,
    asks_once: bool,
    recursive: bool,
    /// `--version-id` of the single object.
    version: Option<(String, OsString, S3Url)>,
}

/// Reads a command line whose paths are all in S3.
///
/// # Errors
/// What is wrong with it.
pub fn plan(typed: &Typed) -> Result<Plan, String> {
    let mut asked = Asked::default();
    let (mut recursive, mut force, mut ask, mut dry_run) = (false, false, Ask::Never, false);
    let (mut verbose, mut json, mut effort) = (false, false, Effort::default());
    for given in &typed.options {
        if asked.take(given)? || effort.take(given)? {
            continue;
        }
        match given.name {
            "recursive" | "R" => recursive = true,
            "force" => (force, ask) = (true, Ask::Never),
            "I" => (force, ask) = (false, Ask::Once),
            "interactive" if given.value == "once" => (force, ask) = (false, Ask::Once),
            "interactive" if given.value == "never" => (force, ask) = (false, Ask::Never),
            "dry-run" => dry_run = true,
            "verbose" => verbose = true,
            "json" => json = true,
            name => {
                let dashes = if name.len() == 1 { "-" } else { "--" };
                return Err(format!("{dashes}{name} is not built for s3://"));
            }
        }
    }
    let mut doomed = Vec::new();
    for path in &typed.paths {
        doom(path, recursive, asked.is_raw(), &mut doomed)?;
    }
    let version = match (asked.version(), typed.paths.as_slice()) {
        (None, _) => None,
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
    let wanted = Wanted {
        command: "rm",
        done: "removed",
        resume: "run the same command again to remove the rest",
        line,
        json,
        problems: verbose,
        dry_run,
        quiet: true,
        stat: asked.stat,
        priority: effort.priority,
        ..Wanted::default()
    };
    let removal = Removal {
        must_exist: !force,
        dry_run,
        jobs: effort.jobs,
        requests_per_s_max: effort.operations_per_s_max(true)?,
        items: wanted.items(),
        ..Removal::new(asked.settings(), doomed)
    };
    Ok(Plan { removal, wanted, asks_once: ask == Ask::Once, recursive, version })
}

impl Plan {
    /// What can be done together with others of the same options: not where somebody is asked, and
    /// not for a single version.
    pub fn together(self) -> Option<(Removal, Wanted)> {
        let alone = self.asks_once || self.version.is_some();
        (!alone).then_some((self.removal, self.wanted))
    }
}

/// What an argument dooms.
fn doom(
    typed: &OsString,
    recursive: bool,
    raw: bool,
    doomed: &mut Vec<Doomed>,
) -> Result<(), String> {
    let S3Url { bucket, key, .. } = objects::url(typed)?;
    if bucket.is_empty() {
        return Err("s3:// stands for all buckets; hakobu rb removes one".into());
    }
    if let Some(pattern) = Pattern::parse(&key).filter(|_| !raw) {
        doomed.push(Doomed::Matching { bucket, pattern });
        return Ok(());
    }
    let folder = key.is_empty() || key.ends_with(b"/");
    if folder && !recursive {
        return Err(format!("{} is a prefix, and -r is not given", quoted(typed)));
    }
    if !folder && !recursive {
        doomed.push(Doomed::Key { bucket, key });
        return Ok(());
    }
    doomed.push(match folder {
        true => Doomed::Below { bucket, prefix: key },
        false => Doomed::Tree { bucket, key },
    });
    Ok(())
}

/// Removes what the plan names; the exit code.
pub fn remove(plan: Plan) -> u8 {
    let count = plan.removal.doomed.len();
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

fn one_version(plan: &Plan, version: &str, typed: &OsString, url: &S3Url) -> u8 {
    if plan.removal.dry_run {
        let out = Output::stdout();
        out.write(format!("rm --version-id {version} {}\n", quoted(typed)).as_bytes());
        return tool::close(&out, exit::OK);
    }
    let removed = with_client(&plan.removal.settings, async |client| {
        delete_object(&client, &url.bucket, &url.key, Some(version)).await
    });
    match removed {
        Ok(()) => exit::OK,
        Err(error) => {
            tool::fail("remove", typed, &error);
            exit::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::rm::TABLE;

    fn planned(line: &str) -> Result<Plan, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        plan(&TABLE.parse(&words).map_err(|refused| format!("{refused:?}"))?)
    }

    #[test]
    fn what_is_doomed() {
        let doomed = |line: &str| planned(line).map(|plan| format!("{:?}", plan.removal.doomed));
        for (line, parts) in [
            ("s3://abc/k", &["Key"][..]),
            ("-r s3://abc/k", &["Tree"]),
            ("-r s3://abc/k/", &["Below"]),
            ("-r s3://abc", &["Below"]),
            ("s3://abc/k*", &["Matching"]),
            ("--raw s3://abc/k*", &["Key"]),
        ] {
            let found = doomed(line).unwrap();
            for part in ["Key", "Tree", "Below", "Matching"] {
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
        ] {
            assert!(planned(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_prefix_ends_where_it_ends() {
        let plan = planned("-rf s3://abc/logs").unwrap();
        let expected = Doomed::Tree { bucket: "abc".into(), key: b"logs".to_vec() };
        assert_eq!(plan.removal.doomed, [expected]);
        assert!(!plan.removal.must_exist);
    }
}

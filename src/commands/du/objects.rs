//! `hakobu du` of `s3://`: sizes and numbers of objects, for every prefix, for the arguments only, or by storage class.

mod listing;
mod tree;

use super::line::{Lines, Sum, Sums};
use super::options::{Plan, TABLE};
use crate::commands::tool;
use crate::exit;
use crate::objects;
use crate::options::Typed;
use crate::show::output::Output;
use hakobu_s3::ops::head_object;
use hakobu_s3::with_session;
use hakobu_s3::{Error, ErrorKind, S3Session};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{Choice, Scope};
use hakobu_transfer::policy::filter::FilterError;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use tree::Tree;

/// Parses a command line whose paths are all in S3.
///
/// # Errors
/// An invalid command line.
pub fn plan(typed: &Typed) -> Result<Plan, String> {
    let places = objects::all(&typed.paths, objects::place_url, "give s3://BUCKET[/PREFIX]")?;
    TABLE.check_places(typed, true, true)?;
    let mut plan = TABLE.read(typed, Plan { places, ..Plan::default() })?;
    plan.limits.of_run(true)?;
    plan.filters.note(true)?;
    plan.filter = plan.filters.of_names()?;
    if plan.options.files && plan.levels == Some(0) {
        return Err("-s and -a contradict each other: one line in all, or one for each".into());
    }
    check(&plan)?;
    Ok(plan)
}

/// Rejects options that contradict each other.
fn check(plan: &Plan) -> Result<(), String> {
    let versions = plan.objects.all_versions();
    if plan.group && (plan.options.files || plan.levels.is_some_and(|max| max > 0)) {
        return Err(
            "--group prints the sums of the arguments, so -a and -d do not go with it".into()
        );
    }
    if versions && plan.options.files {
        return Err(
            "-a does not go with --all-versions: hakobu ls -R --all-versions lists them".into()
        );
    }
    if plan.objects.version().is_none() {
        return Ok(());
    }
    if versions {
        return Err("--version-id and --all-versions contradict each other".into());
    }
    match plan.places.as_slice() {
        [(typed, _)] => objects::object_url(typed).map(drop),
        _ => Err("--version-id goes with one object".into()),
    }
}

/// Counts the arguments of a plan; returns the exit code.
pub fn measure(plan: &Plan) -> Result<u8, String> {
    plan.limits.priority.apply()?;
    let store = tool::open(&plan.objects)?;
    let out = Output::stdout();
    let lines = Lines::new(plan, &out);
    let (mut code, mut sums) = (exit::OK, Sums::default());
    for (typed, url) in &plan.places {
        let found = match plan.objects.version() {
            Some(version) => one_version(plan, &store, url, version),
            None => place(&store, url, &lines),
        };
        match found {
            Ok(found) => {
                found.write(&lines, Some(typed.as_bytes()));
                sums.add_all(&found);
            }
            Err(error) => {
                tool::fail(plan.json.then_some(&out), "list", typed, &error);
                code = exit::FAILURE;
            }
        }
    }
    if plan.total {
        sums.write(&lines, None);
    }
    if plan.objects.stat {
        tool::print_requests(&store);
    }
    Ok(tool::close(&out, code))
}

/// Returns the size of one version of an object.
fn one_version(
    plan: &Plan,
    store: &Arc<S3Session>,
    url: &S3Url,
    version: &str,
) -> Result<Sums, Error> {
    let head = with_session(store, async |client| {
        head_object(&client, &url.bucket, &url.key, Some(version)).await
    })?;
    let mut sums = Sums::default();
    let class = plan.group.then(|| tool::class(&head.storage_class));
    sums.add(class, Sum { bytes: head.size, objects: 1 });
    Ok(sums)
}

/// Returns whether a key is the typed one or is below it as a folder: `p2` is not below `p`.
fn is_below(key: &[u8], typed: &[u8]) -> bool {
    let rest = key.strip_prefix(typed);
    rest.is_some_and(|rest| {
        typed.is_empty() || typed.ends_with(b"/") || rest.is_empty() || rest.starts_with(b"/")
    })
}

/// Sums up an argument, and writes the lines of its prefixes.
fn place(store: &Arc<S3Session>, url: &S3Url, lines: &Lines<'_>) -> Result<Sums, Error> {
    let plan = lines.plan;
    let scope = Scope::of(&url.key, plan.objects.is_raw());
    let invalid = |why: FilterError| Error::new(ErrorKind::Invalid, "", why.to_string());
    let choice = Choice::new(&scope.prefix, scope.pattern.clone(), plan.filter.as_ref());
    let mut choice = choice.map_err(invalid)?;
    let summed = plan.group || plan.levels == Some(0);
    let mut tree = Tree::new(lines, &url.bucket, &scope.prefix);
    let (mut key, mut found) = (scope.prefix.clone(), url.key.is_empty());
    let mut sums = Sums::default();
    let mut whole = Sum::default();
    listing::each(plan, store, &url.bucket, &scope, |object| {
        key.truncate(scope.prefix.len());
        key.extend_from_slice(object.name);
        let meant = match &scope.pattern {
            Some(_) => choice.matches(object.name),
            None => is_below(&key, &url.key),
        };
        found |= meant;
        if !meant || choice.hides(object.name) {
            return;
        }
        let sum = Sum { bytes: object.bytes, objects: 1 };
        match (plan.group, summed) {
            (true, _) => sums.add(object.class, sum),
            (false, true) => whole.add(sum),
            (false, false) => tree.take(object.name, object.bytes),
        }
    })?;
    tool::note_left_out(url, &mut choice);
    if !found {
        return Err(Error::new(ErrorKind::NotFound, "", "there is no such object or prefix"));
    }
    if !plan.group {
        whole.add(tree.end());
        sums.add(None, whole);
    }
    Ok(sums)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn planned(line: &str) -> Result<Plan, String> {
        plan(&TABLE.parse_line(line)?)
    }

    #[test]
    fn a_typed_key_is_itself_and_what_lies_below() {
        for (key, typed, expected) in [
            ("p", "p", true),
            ("p/x", "p", true),
            ("p2", "p", false),
            ("p/x", "p/", true),
            ("q", "", true),
        ] {
            assert_eq!(is_below(key.as_bytes(), typed.as_bytes()), expected, "{key} {typed}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "-l s3://abc",
            "-x s3://abc",
            "-sa s3://abc",
            "s3://",
            "--group -a s3://abc",
            "--group -d 1 s3://abc",
            "-a --all-versions s3://abc",
            "--version-id=x --all-versions s3://abc/k",
            "--version-id=x s3://abc",
            "--version-id=x s3://abc/k s3://abc/l",
        ] {
            assert!(planned(line).is_err(), "{line}");
        }
        for line in ["--group -s s3://abc", "--all-versions s3://abc", "--version-id=x s3://abc/k"]
        {
            assert!(planned(line).is_ok(), "{line}");
        }
    }
}

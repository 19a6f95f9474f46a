//! `hakobu du` of `s3://`: sizes and numbers of objects, for every prefix, for the arguments only, or by storage class.

use super::{DuLines, DuOptions, Sum, Sums, TABLE};
use crate::cli::Typed;
use crate::commands::tool::{self, class};
use crate::show::output::Output;
use crate::{exit, objects};
use hakobu_s3::ops::{ListQuery, ObjectPages, VersionPages, VersionQuery, head_object};
use hakobu_s3::{Error, ErrorKind, S3Session, with_session};
use hakobu_sys::paths::split;
use hakobu_transfer::location::{S3Url, s3_path};
use hakobu_transfer::object::list::{self, Choice, Scope, StoreQuery};
use hakobu_transfer::policy::filter::FilterError;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Parses a command line whose paths are all in S3.
///
/// # Errors
/// An invalid command line.
pub fn plan(typed: &Typed) -> Result<DuOptions, String> {
    let places = objects::all(&typed.paths, objects::place_url, "give s3://BUCKET[/PREFIX]")?;
    TABLE.check_places(typed, true, true)?;
    let mut plan = TABLE.read(typed, DuOptions { places, ..DuOptions::default() })?;
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
fn check(plan: &DuOptions) -> Result<(), String> {
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
pub fn measure(plan: &DuOptions) -> Result<u8, String> {
    plan.limits.priority.apply()?;
    let store = tool::open(&plan.objects)?;
    let out = Output::stdout();
    let lines = DuLines::new(plan, &out);
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
    plan: &DuOptions,
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
fn place(store: &Arc<S3Session>, url: &S3Url, lines: &DuLines<'_>) -> Result<Sums, Error> {
    let plan = lines.plan;
    let scope = Scope::of(&url.key, plan.objects.is_raw());
    let invalid = |why: FilterError| Error::new(ErrorKind::Invalid, "", why.to_string());
    let choice = Choice::new(&scope.prefix, scope.pattern.clone(), plan.filter.as_ref());
    let mut choice = choice.map_err(invalid)?;
    let summed = plan.group || plan.levels == Some(0);
    let mut tree = DuTree::new(lines, &url.bucket, &scope.prefix);
    let (mut key, mut found) = (scope.prefix.clone(), url.key.is_empty());
    let mut sums = Sums::default();
    let mut whole = Sum::default();
    each(plan, store, &url.bucket, &scope, |object| {
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
        return Err(Error::new(ErrorKind::NotFound, "", "no such object or prefix"));
    }
    if !plan.group {
        whole.add(tree.end());
        sums.add(None, whole);
    }
    Ok(sums)
}

/// An object, or a version of one.
pub struct DuEntry<'a> {
    /// Its name below the prefix of the scope.
    pub name: &'a [u8],
    /// Bytes.
    pub bytes: u64,
    /// Storage class; `None` if it was not requested, and for delete markers.
    pub class: Option<&'a str>,
}

/// Calls `take` for every object of a scope in the order of keys; in any order if one sum is printed.
///
/// # Errors
/// Those of the listing.
pub fn each(
    plan: &DuOptions,
    store: &Arc<S3Session>,
    bucket: &str,
    scope: &Scope,
    mut take: impl FnMut(DuEntry<'_>),
) -> Result<(), Error> {
    let prefix = [&*scope.prefix, &*scope.narrowed].concat();
    // All keys of a page begin with the prefix.
    let cut = scope.prefix.len();
    if plan.objects.all_versions() {
        let mut pages = VersionPages::new(VersionQuery { prefix, delimiter: None });
        return with_session(store, async |client| {
            while let Some(page) = pages.next(&client, bucket).await? {
                for version in &page.versions {
                    let class = (!version.is_delete_marker).then(|| class(&version.storage_class));
                    take(DuEntry { name: &version.key[cut..], bytes: version.size, class });
                }
            }
            Ok(())
        });
    }
    if plan.group {
        let mut pages = ObjectPages::new(ListQuery { prefix, ..ListQuery::default() });
        return with_session(store, async |client| {
            while let Some(page) = pages.next(&client, bucket).await? {
                for object in &page.objects {
                    let class = Some(class(&object.storage_class));
                    take(DuEntry { name: &object.key[cut..], bytes: object.size, class });
                }
            }
            Ok(())
        });
    }
    // The parallel listing, which returns no storage classes.
    let query = StoreQuery {
        prefix: scope.prefix.clone(),
        narrowed: scope.narrowed.clone(),
        recursive: true,
        unordered: plan.levels == Some(0),
        ..StoreQuery::default()
    };
    let mut listing = list::store(store, bucket, query);
    while let Some(page) = listing.page() {
        for item in page {
            let entry = item.map_err(list::Trouble::into_error)?;
            take(DuEntry { name: &entry.name, bytes: entry.meta.size, class: None });
        }
    }
    Ok(())
}

/// Open prefixes of a sorted listing: as many as the depth of the tree.
pub struct DuTree<'a> {
    lines: &'a DuLines<'a>,
    bucket: &'a str,
    /// Common prefix of the names.
    root: Vec<u8>,
    /// Lengths of the open prefixes' names, outermost first, and their sums.
    open: Vec<(usize, Sum)>,
    /// The innermost open prefix's name.
    name: Vec<u8>,
    whole: Sum,
}

impl<'a> DuTree<'a> {
    /// Starts below a prefix.
    pub fn new(lines: &'a DuLines<'a>, bucket: &'a str, root: &[u8]) -> DuTree<'a> {
        let (open, name, whole) = (Vec::new(), Vec::new(), Sum::default());
        DuTree { lines, bucket, root: root.to_vec(), open, name, whole }
    }

    /// Adds an object.
    pub fn take(&mut self, name: &[u8], bytes: u64) {
        let sum = Sum { bytes, objects: 1 };
        let folder = split(name).0.len();
        while self
            .open
            .last()
            .is_some_and(|(length, _)| *length > folder || self.name[..*length] != name[..*length])
        {
            self.close();
        }
        let from = self.open.last().map_or(0, |(length, _)| *length);
        self.name.truncate(from);
        for (at, byte) in name[..folder].iter().enumerate().skip(from) {
            self.name.push(*byte);
            if *byte == b'/' {
                self.open.push((at + 1, Sum::default()));
            }
        }
        let shown = self.lines.plan.levels.is_none_or(|max| self.open.len() < max);
        if self.lines.plan.options.files && shown && name.len() > folder {
            self.line(name, sum);
        }
        match self.open.last_mut() {
            Some((_, of)) => of.add(sum),
            None => self.whole.add(sum),
        }
    }

    /// Ends all prefixes; returns the sum of everything.
    pub fn end(mut self) -> Sum {
        while !self.open.is_empty() {
            self.close();
        }
        self.whole
    }

    /// Ends the innermost prefix.
    fn close(&mut self) {
        let Some((length, sum)) = self.open.pop() else { return };
        let depth = self.open.len() + 1;
        if self.lines.plan.levels.is_none_or(|max| depth <= max) {
            let name = self.name[..length].to_vec();
            self.line(&name, sum);
        }
        match self.open.last_mut() {
            Some((_, of)) => of.add(sum),
            None => self.whole.add(sum),
        }
    }

    fn line(&self, name: &[u8], sum: Sum) {
        let url = s3_path(self.bucket, &[&self.root, name]);
        self.lines.write(Some(url.as_os_str().as_bytes()), None, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<DuOptions, String> {
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

    #[test]
    fn prefixes_are_summed_as_they_end() {
        let plan = planned("-b s3://abc").unwrap();
        let out = Output::stdout();
        let lines = DuLines::new(&plan, &out);
        let mut tree = DuTree::new(&lines, "abc", b"");
        for (name, open) in [
            ("a", "0"),
            ("b/", "1"),
            ("b/c/d", "2"),
            ("b/c/e", "2"),
            ("b/f", "1"),
            ("b0", "0"),
            ("c//x", "2"),
        ] {
            tree.take(name.as_bytes(), 10);
            assert_eq!(tree.open.len().to_string(), open, "{name}");
        }
        assert_eq!(tree.end(), Sum { bytes: 70, objects: 7 });
    }
}

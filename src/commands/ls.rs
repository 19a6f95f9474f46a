//! `hakobu ls`: buckets, the entries of a prefix, everything below it, matches of a wildcard. Lines are written as
//! pages arrive.

mod rows;

use super::tool;
use super::tool::{carry_out, end_with};
use crate::exit;
use crate::filters::{self, Filters};
use crate::objects::{self, ObjectArgs, is_s3};
use crate::options::{JSON, Opt, Table, Typed, flag, parts};
use crate::show::escape::Escape;
use crate::show::output::Output;
use hakobu_core::error::quoted;
use hakobu_core::unit::Kind;
use hakobu_s3::ops::{ListQuery, ObjectPages, VersionPages, VersionQuery, list_buckets};
use hakobu_s3::with_session;
use hakobu_s3::{Error, S3Session};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{self, Choice, Scope, StoreQuery};
use hakobu_transfer::policy::filter::Filter;
use rows::{Form, Row, Rows, Version};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// The command line of `ls`.
pub static TABLE: Table<LsOptions> = Table {
    command: "ls",
    about: "List buckets and objects",
    usage: "hakobu ls [OPTIONS] [s3://BUCKET[/PREFIX]]...",
    after: "Without an argument, buckets are listed. A prefix is listed up to the next slash, in the order of \
            keys.\n\
            Exit codes: 0 done, 2 an argument could not be listed, or usage.",
    options: &[
        &OPTIONS,
        &objects::COMMON,
        &objects::DEBUG,
        &objects::RAW,
        &objects::ALL_VERSIONS,
        &objects::STAT,
        &filters::NAMED,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// The parsed command line.
#[derive(Clone, Debug, Default)]
pub struct LsOptions {
    recursive: bool,
    unordered: bool,
    human: bool,
    long: bool,
    full_path: bool,
    summarize: bool,
    json: bool,
    /// Last byte of a line.
    end: u8,
    /// Escaping of names; `None` prints their bytes.
    escape: Option<Escape>,
    objects: ObjectArgs,
    filters: Filters,
    filter: Option<Arc<Filter>>,
    /// Arguments as typed and parsed.
    places: Vec<(OsString, S3Url)>,
}

parts!(LsOptions { objects: ObjectArgs, filters: Filters });

const OPTIONS: &[Opt<LsOptions>] = &[
    flag("l", Some('l'), "add storage class and ETag").short_only().sets(|it, on| it.long = on),
    flag("etag", None, "the same as -l").alias(&["storage-class"]).sets(|it, on| it.long = on),
    flag("recursive", Some('R'), "list everything below a prefix, with whole keys")
        .sets(|it, on| it.recursive = on),
    flag("U", Some('U'), "in any order, which is faster")
        .short_only()
        .sets(|it, on| it.unordered = on),
    flag("human-readable", Some('h'), "sizes such as 1.5M (powers of 1024)")
        .alias(&["humanize"])
        .sets(|it, on| it.human = on),
    flag("show-fullpath", None, "whole URLs, and nothing else").sets(|it, on| it.full_path = on),
    flag("summarize", None, "count and size of all at the end").sets(|it, on| it.summarize = on),
    flag("literal", Some('N'), "print names unchanged (default unless on a terminal)")
        .sets(|it, _| it.escape = None),
    flag("zero", None, "end each line with NUL instead of a newline")
        .sets(|it, _| (it.end, it.escape) = (0, None)),
    JSON.sets(|it, on| it.json = on),
];

const UNBUILT: &[(&str, &str)] = &[
    ("--all -a --almost-all -A", "every key is listed"),
    ("-1 -C", "a line has one key"),
    ("--filter", "give --exclude and --include"),
    ("--reverse -r", "keys come in one order; did you mean -R?"),
    ("-S -t --sort", "keys come in one order; sort(1) sorts the lines"),
];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let out = Output::stdout();
    let is_terminal = out.is_terminal();
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed, is_terminal), |plan| list(&plan, &out))
}

fn plan(typed: &Typed, is_terminal: bool) -> Result<LsOptions, String> {
    if let Some(path) = typed.paths.iter().find(|path| !is_s3(path)) {
        return Err(format!(
            "{} is a path: hakobu ls lists buckets and objects (s3://BUCKET/PREFIX)\n\
             hint: for paths there is ls(1), or hakobu sync --list-only PATH",
            quoted(path)
        ));
    }
    let escape = is_terminal.then(Escape::of_locale);
    let mut plan = TABLE.read(typed, LsOptions { end: b'\n', escape, ..LsOptions::default() })?;
    TABLE.check_places(typed, true, true)?;
    plan.filters.note(true)?;
    plan.filter = plan.filters.of_names()?;
    let buckets = [OsString::from("s3://")];
    let places = if typed.paths.is_empty() { &buckets } else { &*typed.paths };
    plan.places = objects::all(places, objects::url, "")?;
    Ok(plan)
}

/// Lists the arguments of a plan; returns the exit code.
fn list(plan: &LsOptions, out: &Output) -> Result<u8, String> {
    let store = match S3Session::open(&plan.objects.settings()) {
        Ok(store) => store,
        Err(error) => return Ok(end_with(exit::USAGE, &error.to_string())),
    };
    let mut code = exit::OK;
    let mut rows = Rows::new(plan, out);
    for (at, (typed, url)) in plan.places.iter().enumerate() {
        if plan.places.len() > 1 && !matches!(rows.form, Form::Json | Form::Urls) {
            let gap = if at > 0 { "\n" } else { "" };
            out.write(format!("{gap}{}:\n", typed.display()).as_bytes());
        }
        let done = match url.bucket.is_empty() {
            true => buckets(&store, &mut rows).map_err(|error| error.to_string()),
            false => place(plan, &store, url, &mut rows),
        };
        rows.flush();
        if let Err(why) = done {
            tool::fail(plan.json.then_some(out), "list", typed, &why);
            code = exit::USAGE;
        }
        if out.is_broken() {
            break;
        }
    }
    if plan.summarize {
        rows.summary();
    }
    if plan.objects.stat {
        rows.flush();
        tool::print_requests(&store);
    }
    Ok(tool::close_with(out, code, exit::USAGE))
}

fn buckets(store: &Arc<S3Session>, rows: &mut Rows<'_>) -> Result<(), Error> {
    let buckets = with_session(store, async |client| list_buckets(&client).await)?;
    for bucket in buckets {
        rows.bucket(bucket.name.as_bytes(), bucket.created);
    }
    Ok(())
}

fn place(
    plan: &LsOptions,
    store: &Arc<S3Session>,
    url: &S3Url,
    rows: &mut Rows<'_>,
) -> Result<(), String> {
    let scope = Scope::of(&url.key, plan.objects.is_raw());
    let recursive = plan.recursive || scope.pattern.is_some();
    rows.begin(&url.bucket, &scope.prefix, recursive);
    let choice = Choice::new(&scope.prefix, scope.pattern.clone(), plan.filter.as_ref());
    let choice = choice.map_err(|error| error.to_string())?;
    let mut place = Place { store, url, scope, choice, recursive, rows };
    let found = match place.rows.form {
        _ if plan.objects.all_versions() => place.versions(),
        Form::Long => place.whole(),
        _ => place.fast(plan.unordered),
    }
    .map_err(|error| error.to_string())?;
    tool::note_left_out(url, &mut place.choice);
    if found == 0 && !url.key.is_empty() {
        return Err("there is no such object or prefix".into());
    }
    Ok(())
}

/// An argument that is being listed. The ways to do that return the number of objects and prefixes that it selects.
struct Place<'a, 'b> {
    store: &'a Arc<S3Session>,
    url: &'a S3Url,
    scope: Scope,
    choice: Choice,
    recursive: bool,
    rows: &'a mut Rows<'b>,
}

impl Place<'_, '_> {
    /// Lists with the parallel listing, which returns name, size, time and ETag.
    fn fast(&mut self, unordered: bool) -> Result<u64, Error> {
        let query = StoreQuery {
            prefix: self.scope.prefix.clone(),
            narrowed: self.scope.narrowed.clone(),
            recursive: self.recursive,
            unordered,
            ..StoreQuery::default()
        };
        let mut listing = list::store(self.store, &self.url.bucket, query);
        let mut found = 0;
        while let Some(page) = listing.page() {
            for item in page {
                let entry = item.map_err(list::Trouble::into_error)?;
                found += self.add(&Row {
                    name: &entry.name,
                    size: entry.meta.size,
                    mtime: entry.meta.mtime,
                    etag: &entry.etag,
                    class: "",
                    is_prefix: entry.meta.kind == Kind::Dir && !self.recursive,
                    version: None,
                });
            }
            self.rows.flush();
            if self.rows.is_broken() {
                break;
            }
        }
        Ok(found)
    }

    /// Lists page by page with all information of the server.
    fn whole(&mut self) -> Result<u64, Error> {
        let (prefix, delimiter) = self.of_pages();
        let mut pages = ObjectPages::new(ListQuery { prefix, delimiter, ..ListQuery::default() });
        let (url, cut) = (self.url, self.scope.prefix.len());
        with_session(self.store, async |client| {
            let mut found = 0;
            while let Some(page) = pages.next(&client, &url.bucket).await? {
                let objects = page.objects.iter().map(|object| Row {
                    name: &object.key[cut..],
                    size: object.size,
                    mtime: object.mtime,
                    etag: &object.etag,
                    class: &object.storage_class,
                    is_prefix: false,
                    version: None,
                });
                found += self.add_page(objects, &page.prefixes);
                if self.rows.is_broken() {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// Lists versions and delete markers, page by page.
    fn versions(&mut self) -> Result<u64, Error> {
        let (prefix, delimiter) = self.of_pages();
        let mut pages = VersionPages::new(VersionQuery { prefix, delimiter });
        let (url, cut) = (self.url, self.scope.prefix.len());
        with_session(self.store, async |client| {
            let mut found = 0;
            while let Some(page) = pages.next(&client, &url.bucket).await? {
                let versions = page.versions.iter().map(|version| Row {
                    name: &version.key[cut..],
                    size: version.size,
                    mtime: version.mtime,
                    etag: &version.etag,
                    class: &version.storage_class,
                    is_prefix: false,
                    version: Some(Version {
                        id: &version.id,
                        is_latest: version.is_latest,
                        is_delete_marker: version.is_delete_marker,
                    }),
                });
                found += self.add_page(versions, &page.prefixes);
                if self.rows.is_broken() {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// Returns prefix and delimiter of a listing by pages, whose keys and prefixes begin with the prefix.
    fn of_pages(&self) -> (Vec<u8>, Option<u8>) {
        let prefix = [&*self.scope.prefix, &*self.scope.narrowed].concat();
        (prefix, (!self.recursive).then_some(b'/'))
    }

    /// Adds the row of an object, unless it does not match or is hidden; returns the number of matches.
    fn add(&mut self, row: &Row<'_>) -> u64 {
        let matches = self.choice.matches(row.name);
        if matches && !self.choice.hides(row.name) {
            self.rows.push(row);
        }
        u64::from(matches)
    }

    /// Adds the rows of a page, with its prefixes between them, in the order of names; returns the number of matches and
    /// prefixes.
    fn add_page<'a>(
        &mut self,
        objects: impl Iterator<Item = Row<'a>>,
        prefixes: &[Vec<u8>],
    ) -> u64 {
        let (mut found, cut) = (0, self.scope.prefix.len());
        let mut prefixes = prefixes.iter().map(|prefix| &prefix[cut..]).peekable();
        for object in objects {
            while let Some(name) = prefixes.next_if(|name| *name < object.name) {
                found += self.add_prefix(name);
            }
            found += self.add(&object);
        }
        for name in prefixes {
            found += self.add_prefix(name);
        }
        self.rows.flush();
        found
    }

    /// Adds the row of a prefix, unless it is hidden; returns 1.
    fn add_prefix(&mut self, name: &[u8]) -> u64 {
        if !self.choice.hides(name) {
            self.rows.push(&Row::prefix(name));
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(line: &str) -> Result<LsOptions, String> {
        plan(&TABLE.parse_line(line)?, false)
    }

    #[test]
    fn nothing_is_all_buckets() {
        for (line, bucket) in [("", ""), ("s3://", ""), ("-lR s3://abc/p", "abc")] {
            let plan = planned(line).unwrap();
            assert_eq!(
                plan.places.iter().map(|(_, url)| &*url.bucket).collect::<Vec<_>>(),
                [bucket]
            );
        }
    }

    #[test]
    fn refusals_advise() {
        for (line, start) in [
            ("src", "'src' is a path: hakobu ls lists buckets and objects"),
            ("s3://b ./src", "'./src' is a path"),
            ("-r s3://b", "-r is not supported: keys come in one order; did you mean -R?"),
            ("-la s3://b", "-a is not supported: every key is listed"),
            ("--all s3://b", "--all is not supported"),
            ("--nosuch", "unexpected argument"),
        ] {
            let message = planned(line).unwrap_err();
            assert!(message.starts_with(start), "{line}: {message}");
        }
        assert!(planned(".").unwrap_err().contains("hakobu sync --list-only PATH"));
    }
}

//! `hakobu ls` of `s3://`: buckets, the entries of a prefix, everything below it, matches of a wildcard. Lines are
//! written as pages arrive.

mod clock;
mod rows;

use super::options::{Order, Plan, TABLE};
use crate::commands::line::told;
use crate::commands::tool;
use crate::exit;
use crate::objects;
use crate::options::Typed;
use crate::show::output::Output;
use hakobu_core::unit::Kind;
use hakobu_s3::ops::{ListQuery, ObjectPages, VersionPages, VersionQuery, list_buckets};
use hakobu_s3::with_session;
use hakobu_s3::{Error, S3Session};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{self, Choice, Scope, StoreQuery};
use rows::{Form, Row, Rows, Version};
use std::sync::Arc;

/// Parses a command line whose paths are all in S3.
///
/// # Errors
/// An invalid command line.
pub fn plan(typed: &Typed, is_terminal: bool) -> Result<Plan, String> {
    let places = objects::all(&typed.paths, objects::url, "give s3://")?;
    let mut plan = TABLE.read(typed, Plan { places, ..Plan::new(is_terminal) })?;
    // A bucket is listed in one order only.
    if plan.reverse {
        return Err("-r (--reverse) is not supported for s3://; did you mean -R?".into());
    }
    TABLE.check_places(typed, true, true)?;
    plan.filters.note(true)?;
    plan.filter = plan.filters.of_names()?;
    Ok(plan)
}

/// Lists the arguments of a plan; returns the exit code.
pub fn list(plan: &Plan, out: &Output) -> Result<u8, String> {
    let store = match S3Session::open(&plan.objects.settings()) {
        Ok(store) => store,
        Err(error) => return Ok(told(exit::USAGE, &error.to_string())),
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
    plan: &Plan,
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
        _ => place.fast(plan.order == Order::AsRead),
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

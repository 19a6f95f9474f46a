//! `hakobu ls` of `s3://`: buckets, the entries of a prefix, everything below it, matches of a wildcard. Lines are
//! written as pages arrive.

mod rows;

use super::options::{Order, Plan, TABLE};
use crate::commands::line::told;
use crate::commands::tool;
use crate::exit;
use crate::objects;
use crate::options::Typed;
use crate::show::output::Output;
use hakobu_core::unit::Kind;
use hakobu_s3::blocking::with_store;
use hakobu_s3::ops::{ListQuery, Pages, VersionPages, VersionQuery, list_buckets};
use hakobu_s3::{Error, Store};
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
    plan.filter = plan.filters.of_names()?;
    Ok(plan)
}

/// Lists the arguments of a plan; returns the exit code.
pub fn list(plan: &Plan, out: &Output) -> Result<u8, String> {
    let store = match Store::open(&plan.objects.settings()) {
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

fn buckets(store: &Arc<Store>, rows: &mut Rows<'_>) -> Result<(), Error> {
    let buckets = with_store(store, async |client| list_buckets(&client).await)?;
    for bucket in buckets {
        rows.bucket(bucket.name.as_bytes(), bucket.created);
    }
    Ok(())
}

fn place(plan: &Plan, store: &Arc<Store>, url: &S3Url, rows: &mut Rows<'_>) -> Result<(), String> {
    let scope = Scope::of(&url.key, plan.objects.is_raw());
    let recursive = plan.recursive || scope.pattern.is_some();
    rows.begin(&url.bucket, &scope.prefix, recursive);
    let choice = Choice::new(&scope.prefix, scope.pattern.clone(), plan.filter.as_ref());
    let choice = &mut choice.map_err(|error| error.to_string())?;
    let found = match rows.form {
        _ if plan.objects.all_versions() => versions(store, url, &scope, choice, recursive, rows),
        Form::Long => whole(store, url, &scope, choice, recursive, rows),
        _ => fast(plan, store, url, scope, choice, recursive, rows),
    }
    .map_err(|error| error.to_string())?;
    tool::note_left_out(url, choice);
    if found == 0 && !url.key.is_empty() {
        return Err("there is no such object or prefix".into());
    }
    Ok(())
}

/// Lists with the parallel listing, which returns name, size, time and ETag.
fn fast(
    plan: &Plan,
    store: &Arc<Store>,
    url: &S3Url,
    scope: Scope,
    choice: &mut Choice,
    recursive: bool,
    rows: &mut Rows<'_>,
) -> Result<u64, Error> {
    let query = StoreQuery {
        prefix: scope.prefix,
        narrowed: scope.narrowed,
        recursive,
        unordered: plan.order == Order::AsRead,
        ..StoreQuery::default()
    };
    let mut listing = list::store(store, &url.bucket, query);
    let mut found = 0;
    while let Some(page) = listing.page() {
        for item in page {
            let entry = item.map_err(list::Trouble::into_error)?;
            found += add(
                choice,
                rows,
                &Row {
                    name: &entry.name,
                    size: entry.meta.size,
                    mtime: entry.meta.mtime,
                    etag: &entry.etag,
                    class: "",
                    is_prefix: entry.meta.kind == Kind::Dir && !recursive,
                    version: None,
                },
            );
        }
        rows.flush();
        if rows.is_broken() {
            break;
        }
    }
    Ok(found)
}

/// Adds the row of an object, unless it does not match or is hidden; returns the number of matches.
fn add(choice: &mut Choice, rows: &mut Rows<'_>, row: &Row<'_>) -> u64 {
    let matches = choice.matches(row.name);
    if matches && !choice.hides(row.name) {
        rows.push(row);
    }
    u64::from(matches)
}

/// Adds the rows of a page, with its prefixes between them, in the order of names; returns the number of matches and
/// prefixes.
fn add_page<'a>(
    objects: impl Iterator<Item = Row<'a>>,
    prefixes: impl Iterator<Item = &'a [u8]>,
    choice: &mut Choice,
    rows: &mut Rows<'_>,
) -> u64 {
    let mut found = 0;
    let mut prefixes = prefixes.peekable();
    let push_prefix = |name, choice: &mut Choice, rows: &mut Rows<'_>| {
        if !choice.hides(name) {
            rows.push(&Row::prefix(name));
        }
        1
    };
    for object in objects {
        while let Some(name) = prefixes.next_if(|name| *name < object.name) {
            found += push_prefix(name, choice, rows);
        }
        found += add(choice, rows, &object);
    }
    for name in prefixes {
        found += push_prefix(name, choice, rows);
    }
    rows.flush();
    found
}

/// Lists page by page with all information of the server.
fn whole(
    store: &Arc<Store>,
    url: &S3Url,
    scope: &Scope,
    choice: &mut Choice,
    recursive: bool,
    rows: &mut Rows<'_>,
) -> Result<u64, Error> {
    let mut pages = Pages::new(ListQuery {
        prefix: [&*scope.prefix, &*scope.narrowed].concat(),
        delimiter: (!recursive).then_some(b'/'),
        ..ListQuery::default()
    });
    // All keys and prefixes of a page begin with the prefix.
    let cut = scope.prefix.len();
    with_store(store, async |client| {
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
            let prefixes = page.prefixes.iter().map(|prefix| &prefix[cut..]);
            found += add_page(objects, prefixes, choice, rows);
            if rows.is_broken() {
                break;
            }
        }
        Ok(found)
    })
}

/// Lists versions and delete markers, page by page.
fn versions(
    store: &Arc<Store>,
    url: &S3Url,
    scope: &Scope,
    choice: &mut Choice,
    recursive: bool,
    rows: &mut Rows<'_>,
) -> Result<u64, Error> {
    let mut pages = VersionPages::new(VersionQuery {
        prefix: [&*scope.prefix, &*scope.narrowed].concat(),
        delimiter: (!recursive).then_some(b'/'),
    });
    let cut = scope.prefix.len();
    with_store(store, async |client| {
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
            let prefixes = page.prefixes.iter().map(|prefix| &prefix[cut..]);
            found += add_page(versions, prefixes, choice, rows);
            if rows.is_broken() {
                break;
            }
        }
        Ok(found)
    })
}

//! `hakobu ls` of `s3://`: buckets, the entries of a prefix, everything below it, matches of a wildcard. Lines are
//! written as pages arrive.

mod plan;
mod rows;
mod versions;

use self::plan::Form;
pub use self::plan::Plan;
use super::options::TABLE;
use super::plan::{Names, Order};
use crate::commands::tool;
use crate::exit;
use crate::objects::{self};
use crate::options::Typed;
use crate::show::output::{self, Output};
use hakobu_core::error::Cause;
use hakobu_core::unit::Kind;
use hakobu_s3::blocking::with_store;
use hakobu_s3::ops::{ListQuery, Pages, list_buckets};
use hakobu_s3::{Error, Store};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{self, Choice, Scope, StoreQuery};
use rows::{Row, Rows};
use std::sync::Arc;

/// Parses a command line whose paths are all in S3.
///
/// # Errors
/// An invalid command line.
pub fn plan(typed: &Typed, is_terminal: bool) -> Result<Plan, String> {
    let places = typed.paths.iter().map(|path| Ok((path.clone(), objects::url(path)?)));
    let places = places.collect::<Result<_, String>>()?;
    let read = TABLE.read(typed, super::plan::Plan::new(is_terminal))?;
    // A bucket is listed in one order only.
    if read.reverse {
        return Err("-r (--reverse) is not supported for s3://; did you mean -R?".into());
    }
    TABLE.check_places(typed, true, true)?;
    let form = match (read.json, read.long) {
        (true, _) => Form::Json,
        (false, _) if read.full_path => Form::Urls,
        (false, true) => Form::Long,
        (false, false) => Form::Short,
    };
    Ok(Plan {
        form,
        recursive: read.recursive,
        unordered: read.order == Order::AsRead,
        human: read.human,
        summarize: read.summarize,
        end: read.end,
        escape: match read.names {
            Names::Literal => None,
            Names::Quoted(escape) | Names::Marked(escape) => Some(escape),
        },
        objects: read.objects,
        filter: read.filters.of_names()?,
        places,
    })
}

/// Lists the arguments of a plan; returns the exit code.
pub fn list(plan: &Plan, out: &Output) -> u8 {
    let store = match Store::open(&plan.objects.settings()) {
        Ok(store) => store,
        Err(error) => {
            output::message(&error.to_string());
            return exit::USAGE;
        }
    };
    let mut code = exit::OK;
    let mut rows = Rows::new(plan, out);
    for (at, (typed, url)) in plan.places.iter().enumerate() {
        if plan.places.len() > 1 && !matches!(plan.form, Form::Json | Form::Urls) {
            let gap = if at > 0 { "\n" } else { "" };
            out.write(format!("{gap}{}:\n", typed.display()).as_bytes());
        }
        let done = match url.bucket.is_empty() {
            true => buckets(&store, &mut rows).map_err(|error| error.to_string()),
            false => place(plan, &store, url, &mut rows),
        };
        rows.flush();
        if let Err(why) = done {
            let json = (plan.form == Form::Json).then_some(out);
            tool::fail(json, "list", typed, &why);
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
    if let Some(error) = out.finish() {
        output::message(&format!("cannot write standard output: {}", Cause::System(error)));
        code = exit::USAGE;
    }
    code
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
    let found = match plan.form {
        _ if plan.objects.all_versions() => {
            versions::list(store, url, &scope, choice, recursive, rows)
        }
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
        unordered: plan.unordered,
        ..StoreQuery::default()
    };
    let mut listing = list::store(store, &url.bucket, query);
    let mut found = 0;
    while let Some(page) = listing.page() {
        for item in page {
            let entry = match item {
                Ok(entry) => entry,
                Err(trouble) => return Err(trouble.into_error()),
            };
            let matches = choice.matches(&entry.name);
            found += u64::from(matches);
            if !matches || choice.hides(&entry.name) {
                continue;
            }
            rows.push(&Row {
                name: &entry.name,
                size: entry.meta.size,
                mtime: entry.meta.mtime,
                etag: &entry.etag,
                class: "",
                is_prefix: entry.meta.kind == Kind::Dir && !recursive,
                version: None,
            });
        }
        rows.flush();
        if rows.is_broken() {
            break;
        }
    }
    Ok(found)
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
            let mut prefixes = page.prefixes.iter().peekable();
            for object in &page.objects {
                while let Some(prefix) = prefixes.next_if(|prefix| **prefix < object.key) {
                    found += 1;
                    if !choice.hides(&prefix[cut..]) {
                        rows.push(&Row::prefix(&prefix[cut..]));
                    }
                }
                let matches = choice.matches(&object.key[cut..]);
                found += u64::from(matches);
                if !matches || choice.hides(&object.key[cut..]) {
                    continue;
                }
                rows.push(&Row {
                    name: &object.key[cut..],
                    size: object.size,
                    mtime: object.mtime,
                    etag: &object.etag,
                    class: &object.storage_class,
                    is_prefix: false,
                    version: None,
                });
            }
            for prefix in prefixes {
                found += 1;
                if !choice.hides(&prefix[cut..]) {
                    rows.push(&Row::prefix(&prefix[cut..]));
                }
            }
            rows.flush();
            if rows.is_broken() {
                break;
            }
        }
        Ok(found)
    })
}

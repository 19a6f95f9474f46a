//! `hakobu ls` of `s3://`: buckets, what lies in a prefix, everything below it, what a wildcard
//! matches. Lines go out as pages come in.

mod rows;

use crate::commands::tool;
use crate::exit;
use crate::objects::{self, Asked};
use crate::options::Typed;
use crate::show::escape::Escape;
use crate::show::output::{self, Output};
use hakobu_transfer::error::{Cause, quoted};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{self, Pattern, StoreQuery, Trouble};
use hakobu_transfer::s3::blocking::with_store;
use hakobu_transfer::s3::ops::{ListQuery, list_buckets, list_objects};
use hakobu_transfer::s3::{Error, Store};
use hakobu_transfer::unit::Kind;
use rows::{Row, Rows};
use std::ffi::OsString;
use std::sync::Arc;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Time, size, name.
    Short,
    /// Storage class and ETag as well.
    Long,
    /// JSON lines.
    Json,
}

/// What was asked for.
#[derive(Debug)]
pub struct Plan {
    form: Form,
    recursive: bool,
    unordered: bool,
    human: bool,
    summarize: bool,
    end: u8,
    escape: Option<Escape>,
    asked: Asked,
    places: Vec<(OsString, S3Url)>,
}

/// Reads a command line whose paths are all in S3.
///
/// # Errors
/// What is wrong with it.
pub fn plan(typed: &Typed, is_terminal: bool) -> Result<Plan, String> {
    let places = typed.paths.iter().map(|path| Ok((path.clone(), objects::url(path)?)));
    let mut plan = Plan {
        form: Form::Short,
        recursive: false,
        unordered: false,
        human: false,
        summarize: false,
        end: b'\n',
        escape: is_terminal.then(Escape::of_locale),
        asked: Asked::default(),
        places: places.collect::<Result<_, String>>()?,
    };
    let mut json = false;
    for given in &typed.options {
        if plan.asked.take(given)? {
            continue;
        }
        match given.name {
            "l" => plan.form = Form::Long,
            "recursive" => plan.recursive = true,
            // A bucket has one order.
            "reverse" => {
                return Err("-r (--reverse) is not built for s3://; did you mean -R?".into());
            }
            "U" => plan.unordered = true,
            "human-readable" => plan.human = true,
            "summarize" => plan.summarize = true,
            "zero" => (plan.end, plan.escape) = (0, None),
            "literal" => plan.escape = None,
            "json" => json = true,
            // Names are not hidden, and there is one a line.
            "all" | "almost-all" | "1" => {}
            name => {
                let dashes = if name.len() == 1 { "-" } else { "--" };
                return Err(format!("{dashes}{name} is not built for s3://"));
            }
        }
    }
    if json {
        plan.form = Form::Json;
    }
    Ok(plan)
}

/// Lists what the plan names; the exit code.
pub fn list(plan: &Plan, out: &Output) -> u8 {
    let store = match Store::open(&plan.asked.settings()) {
        Ok(store) => store,
        Err(error) => {
            output::message(&error.to_string());
            return exit::USAGE;
        }
    };
    let mut code = exit::OK;
    let mut rows = Rows::new(plan, out);
    for (at, (typed, url)) in plan.places.iter().enumerate() {
        if plan.places.len() > 1 && plan.form != Form::Json {
            let gap = if at > 0 { "\n" } else { "" };
            out.write(format!("{gap}{}:\n", typed.display()).as_bytes());
        }
        let done = match url.bucket.is_empty() {
            true => buckets(&store, &mut rows).map_err(|error| error.to_string()),
            false => place(plan, &store, url, &mut rows),
        };
        rows.flush();
        if let Err(why) = done {
            output::message(&format!("cannot list {}: {why}", quoted(typed)));
            code = exit::USAGE;
        }
        if out.is_broken() {
            break;
        }
    }
    if plan.summarize {
        rows.summary();
    }
    if plan.asked.stat {
        rows.flush();
        tool::tell_requests(&store);
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

/// Where a listing begins: the prefix up to its last slash, and what follows it.
struct Begin {
    prefix: Vec<u8>,
    narrowed: Vec<u8>,
    pattern: Option<Pattern>,
}

impl Begin {
    fn of(key: &[u8], raw: bool) -> Begin {
        match Pattern::parse(key).filter(|_| !raw) {
            Some(pattern) => {
                let prefix = pattern.root().to_vec();
                let narrowed = pattern.literal()[prefix.len()..].to_vec();
                Begin { prefix, narrowed, pattern: Some(pattern) }
            }
            None => {
                let at = key.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
                let (prefix, narrowed) = key.split_at(at);
                Begin { prefix: prefix.to_vec(), narrowed: narrowed.to_vec(), pattern: None }
            }
        }
    }
}

fn place(plan: &Plan, store: &Arc<Store>, url: &S3Url, rows: &mut Rows<'_>) -> Result<(), String> {
    let begin = Begin::of(&url.key, plan.asked.is_raw());
    let recursive = plan.recursive || begin.pattern.is_some();
    rows.begin(&url.bucket, &begin.prefix, recursive);
    let found = match plan.form {
        Form::Long => whole(store, url, &begin, recursive, rows),
        _ => fast(plan, store, url, begin, recursive, rows),
    }
    .map_err(|error| error.to_string())?;
    if found == 0 && !url.key.is_empty() {
        return Err("there is no such object or prefix".into());
    }
    Ok(())
}

/// Lists by the parallel listing, which knows name, size, time and ETag.
fn fast(
    plan: &Plan,
    store: &Arc<Store>,
    url: &S3Url,
    begin: Begin,
    recursive: bool,
    rows: &mut Rows<'_>,
) -> Result<u64, Error> {
    let Begin { prefix, narrowed, pattern } = begin;
    let query = StoreQuery {
        prefix: prefix.clone(),
        narrowed,
        recursive,
        unordered: plan.unordered,
        ..StoreQuery::default()
    };
    let mut listing = list::store(store, &url.bucket, query);
    let (mut found, mut key) = (0, prefix.clone());
    while let Some(page) = listing.page() {
        for item in page {
            let entry = match item {
                Ok(entry) => entry,
                Err(Trouble::Failed(error)) => return Err(error),
                Err(Trouble::Problem { .. }) => continue,
            };
            if let Some(pattern) = &pattern {
                key.truncate(prefix.len());
                key.extend_from_slice(&entry.name);
                if !pattern.matches(&key) {
                    continue;
                }
            }
            found += 1;
            rows.push(&Row {
                name: &entry.name,
                size: entry.meta.size,
                mtime: entry.meta.mtime,
                etag: &entry.etag,
                class: "",
                is_prefix: entry.meta.kind == Kind::Dir && !recursive,
            });
        }
        rows.flush();
        if rows.is_broken() {
            break;
        }
    }
    Ok(found)
}

/// Lists page by page with everything that the server says.
fn whole(
    store: &Arc<Store>,
    url: &S3Url,
    begin: &Begin,
    recursive: bool,
    rows: &mut Rows<'_>,
) -> Result<u64, Error> {
    let mut query = ListQuery {
        prefix: [&*begin.prefix, &*begin.narrowed].concat(),
        delimiter: (!recursive).then_some(b'/'),
        ..ListQuery::default()
    };
    with_store(store, async |client| {
        let mut found = 0;
        loop {
            let page = list_objects(&client, &url.bucket, &query).await?;
            let mut prefixes = page.prefixes.iter().peekable();
            let name = |key: &'_ [u8]| begin.prefix.len().min(key.len());
            for object in &page.objects {
                while let Some(prefix) = prefixes.next_if(|prefix| **prefix < object.key) {
                    found += 1;
                    rows.push(&Row::prefix(&prefix[name(prefix)..]));
                }
                if begin.pattern.as_ref().is_some_and(|pattern| !pattern.matches(&object.key)) {
                    continue;
                }
                found += 1;
                rows.push(&Row {
                    name: &object.key[name(&object.key)..],
                    size: object.size,
                    mtime: object.mtime,
                    etag: &object.etag.to_string(),
                    class: &object.storage_class,
                    is_prefix: false,
                });
            }
            for prefix in prefixes {
                found += 1;
                rows.push(&Row::prefix(&prefix[name(prefix)..]));
            }
            rows.flush();
            query.continuation = page.next;
            if query.continuation.is_none() || rows.is_broken() {
                return Ok(found);
            }
        }
    })
}

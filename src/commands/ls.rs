//! `hakobu ls`: buckets, the entries of a prefix, everything below it, matches of a wildcard. Lines are written as
//! pages arrive.

use super::remote;
use super::tool::{self, carry_out, end_with};
use crate::cli::{JSON, Opt, Table, Typed, flag, parts};
use crate::filters::{self, Filters};
use crate::objects::{self, ObjectArgs, is_s3};
use crate::show::escape::Escape;
use crate::show::output::Output;
use crate::{exit, number};
use hakobu_core::error::quoted;
use hakobu_core::unit::{Kind, Time};
use hakobu_s3::ops::{ListQuery, ObjectPages, VersionPages, VersionQuery, list_buckets};
use hakobu_s3::{Error, S3Session, with_session};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{self, Choice, Scope, StoreQuery};
use hakobu_transfer::policy::filter::Filter;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// The command line of `ls`.
pub static TABLE: Table<LsOptions> = Table {
    command: "ls",
    about: "List buckets and objects",
    description: "Without an argument it lists the buckets. A prefix is listed up to the next \
            slash, in the order of keys; the argument may contain '*' and '?'.",
    usage: "hakobu ls [OPTIONS] [s3://BUCKET[/PREFIX]]...",
    examples: &[
        ("hakobu ls", "List buckets."),
        ("hakobu ls -h s3://data/photos/", "List a prefix, with sizes such as 1.5M."),
        ("hakobu ls -R --summarize s3://data/", "List everything in a bucket."),
    ],
    common: &[],
    after: "Exit codes: 0 done, 2 an argument could not be listed, or usage.",
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
    ("-H --humanize", "-h prints sizes such as 1.5M"),
    ("-s", "s5cmd's -s is -l here, which also prints the ETag"),
];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let out = Output::stdout();
    let is_terminal = out.is_terminal();
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed, is_terminal), |plan| list(&plan, &out))
}

fn plan(typed: &Typed, is_terminal: bool) -> Result<LsOptions, String> {
    if let Some(message) = remote::elsewhere(&typed.paths, "ls") {
        return Err(message);
    }
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
    let mut rows = LsRows::new(plan, out);
    for (at, (typed, url)) in plan.places.iter().enumerate() {
        if plan.places.len() > 1 && !matches!(rows.form, LsForm::Json | LsForm::Urls) {
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

fn buckets(store: &Arc<S3Session>, rows: &mut LsRows<'_>) -> Result<(), Error> {
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
    rows: &mut LsRows<'_>,
) -> Result<(), String> {
    let scope = Scope::of(&url.key, plan.objects.is_raw());
    let recursive = plan.recursive || scope.pattern.is_some();
    rows.begin(&url.bucket, &scope.prefix, recursive);
    let choice = Choice::new(&scope.prefix, scope.pattern.clone(), plan.filter.as_ref());
    let choice = choice.map_err(|error| error.to_string())?;
    let mut place = LsPlace { store, url, scope, choice, recursive, rows };
    let found = match place.rows.form {
        _ if plan.objects.all_versions() => place.versions(),
        LsForm::Long => place.whole(),
        _ => place.fast(plan.unordered),
    }
    .map_err(|error| error.to_string())?;
    tool::note_left_out(url, &mut place.choice);
    if found == 0 && !url.key.is_empty() {
        return Err("no such object or prefix".into());
    }
    Ok(())
}

/// An argument that is being listed. The ways to do that return the number of objects and prefixes that it selects.
struct LsPlace<'a, 'b> {
    store: &'a Arc<S3Session>,
    url: &'a S3Url,
    scope: Scope,
    choice: Choice,
    recursive: bool,
    rows: &'a mut LsRows<'b>,
}

impl LsPlace<'_, '_> {
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
                found += self.add(&LsRow {
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
                let objects = page.objects.iter().map(|object| LsRow {
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
                let versions = page.versions.iter().map(|version| LsRow {
                    name: &version.key[cut..],
                    size: version.size,
                    mtime: version.mtime,
                    etag: &version.etag,
                    class: &version.storage_class,
                    is_prefix: false,
                    version: Some(LsVersion {
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
    fn add(&mut self, row: &LsRow<'_>) -> u64 {
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
        objects: impl Iterator<Item = LsRow<'a>>,
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
            self.rows.push(&LsRow::prefix(name));
        }
        1
    }
}

/// Format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LsForm {
    /// Time, size, name.
    Short,
    /// Adds storage class and ETag.
    Long,
    /// Only whole URLs.
    Urls,
    /// JSON lines.
    Json,
}

/// One object or prefix.
pub struct LsRow<'a> {
    /// Its name below the prefix of the listing.
    pub name: &'a [u8],
    /// Bytes.
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// ETag without quotes.
    pub etag: &'a str,
    /// Storage class; empty for STANDARD.
    pub class: &'a str,
    /// It represents everything below it.
    pub is_prefix: bool,
    /// The version, if all of them are listed.
    pub version: Option<LsVersion<'a>>,
}

/// A version of an object.
#[derive(Clone, Copy)]
pub struct LsVersion<'a> {
    /// Its ID.
    pub id: &'a str,
    /// It is the current one.
    pub is_latest: bool,
    /// It has no content.
    pub is_delete_marker: bool,
}

impl<'a> LsRow<'a> {
    /// Makes the row of a prefix.
    pub fn prefix(name: &'a [u8]) -> LsRow<'a> {
        let (mtime, version) = (Time::default(), None);
        LsRow { name, size: 0, mtime, etag: "", class: "", is_prefix: true, version }
    }
}

impl LsRow<'_> {
    fn is_delete_marker(&self) -> bool {
        self.version.is_some_and(|version| version.is_delete_marker)
    }
}

/// Width of names before version IDs, as in s5cmd.
const NAME_WIDTH: usize = 50;

/// The lines of objects, formatted by hand into one buffer: a million of them cost little more than copying.
pub struct LsRows<'a> {
    /// Their format.
    pub form: LsForm,
    human: bool,
    end: u8,
    escape: Option<Escape>,
    out: &'a Output,
    buffer: Vec<u8>,
    clock: Clock,
    bucket: String,
    /// The prefix of names in the listing, and how much of it is shown.
    prefix: Vec<u8>,
    shown: usize,
    objects: u64,
    bytes: u64,
}

impl<'a> LsRows<'a> {
    /// Makes empty output.
    pub fn new(plan: &LsOptions, out: &'a Output) -> LsRows<'a> {
        LsRows {
            form: match (plan.json, plan.full_path, plan.long) {
                (true, _, _) => LsForm::Json,
                (false, true, _) => LsForm::Urls,
                (false, false, true) => LsForm::Long,
                (false, false, false) => LsForm::Short,
            },
            human: plan.human,
            end: plan.end,
            escape: plan.escape,
            out,
            buffer: Vec::with_capacity(256 * 1024),
            clock: Clock::new(TimeZone::system()),
            bucket: String::new(),
            prefix: Vec::new(),
            shown: 0,
            objects: 0,
            bytes: 0,
        }
    }

    /// Begins a listing; with `whole` keys are shown completely, else relative to the prefix.
    pub fn begin(&mut self, bucket: &str, prefix: &[u8], whole: bool) {
        bucket.clone_into(&mut self.bucket);
        prefix.clone_into(&mut self.prefix);
        self.shown = if whole { 0 } else { prefix.len() };
    }

    /// Returns whether the reader is gone.
    pub fn is_broken(&self) -> bool {
        self.out.is_broken()
    }

    /// Writes the buffer.
    pub fn flush(&mut self) {
        self.out.write(&self.buffer);
        self.buffer.clear();
    }

    /// Adds the line of a bucket.
    pub fn bucket(&mut self, name: &[u8], created: Option<Time>) {
        if self.form == LsForm::Json {
            self.buffer.extend_from_slice(b"{\"event\":\"bucket\"");
            self.json_name("name", name);
            if let Some(created) = created {
                self.buffer.extend_from_slice(b",\"created_s\":");
                push_number(created.s.unsigned_abs(), &mut self.buffer);
            }
            self.buffer.extend_from_slice(b"}\n");
            return;
        }
        if self.form == LsForm::Urls {
            self.name(b"s3://", name);
            return self.buffer.push(self.end);
        }
        match created {
            Some(created) => self.clock.push(created.s, &mut self.buffer),
            None => push_left(b"-", DATE_WIDTH, &mut self.buffer),
        }
        self.buffer.push(b' ');
        self.name(b"", name);
        self.buffer.push(self.end);
    }

    /// Adds the line of an object or a prefix.
    pub fn push(&mut self, row: &LsRow<'_>) {
        if !row.is_prefix {
            self.objects += 1;
            self.bytes += row.size;
        }
        if self.form == LsForm::Json {
            return self.json(row);
        }
        if self.form == LsForm::Urls {
            let whole = [b"s3://", self.bucket.as_bytes(), b"/", &self.prefix].concat();
            self.name(&whole, row.name);
            return self.buffer.push(self.end);
        }
        let long = self.form == LsForm::Long;
        if row.is_prefix {
            let width = if long { 27 + 1 + 19 + 1 + 34 } else { 27 };
            self.buffer.extend(std::iter::repeat_n(b' ', width));
            self.buffer.extend_from_slice(b"PRE ");
        } else {
            self.clock.push(row.mtime.s, &mut self.buffer);
            self.buffer.push(b' ');
            match self.human {
                _ if row.is_delete_marker() => push_right(b"DELETED", 10, &mut self.buffer),
                true => push_right(number::ceiled(row.size).as_bytes(), 10, &mut self.buffer),
                false => push_number_right(row.size, 10, &mut self.buffer),
            }
            self.buffer.push(b' ');
            if long {
                let class = match row.class {
                    "" if row.is_delete_marker() => "",
                    "" => "STANDARD",
                    class => class,
                };
                push_left(class.as_bytes(), 19, &mut self.buffer);
                self.buffer.push(b' ');
                push_left(row.etag.as_bytes(), 34, &mut self.buffer);
                self.buffer.push(b' ');
            }
        }
        let prefix = std::mem::take(&mut self.prefix);
        let from = self.buffer.len();
        self.name(&prefix[self.shown..], row.name);
        self.prefix = prefix;
        if let Some(version) = row.version {
            let width = NAME_WIDTH.saturating_sub(self.buffer.len() - from);
            self.buffer.extend(std::iter::repeat_n(b' ', width + 1));
            self.name(b"", version.id.as_bytes());
        }
        self.buffer.push(self.end);
    }

    fn name(&mut self, before: &[u8], name: &[u8]) {
        match self.escape {
            _ if before.is_empty() && name.is_empty() => self.buffer.extend_from_slice(b"./"),
            None => {
                self.buffer.extend_from_slice(before);
                self.buffer.extend_from_slice(name);
            }
            Some(escape) => escape.push(&[before, name].concat(), &mut self.buffer),
        }
    }

    fn json(&mut self, row: &LsRow<'_>) {
        let event: &[u8] = match row.is_prefix {
            true => b"prefix",
            false if row.is_delete_marker() => b"delete_marker",
            false => b"object",
        };
        self.buffer.extend_from_slice(b"{\"event\":\"");
        self.buffer.extend_from_slice(event);
        self.buffer.extend_from_slice(b"\",\"bucket\":\"");
        self.buffer.extend_from_slice(self.bucket.as_bytes());
        self.buffer.push(b'"');
        let key = [&*self.prefix, row.name].concat();
        self.json_name("key", &key);
        if !row.is_prefix {
            self.buffer.extend_from_slice(b",\"bytes\":");
            push_number(row.size, &mut self.buffer);
            self.buffer.extend_from_slice(b",\"mtime_s\":");
            push_number(row.mtime.s.unsigned_abs(), &mut self.buffer);
            self.json_name("etag", row.etag.as_bytes());
            if !row.class.is_empty() {
                self.json_name("storage_class", row.class.as_bytes());
            }
            if let Some(version) = row.version {
                self.json_name("version_id", version.id.as_bytes());
                let latest = format!(",\"latest\":{}", version.is_latest);
                self.buffer.extend_from_slice(latest.as_bytes());
            }
        }
        self.buffer.extend_from_slice(b"}\n");
    }

    /// Adds a field with a name as text; for a name that is not UTF-8 its bytes follow in hex.
    fn json_name(&mut self, field: &str, name: &[u8]) {
        let out = &mut self.buffer;
        for part in [",\"", field, "\":"] {
            out.extend_from_slice(part.as_bytes());
        }
        let plain = |byte: &u8| (b' '..=b'~').contains(byte) && !matches!(byte, b'"' | b'\\');
        if name.iter().all(plain) {
            out.push(b'"');
            out.extend_from_slice(name);
            out.push(b'"');
            return;
        }
        // Writing text into a vector cannot fail.
        let _ = serde_json::to_writer(&mut *out, &String::from_utf8_lossy(name));
        if std::str::from_utf8(name).is_err() {
            let hex = hakobu_core::percent::hex(name);
            out.extend_from_slice(format!(",\"{field}_bytes\":\"{hex}\"").as_bytes());
        }
    }

    /// Adds count and size of everything printed.
    pub fn summary(&mut self) {
        let (objects, bytes) = (self.objects, self.bytes);
        let text = match (self.form, self.human) {
            (LsForm::Json, _) => {
                format!("{{\"event\":\"total\",\"objects\":{objects},\"bytes\":{bytes}}}\n")
            }
            (_, true) => {
                format!("\nTotal Objects: {objects}\n   Total Size: {}\n", number::ceiled(bytes))
            }
            (_, false) => format!("\nTotal Objects: {objects}\n   Total Size: {bytes}\n"),
        };
        self.buffer.extend_from_slice(text.as_bytes());
        self.flush();
    }
}

/// Writes the digits of a number at the end of a buffer of maximum length; returns their start.
fn digits(mut n: u64, buffer: &mut [u8; 20]) -> usize {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return at;
        }
    }
}

fn push_number(n: u64, out: &mut Vec<u8>) {
    push_number_right(n, 0, out);
}

fn push_number_right(n: u64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = [0; 20];
    let at = digits(n, &mut buffer);
    push_right(&buffer[at..], width, out);
}

fn push_right(text: &[u8], width: usize, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(text.len())));
    out.extend_from_slice(text);
}

fn push_left(text: &[u8], width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(text.len())));
}

/// Formats `2030-01-31 12:00:00` in the local zone; caches the date and the zone's offset.
struct Clock {
    zone: TimeZone,
    /// The quarter-hour since 1970 that `offset_s` is valid for: zones change at these boundaries.
    quarter: i64,
    offset_s: i64,
    day: i64,
    date: [u8; 10],
}

/// Characters of a time.
const DATE_WIDTH: usize = 19;
const QUARTER_S: i64 = 900;
const DAY_S: i64 = 86_400;

impl Clock {
    fn new(zone: TimeZone) -> Clock {
        Clock { zone, quarter: i64::MIN, offset_s: 0, day: i64::MIN, date: *b"0000-00-00" }
    }

    /// Appends a time in seconds since 1970.
    fn push(&mut self, time_s: i64, out: &mut Vec<u8>) {
        let quarter = time_s.div_euclid(QUARTER_S);
        if quarter != self.quarter {
            let offset = Timestamp::from_second(time_s).map(|time| self.zone.to_offset(time));
            self.offset_s = offset.map_or(0, |offset| i64::from(offset.seconds()));
            self.quarter = quarter;
        }
        let local_s = time_s.saturating_add(self.offset_s);
        let (day, rest) = (local_s.div_euclid(DAY_S), local_s.rem_euclid(DAY_S));
        if day != self.day {
            let date = Timestamp::from_second(day.saturating_mul(DAY_S))
                .map(|time| TimeZone::UTC.to_datetime(time).date().to_string());
            let text = date.unwrap_or_default();
            self.date = *text.as_bytes().first_chunk().unwrap_or(b"0000-00-00");
            self.day = day;
        }
        out.extend_from_slice(&self.date);
        let two = |n: i64| [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        for (sign, n) in [(b' ', rest / 3600), (b':', rest / 60 % 60), (b':', rest % 60)] {
            out.push(sign);
            out.extend_from_slice(&two(n));
        }
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

    #[test]
    fn numbers() {
        for n in [0, 9, 10, 1234, u64::MAX] {
            let mut out = Vec::new();
            push_number(n, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), n.to_string());
        }
        let mut out = Vec::new();
        push_number_right(42, 5, &mut out);
        push_left(b"ab", 4, &mut out);
        assert_eq!(out, b"   42ab  ");
    }

    #[test]
    fn lines() {
        let row = LsRow {
            name: b"a \xff\"",
            size: 1500,
            mtime: Time { s: 0, ns: 0 },
            etag: "e",
            class: "",
            is_prefix: false,
            version: None,
        };
        let out = Output::stdout();
        let lines_of = |row: &LsRow<'_>, form, human, whole| {
            let mut rows = LsRows {
                form,
                human,
                end: b'\n',
                escape: None,
                out: &out,
                buffer: Vec::new(),
                clock: Clock::new(TimeZone::UTC),
                bucket: String::new(),
                prefix: Vec::new(),
                shown: 0,
                objects: 0,
                bytes: 0,
            };
            rows.begin("bucket", b"p/", whole);
            rows.push(row);
            rows.push(&LsRow::prefix(b"q/"));
            assert_eq!((rows.objects, rows.bytes), (1, 1500));
            rows.buffer.escape_ascii().to_string()
        };
        let lines = |form, human, whole| lines_of(&row, form, human, whole);
        assert_eq!(
            lines(LsForm::Short, false, false),
            "1970-01-01 00:00:00       1500 a \\xff\\\"\\n                           PRE q/\\n"
        );
        assert!(
            lines(LsForm::Short, true, true).starts_with("1970-01-01 00:00:00       1.5K p/a ")
        );
        assert!(lines(LsForm::Long, false, false).contains(" 1500 STANDARD            e   "));
        let json = lines(LsForm::Json, false, false);
        assert!(
            json.contains("\\\"key_bytes\\\":\\\"702f6120ff22\\\",\\\"bytes\\\":1500"),
            "{json}"
        );
        assert!(json.ends_with("{\\\"event\\\":\\\"prefix\\\",\\\"bucket\\\":\\\"bucket\\\",\\\"key\\\":\\\"p/q/\\\"}\\n"));

        let version = LsVersion { id: "v", is_latest: false, is_delete_marker: false };
        let old = LsRow { name: b"k", version: Some(version), ..row };
        let text = lines_of(&old, LsForm::Short, false, false);
        assert!(text.contains(&format!(" 1500 k{} v\\n", " ".repeat(49))), "{text}");
        let json = lines_of(&old, LsForm::Json, false, false);
        assert!(json.contains("\\\"version_id\\\":\\\"v\\\",\\\"latest\\\":false}"), "{json}");
        let marker = LsVersion { is_delete_marker: true, ..version };
        let marker = LsRow { version: Some(marker), ..old };
        assert!(lines_of(&marker, LsForm::Long, true, false).contains("   DELETED "));
        let json = lines_of(&marker, LsForm::Json, false, false);
        assert!(json.starts_with("{\\\"event\\\":\\\"delete_marker\\\""), "{json}");
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let mut clock = Clock::new(zone);
        // In any order, and around the change to summer time (2026-03-29 01:00 UTC).
        for (s, text) in [
            (1_774_745_999, "2026-03-29 01:59:59"),
            (1_774_746_000, "2026-03-29 03:00:00"),
            (0, "1970-01-01 01:00:00"),
            (-3601, "1969-12-31 23:59:59"),
            (1_774_745_999, "2026-03-29 01:59:59"),
        ] {
            let mut out = Vec::new();
            clock.push(s, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }
}

//! `hakobu cat`: objects to standard output.

use super::tool;
use super::tool::carry_out;
use crate::cli::{Noted, Opt, Refused, Table, Typed, flag, parts, put, value};
use crate::exit;
use crate::filters::{self, Filters};
use crate::limits::{self, LimitArgs};
use crate::objects::{self, ObjectArgs};
use crate::show::progress::{Progress, ProgressForm};
use hakobu_core::error::Cause;
use hakobu_core::language::Language;
use hakobu_core::limit::Limiter;
use hakobu_core::meter::Meter;
use hakobu_core::unit;
use hakobu_s3::ops::Range;
use hakobu_s3::{Error, ErrorKind, S3Session};
use hakobu_sys::{file, stdio};
use hakobu_transfer::location::S3Url;
use hakobu_transfer::object::list::{self, Choice, Listing, Pattern, Scope, StoreQuery};
use hakobu_transfer::object::{StreamError, StreamParts, download_stream};
use hakobu_transfer::policy::filter::Filter;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::Arc;

/// The command line of `cat`.
pub static TABLE: Table<CatOptions> = Table {
    command: "cat",
    about: "Write objects to standard output",
    description: "Large objects are fetched in parts ahead of the output, and every part is \
            checked. With a prefix or a wildcard, all objects that match are written, by \
            name.",
    usage: "hakobu cat [OPTIONS] s3://BUCKET/KEY...\n       hakobu cat [OPTIONS] s3://BUCKET/[PREFIX/]",
    examples: &[
        ("hakobu cat s3://data/notes.txt", "Write an object to standard output."),
        ("hakobu cat --range 0-99 s3://data/notes.txt", "Write its first 100 bytes."),
        (
            "hakobu cat 's3://data/photos/*.jpg' > all.bin",
            "Write all objects that match, one after the other.",
        ),
    ],
    common: &[],
    after: tool::EXIT,
    options: &[
        &OPTIONS,
        &objects::COMMON,
        &JSON,
        &objects::RAW,
        &objects::VERSION,
        &objects::SSE_C,
        &filters::NAMED,
        &limits::BWLIMIT,
        &limits::PRIORITY,
    ],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

#[derive(Default)]
pub struct CatOptions {
    objects: ObjectArgs,
    limits: LimitArgs,
    range: Option<Range>,
    parts: StreamParts,
    filters: Filters,
    filter: Option<Arc<Filter>>,
    places: Vec<(OsString, S3Url)>,
}

parts!(CatOptions { objects: ObjectArgs, limits: LimitArgs, filters: Filters });

const JSON: Noted = Noted(&[
    flag("json", None, "JSON lines").noted("the content of objects is all that is printed")
]);

/// Bytes of small objects that are written at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Most bytes that parts may hold in memory.
const HELD_BYTES_MAX: u64 = 4 << 30;

const OPTIONS: &[Opt<CatOptions>] = &[
    value("range", None, "FIRST-LAST", "only these bytes, counted from 0 (FIRST-: to the end)")
        .reads(|plan, arg| {
            let range = range(&arg.value).ok_or_else(|| arg.refuse("not FIRST-LAST"))?;
            put(&mut plan.range, Some(range))
        }),
    value("concurrency", Some('c'), "N", "parts that are fetched ahead (4)")
        .reads(|plan, arg| put(&mut plan.parts.ahead, objects::concurrency(arg)?)),
    value("part-size", Some('p'), "SIZE", "size of parts (8); a plain number is MiB")
        .reads(|plan, arg| put(&mut plan.parts.bytes, objects::part_bytes(arg)?)),
];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    begin(TABLE.parse(&arguments))
}

/// Runs a parsed command line.
pub fn begin(typed: Result<Typed, Refused>) -> ExitCode {
    carry_out(typed, |typed| plan(&typed), |plan| show(&plan))
}

fn plan(typed: &Typed) -> Result<CatOptions, String> {
    let mut plan = TABLE.read(typed, CatOptions::default())?;
    let raw = plan.objects.is_raw();
    let place = |typed: &OsStr| match objects::url(typed)? {
        url if is_many(&url, raw) && !url.bucket.is_empty() => Ok(url),
        _ => objects::object_url(typed),
    };
    plan.places = objects::all(&typed.paths, place, "missing object: s3://BUCKET/KEY")?;
    plan.objects.check_key()?;
    if plan.parts.held_bytes_max() > HELD_BYTES_MAX {
        return Err("--concurrency and --part-size: parts would hold more than 4 GiB".into());
    }
    plan.filters.note(true)?;
    plan.filter = plan.filters.of_names()?;
    if plan.objects.version().is_some() && plan.places.iter().any(|(_, url)| is_many(url, raw)) {
        return Err("--version-id goes with single objects".into());
    }
    Ok(plan)
}

/// Returns whether a URL selects the results of a listing: a wildcard, a prefix, or a bucket.
fn is_many(url: &S3Url, raw: bool) -> bool {
    !raw && (is_level(url) || Pattern::parse(&url.key).is_some())
}

/// Returns whether a URL is a bucket or a prefix, of which one level is read.
fn is_level(url: &S3Url) -> bool {
    url.key.is_empty() || url.key.ends_with(b"/")
}

/// The keys of a URL, in order: itself, or the results of a listing.
struct Keys {
    one: Option<Vec<u8>>,
    listing: Option<(Listing, Choice, Vec<u8>)>,
    found: bool,
}

impl Keys {
    fn of(plan: &CatOptions, store: &Arc<S3Session>, url: &S3Url) -> Result<Keys, Error> {
        if !is_many(url, plan.objects.is_raw()) {
            return Ok(Keys { one: Some(url.key.clone()), listing: None, found: true });
        }
        let Scope { prefix, narrowed, pattern } = Scope::of(&url.key, false);
        let recursive = pattern.is_some();
        let choice = Choice::new(&prefix, pattern, plan.filter.as_ref());
        let choice = choice.map_err(|why| Error::new(ErrorKind::Invalid, "", why.to_string()))?;
        let query =
            StoreQuery { prefix: prefix.clone(), narrowed, recursive, ..StoreQuery::default() };
        let listing = list::store(store, &url.bucket, query);
        // An empty bucket exists.
        let found = url.key.is_empty();
        Ok(Keys { one: None, listing: Some((listing, choice, prefix)), found })
    }

    fn next(&mut self, url: &S3Url) -> Option<Result<Vec<u8>, Error>> {
        if let Some(key) = self.one.take() {
            return Some(Ok(key));
        }
        let (listing, choice, prefix) = self.listing.as_mut()?;
        while let Some(item) = listing.next() {
            match item {
                Err(trouble) => {
                    self.listing = None;
                    return Some(Err(trouble.into_error()));
                }
                // Folders, and their markers.
                Ok(entry) if entry.meta.kind == unit::Kind::Dir => {}
                Ok(entry) if choice.takes(&entry.name) => {
                    self.found = true;
                    return Some(Ok([&**prefix, &*entry.name].concat()));
                }
                Ok(_) => {}
            }
        }
        tool::note_left_out(url, choice);
        self.found |= choice.all_left_out().is_some();
        self.listing = None;
        match self.found {
            true => None,
            false => Some(Err(Error::new(ErrorKind::NotFound, "", "no such object or prefix"))),
        }
    }
}

/// Parses `FIRST-LAST` or `FIRST-`, both counted from 0, the last one included.
fn range(text: &OsStr) -> Option<Range> {
    let (first, last) = text.to_str()?.split_once('-')?;
    let start = first.parse().ok()?;
    let end = if last.is_empty() { u64::MAX } else { last.parse::<u64>().ok()?.checked_add(1)? };
    (start < end).then_some(Range { start, end })
}

fn show(plan: &CatOptions) -> Result<u8, String> {
    plan.limits.priority.apply()?;
    let stdout = match stdio::output() {
        Ok(stdout) => BufWriter::with_capacity(BUFFER_BYTES, stdout),
        Err(error) => {
            tool::fail(None, "write", "standard output", &Cause::System(error));
            return Ok(exit::FAILURE);
        }
    };
    let store = tool::open(&plan.objects)?;
    let mut code = exit::OK;
    let meter = Arc::new(Meter::new(1));
    // Output to the terminal would overwrite the bar.
    let form = ProgressForm::of(std::io::stdout().is_terminal().then_some(false), false, false);
    let progress = Progress::start(form, Language::English, |_| {});
    progress.begins(&meter);
    let limiter = plan.limits.base.byte_limiter();
    let mut out = Counted { out: stdout, meter: &meter, limiter };
    for (typed, url) in &plan.places {
        let mut keys = match Keys::of(plan, &store, url) {
            Ok(keys) => keys,
            Err(error) => {
                tool::fail(None, "read", typed, &error);
                code = exit::FAILURE;
                continue;
            }
        };
        while let Some(key) = keys.next(url) {
            let version = plan.objects.version();
            let done = key.map_err(|error| (typed.clone(), StreamError::Request(error)));
            let done = done.and_then(|key| {
                download_stream(
                    &store,
                    &url.bucket,
                    &key,
                    version,
                    plan.range,
                    plan.parts,
                    &mut out,
                )
                .and_then(|_| out.deliver().map_err(StreamError::Write))
                .map_err(|error| (shown_name(typed, url, &key), error))
            });
            match done {
                Ok(()) => meter.lane(0).done(1),
                Err((named, StreamError::Request(error))) => {
                    tool::fail(None, "read", named, &error);
                    code = exit::FAILURE;
                    if error.stops_run() {
                        return Ok(code);
                    }
                }
                // The reader is gone (`| head`).
                Err((_, StreamError::Write(error)))
                    if error.kind() == io::ErrorKind::BrokenPipe =>
                {
                    return Ok(code);
                }
                Err((_, StreamError::Write(error))) => {
                    tool::fail(None, "write", "standard output", &Cause::System(error));
                    return Ok(exit::FAILURE);
                }
            }
        }
    }
    Ok(code)
}

/// Returns an object's name for messages: as typed, or as listed.
fn shown_name(typed: &OsString, url: &S3Url, key: &[u8]) -> OsString {
    match url.key == key {
        true => typed.clone(),
        false => OsString::from_vec([b"s3://", url.bucket.as_bytes(), b"/", key].concat()),
    }
}

/// Counts the bytes written.
struct Counted<'a> {
    out: BufWriter<File>,
    meter: &'a Meter,
    /// Bytes a second.
    limiter: Option<Limiter>,
}

impl Counted<'_> {
    /// Writes the buffer and closes a duplicate of the descriptor: some file systems report errors only at close(2),
    /// after the exit code.
    fn deliver(&mut self) -> std::io::Result<()> {
        self.out.flush()?;
        file::flush(self.out.get_ref())
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut bytes = bytes;
        if let Some(limiter) = self.limiter.as_ref().filter(|_| !bytes.is_empty()) {
            let grant = (bytes.len() as u64).min(limiter.grant_max());
            limiter.wait(grant, || false);
            bytes = bytes.get(..grant as usize).unwrap_or(bytes);
        }
        let count = self.out.write(bytes)?;
        self.meter.lane(0).bytes(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("0-0", Some((0, 1))),
            ("5-9", Some((5, 10))),
            ("5-", Some((5, u64::MAX))),
            ("-5", None),
            ("9-5", None),
            ("x-1", None),
            ("5", None),
        ] {
            let found = range(OsStr::new(text)).map(|range| (range.start, range.end));
            assert_eq!(found, expected, "{text}");
        }
    }
}

//! Lines of objects, formatted by hand into one buffer: a million of them cost little more than copying.

use super::LsOptions;
use crate::number;
use crate::show::escape::Escape;
use crate::show::output::Output;
use hakobu_core::unit::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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
pub struct Row<'a> {
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
    pub version: Option<Version<'a>>,
}

/// A version of an object.
#[derive(Clone, Copy)]
pub struct Version<'a> {
    /// Its ID.
    pub id: &'a str,
    /// It is the current one.
    pub is_latest: bool,
    /// It has no content.
    pub is_delete_marker: bool,
}

impl<'a> Row<'a> {
    /// Makes the row of a prefix.
    pub fn prefix(name: &'a [u8]) -> Row<'a> {
        let (mtime, version) = (Time::default(), None);
        Row { name, size: 0, mtime, etag: "", class: "", is_prefix: true, version }
    }
}

impl Row<'_> {
    fn is_delete_marker(&self) -> bool {
        self.version.is_some_and(|version| version.is_delete_marker)
    }
}

/// Width of names before version IDs, as in s5cmd.
const NAME_WIDTH: usize = 50;

/// The lines of a command's output.
pub struct Rows<'a> {
    /// Their format.
    pub form: Form,
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

impl<'a> Rows<'a> {
    /// Makes empty output.
    pub fn new(plan: &LsOptions, out: &'a Output) -> Rows<'a> {
        Rows {
            form: match (plan.json, plan.full_path, plan.long) {
                (true, _, _) => Form::Json,
                (false, true, _) => Form::Urls,
                (false, false, true) => Form::Long,
                (false, false, false) => Form::Short,
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
        if self.form == Form::Json {
            self.buffer.extend_from_slice(b"{\"event\":\"bucket\"");
            self.json_name("name", name);
            if let Some(created) = created {
                self.buffer.extend_from_slice(b",\"created_s\":");
                push_number(created.s.unsigned_abs(), &mut self.buffer);
            }
            self.buffer.extend_from_slice(b"}\n");
            return;
        }
        if self.form == Form::Urls {
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
    pub fn push(&mut self, row: &Row<'_>) {
        if !row.is_prefix {
            self.objects += 1;
            self.bytes += row.size;
        }
        if self.form == Form::Json {
            return self.json(row);
        }
        if self.form == Form::Urls {
            let whole = [b"s3://", self.bucket.as_bytes(), b"/", &self.prefix].concat();
            self.name(&whole, row.name);
            return self.buffer.push(self.end);
        }
        let long = self.form == Form::Long;
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

    fn json(&mut self, row: &Row<'_>) {
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
            (Form::Json, _) => {
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
        let row = Row {
            name: b"a \xff\"",
            size: 1500,
            mtime: Time { s: 0, ns: 0 },
            etag: "e",
            class: "",
            is_prefix: false,
            version: None,
        };
        let out = Output::stdout();
        let lines_of = |row: &Row<'_>, form, human, whole| {
            let mut rows = Rows {
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
            rows.push(&Row::prefix(b"q/"));
            assert_eq!((rows.objects, rows.bytes), (1, 1500));
            rows.buffer.escape_ascii().to_string()
        };
        let lines = |form, human, whole| lines_of(&row, form, human, whole);
        assert_eq!(
            lines(Form::Short, false, false),
            "1970-01-01 00:00:00       1500 a \\xff\\\"\\n                           PRE q/\\n"
        );
        assert!(lines(Form::Short, true, true).starts_with("1970-01-01 00:00:00       1.5K p/a "));
        assert!(lines(Form::Long, false, false).contains(" 1500 STANDARD            e   "));
        let json = lines(Form::Json, false, false);
        assert!(
            json.contains("\\\"key_bytes\\\":\\\"702f6120ff22\\\",\\\"bytes\\\":1500"),
            "{json}"
        );
        assert!(json.ends_with("{\\\"event\\\":\\\"prefix\\\",\\\"bucket\\\":\\\"bucket\\\",\\\"key\\\":\\\"p/q/\\\"}\\n"));

        let version = Version { id: "v", is_latest: false, is_delete_marker: false };
        let old = Row { name: b"k", version: Some(version), ..row };
        let text = lines_of(&old, Form::Short, false, false);
        assert!(text.contains(&format!(" 1500 k{} v\\n", " ".repeat(49))), "{text}");
        let json = lines_of(&old, Form::Json, false, false);
        assert!(json.contains("\\\"version_id\\\":\\\"v\\\",\\\"latest\\\":false}"), "{json}");
        let marker = Version { is_delete_marker: true, ..version };
        let marker = Row { version: Some(marker), ..old };
        assert!(lines_of(&marker, Form::Long, true, false).contains("   DELETED "));
        let json = lines_of(&marker, Form::Json, false, false);
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

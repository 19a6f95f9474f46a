//! `hakobu du` of `s3://`: sizes and numbers of objects, for every prefix or for the arguments only.

use super::options::TABLE;
use super::plan::{self, Unit};
use crate::commands::tool;
use crate::exit;
use crate::number::ceiled;
use crate::objects::{self, Asked};
use crate::options::Typed;
use crate::show::escape::Escape;
use crate::show::json::{Paths, push_line};
use crate::show::output::Output;
use hakobu_s3::{Error, Kind, Store};
use hakobu_sys::below::split;
use hakobu_transfer::location::{S3Url, s3_path};
use hakobu_transfer::object::Entry;
use hakobu_transfer::object::list::{self, Choice, Scope, StoreQuery};
use hakobu_transfer::policy::filter::{Filter, FilterError};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The parsed command line.
#[derive(Debug)]
pub struct Plan {
    asked: Asked,
    unit: Unit,
    /// Lines for objects, too.
    all: bool,
    depth_max: Option<usize>,
    total: bool,
    counts: bool,
    end: u8,
    json: bool,
    filter: Option<Arc<Filter>>,
    places: Vec<(OsString, S3Url)>,
}

/// Parses a command line whose paths are all in S3.
///
/// # Errors
/// An invalid command line.
pub fn plan(typed: &Typed) -> Result<Plan, String> {
    let places = typed.paths.iter().map(|path| {
        let url = objects::url(path)?;
        match url.bucket.is_empty() {
            true => Err("s3:// names no bucket: give s3://BUCKET[/PREFIX]".to_owned()),
            false => Ok((path.clone(), url)),
        }
    });
    let places = places.collect::<Result<_, String>>()?;
    TABLE.check_places(typed, true, true)?;
    let read = TABLE.read(typed, plan::Plan::default())?;
    let plan = Plan {
        asked: read.objects,
        unit: read.unit,
        all: read.options.files,
        depth_max: read.levels,
        total: read.total,
        counts: read.counts,
        end: read.end,
        json: read.json,
        filter: read.filters.of_objects()?,
        places,
    };
    if plan.all && plan.depth_max == Some(0) {
        return Err("-s and -a contradict each other: one line in all, or one for each".into());
    }
    Ok(plan)
}

/// Bytes and objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    bytes: u64,
    objects: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.bytes += other.bytes;
        self.objects += other.objects;
    }
}

/// Open prefixes of a sorted listing: as many as the depth of the tree.
struct Tree<'a> {
    plan: &'a Plan,
    out: &'a Output,
    bucket: &'a str,
    /// Common prefix of the names.
    root: Vec<u8>,
    /// Lengths of the open prefixes' names, outermost first, and their sums.
    open: Vec<(usize, Sum)>,
    /// The innermost open prefix's name.
    name: Vec<u8>,
    whole: Sum,
}

impl Tree<'_> {
    fn take(&mut self, entry: &Entry) {
        let name = &entry.name;
        let sum = Sum { bytes: entry.meta.size, objects: 1 };
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
        let shown = self.plan.depth_max.is_none_or(|max| self.open.len() < max);
        if self.plan.all && shown && name.len() > folder {
            self.line(name, sum);
        }
        match self.open.last_mut() {
            Some((_, of)) => of.add(sum),
            None => self.whole.add(sum),
        }
    }

    /// Ends the innermost prefix.
    fn close(&mut self) {
        let Some((length, sum)) = self.open.pop() else { return };
        let depth = self.open.len() + 1;
        if self.plan.depth_max.is_none_or(|max| depth <= max) {
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
        self.out.write(&line(self.plan, self.out, url.as_os_str().as_bytes(), sum));
    }
}

fn line(plan: &Plan, out: &Output, name: &[u8], sum: Sum) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
        bytes: u64,
        objects: u64,
    }
    let mut text = Vec::with_capacity(name.len() + 24);
    if plan.json {
        let is_total = name == b"total";
        let path = Some(tool::path(name)).filter(|_| !is_total);
        let event = if is_total { "total" } else { "usage" };
        let Sum { bytes, objects } = sum;
        push_line(&Line { event, paths: Paths(&[("path", path)]), bytes, objects }, &mut text);
        return text;
    }
    let size = match plan.unit {
        Unit::Human => ceiled(sum.bytes),
        Unit::Bytes(unit) => sum.bytes.div_ceil(unit).to_string(),
    };
    text.extend_from_slice(size.as_bytes());
    text.push(b'\t');
    if plan.counts {
        text.extend_from_slice(format!("{}\t", sum.objects).as_bytes());
    }
    match out.is_terminal() && plan.end == b'\n' {
        true => Escape::of_locale().push(name, &mut text),
        false => text.extend_from_slice(name),
    }
    text.push(plan.end);
    text
}

/// Counts the arguments of a plan; returns the exit code.
pub fn measure(plan: &Plan) -> u8 {
    let store = match tool::open(&plan.asked) {
        Ok(store) => store,
        Err(code) => return code,
    };
    let out = Output::stdout();
    let (mut code, mut sum) = (exit::OK, Sum::default());
    for (typed, url) in &plan.places {
        match place(plan, &store, typed, url, &out) {
            Ok(whole) => sum.add(whole),
            Err(error) => {
                tool::fail("list", typed, &error);
                code = exit::FAILURE;
            }
        }
    }
    if plan.total {
        out.write(&line(plan, &out, b"total", sum));
    }
    if plan.asked.stat {
        tool::print_requests(&store);
    }
    tool::close(&out, code)
}

/// Returns whether a key is the typed one or is below it as a folder: `p2` is not below `p`.
fn is_below(key: &[u8], typed: &[u8]) -> bool {
    let rest = key.strip_prefix(typed);
    rest.is_some_and(|rest| {
        typed.is_empty() || typed.ends_with(b"/") || rest.is_empty() || rest.starts_with(b"/")
    })
}

fn place(
    plan: &Plan,
    store: &Arc<Store>,
    typed: &OsString,
    url: &S3Url,
    out: &Output,
) -> Result<Sum, Error> {
    let Scope { prefix: root, narrowed, pattern } = Scope::of(&url.key, plan.asked.is_raw());
    let invalid = |why: FilterError| Error::new(Kind::Invalid, "", why.to_string());
    let mut choice = Choice::new(&root, pattern.clone(), plan.filter.as_ref()).map_err(invalid)?;
    let summed = plan.depth_max == Some(0);
    let query = StoreQuery {
        prefix: root.clone(),
        narrowed,
        recursive: true,
        unordered: summed,
        ..StoreQuery::default()
    };
    let mut listing = list::store(store, &url.bucket, query);
    let (open, name, whole) = (Vec::new(), Vec::new(), Sum::default());
    let mut tree = Tree { plan, out, bucket: &url.bucket, root: root.clone(), open, name, whole };
    let (mut key, mut found) = (root, url.key.is_empty());
    while let Some(page) = listing.page() {
        for item in page {
            let entry = match item {
                Ok(entry) => entry,
                Err(trouble) => return Err(trouble.into_error()),
            };
            key.truncate(tree.root.len());
            key.extend_from_slice(&entry.name);
            let meant = match &pattern {
                Some(_) => choice.matches(&entry.name),
                None => is_below(&key, &url.key),
            };
            found |= meant;
            if !meant || choice.hides(&entry.name) {
                continue;
            }
            match summed {
                true => tree.whole.add(Sum { bytes: entry.meta.size, objects: 1 }),
                false => tree.take(&entry),
            }
        }
    }
    if !found {
        return Err(Error::new(Kind::NotFound, "", "there is no such object or prefix"));
    }
    while !tree.open.is_empty() {
        tree.close();
    }
    let name = std::os::unix::ffi::OsStrExt::as_bytes(typed.as_os_str());
    out.write(&line(plan, out, name, tree.whole));
    Ok(tree.whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::{Kind, Meta, Time};

    fn planned(line: &str) -> Result<Plan, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        plan(&TABLE.parse(&words).map_err(|refused| format!("{refused:?}"))?)
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
    fn prefixes_are_summed_as_they_end() {
        let plan = planned("-b s3://abc").unwrap();
        let out = Output::stdout();
        let (open, name, whole) = (Vec::new(), Vec::new(), Sum::default());
        let mut tree =
            Tree { plan: &plan, out: &out, bucket: "abc", root: vec![], open, name, whole };
        for (name, open) in [
            ("a", "0"),
            ("b/", "1"),
            ("b/c/d", "2"),
            ("b/c/e", "2"),
            ("b/f", "1"),
            ("b0", "0"),
            ("c//x", "2"),
        ] {
            let meta = Meta::bare(Kind::File, 10, Time::default());
            tree.take(&Entry { name: name.as_bytes().into(), meta, etag: "".into() });
            assert_eq!(tree.open.len().to_string(), open, "{name}");
        }
        while !tree.open.is_empty() {
            tree.close();
        }
        assert_eq!(tree.whole, Sum { bytes: 70, objects: 7 });
    }

    #[test]
    fn lines() {
        let out = Output::stdout();
        let sum = Sum { bytes: 1500, objects: 2 };
        for (options, text) in [
            ("s3://abc", "2\tx\n"),
            ("-h s3://abc", "1.5K\tx\n"),
            ("-b --objects s3://abc", "1500\t2\tx\n"),
            ("-b0 s3://abc", "1500\tx\0"),
            (
                "--json s3://abc",
                "{\"event\":\"usage\",\"path\":\"x\",\"bytes\":1500,\"objects\":2}\n",
            ),
        ] {
            let plan = planned(options).unwrap();
            assert_eq!(String::from_utf8_lossy(&line(&plan, &out, b"x", sum)), text, "{options}");
        }
        for refused in ["-l s3://abc", "-x s3://abc", "-sa s3://abc", "s3://"] {
            assert!(planned(refused).is_err(), "{refused}");
        }
    }
}

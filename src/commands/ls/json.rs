//! The JSON line of an entry.

use super::entry::Entry;
use crate::commands::tool;
use crate::show::json::{Paths, kind_word, push_line};
use hakobu_core::unit::Kind;
use hakobu_sys::{BorrowedFd, dir, meta};
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    paths: Paths<'a>,
    #[serde(flatten)]
    meta: Option<MetaFields>,
}

#[derive(Serialize)]
struct MetaFields {
    bytes: u64,
    allocated_bytes: u64,
    mode: String,
    uid: u32,
    gid: u32,
    nlink: u64,
    dev: u64,
    ino: u64,
    mtime_s: i64,
    mtime_ns: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

/// Appends the line of an entry with this path.
pub fn push(dir: BorrowedFd<'_>, path: &[u8], entry: &Entry, out: &mut Vec<u8>) {
    let link = match entry.kind() {
        Kind::Symlink => dir::read_link(dir, &entry.name).ok(),
        _ => None,
    };
    let fields = entry.meta.map(|meta| MetaFields {
        bytes: meta.size,
        allocated_bytes: meta.allocated_bytes(),
        mode: format!("{:04o}", meta.mode),
        uid: meta.uid,
        gid: meta.gid,
        nlink: meta.nlink,
        dev: meta.dev,
        ino: meta.ino,
        mtime_s: meta.mtime.s,
        mtime_ns: meta.mtime.ns,
        device: meta.kind.is_device().then(|| {
            let (major, minor) = meta::device_numbers(meta.rdev);
            format!("{major}:{minor}")
        }),
    });
    let link = link.as_deref().map(|link| tool::path(link.to_bytes()));
    let paths = Paths(&[("path", Some(tool::path(path))), ("link", link)]);
    let line = Line { event: "entry", kind: kind_word(entry.kind()), paths, meta: fields };
    push_line(&line, out);
}

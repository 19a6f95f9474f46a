//! The JSON line of an entry.

use super::entry::Entry;
use crate::commands::tool;
use crate::show::json::{JsonPath, kind_word, push_line};
use hakobu_sys::{BorrowedFd, dir, meta};
use hakobu_transfer::unit::Kind;
use serde::Serialize;

#[derive(Serialize)]
struct Line {
    event: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    kind: &'static str,
    #[serde(flatten)]
    meta: Option<MetaFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_bytes: Option<String>,
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

/// Appends the line of an entry that has this path.
pub fn push(dir: BorrowedFd<'_>, path: &[u8], entry: &Entry, out: &mut Vec<u8>) {
    let JsonPath { text, bytes } = JsonPath::new(tool::path(path));
    let link = match entry.kind() {
        Kind::Symlink => dir::read_link(dir, &entry.name).ok(),
        _ => None,
    };
    let link = link.map(|link| JsonPath::new(tool::path(link.to_bytes())));
    let (link, link_bytes) = link.map_or((None, None), |link| (Some(link.text), link.bytes));
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
    let line = Line {
        event: "entry",
        path: text,
        path_bytes: bytes,
        kind: kind_word(entry.kind()),
        meta: fields,
        link,
        link_bytes,
    };
    push_line(&line, out);
}

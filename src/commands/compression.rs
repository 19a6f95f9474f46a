//! Options about compression of what crosses the link to another machine.

use super::remote::usage;
use crate::cli::{Group, OptArg, flag, put, titled, value};
use hakobu_core::error::Fatal;
use hakobu_remote::packing::{self, Packing};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The options read so far.
#[derive(Clone, Debug, Default)]
pub struct CompressionArgs {
    /// `-z`, `--no-z`.
    is_on: Option<bool>,
    /// `--compress-choice`; whether there is any.
    choice: Option<bool>,
    /// Another algorithm that was chosen.
    other: Option<String>,
    level: Option<i32>,
    skipped: Option<OsString>,
}

pub static OPTIONS: Group<CompressionArgs> = titled("Compression (another machine)").with(&[
    flag("compress", Some('z'), "compress what is sent (zstd)")
        .alias(&["old-compress", "new-compress"])
        .off(&["no-compress", "no-z"])
        .sets(|it, on| it.is_on = Some(on)),
    value("compress-choice", None, "NAME", "zstd, none or auto; implies -z")
        .alias(&["zc"])
        .words(&["zstd", "none", "auto"])
        .reads(CompressionArgs::choose),
    value("compress-level", None, "N", "level of zstd (default: 3); implies -z")
        .alias(&["zl"])
        .reads(|it, arg| {
            let level = arg.parsed().ok_or_else(|| arg.refuse("not a number"));
            put(&mut it.level, Some(level?))
        }),
    value(
        "skip-compress",
        None,
        "LIST",
        "with -z: suffixes of files that are sent as they are: gz/jp[e]g/mp[34]/...",
    )
    .reads(|it, arg| put(&mut it.skipped, Some(arg.value.clone()))),
]);

impl CompressionArgs {
    /// Reads `--compress-choice`.
    fn choose(&mut self, arg: &OptArg) -> Result<(), String> {
        let name = arg.value.to_string_lossy();
        (self.choice, self.other) = match &*name {
            "auto" | "zstd" => (Some(true), None),
            "none" => (Some(false), None),
            "lz4" | "zlib" | "zlibx" => (Some(true), Some(name.into_owned())),
            _ => {
                return Err(
                    arg.refuse("not one of zstd, none, auto (and lz4, zlib, zlibx for zstd)")
                );
            }
        };
        Ok(())
    }

    /// Returns the options that were given.
    pub fn typed(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.is_on == Some(true), "-z"),
            (self.choice.is_some(), "--compress-choice"),
            (self.level.is_some(), "--compress-level"),
            (self.skipped.is_some(), "--skip-compress"),
        ];
        given.into_iter().filter_map(|(is_given, name)| is_given.then_some(name))
    }

    /// Returns how messages are compressed; as in rsync, an algorithm or a level implies it.
    ///
    /// # Errors
    /// A list of suffixes that cannot be read.
    pub fn packing(&self) -> Result<Option<Packing>, Fatal> {
        let is_on = match (self.is_on, self.choice) {
            (Some(false), _) | (_, Some(false)) => false,
            (Some(true), _) | (_, Some(true)) => true,
            (None, None) => self.level.is_some(),
        };
        if !is_on {
            return Ok(None);
        }
        // 0 is the default, and levels beyond the ends are the ends.
        let (first, last) = packing::levels().into_inner();
        let level = match self.level {
            None | Some(0) => packing::LEVEL,
            Some(level) => level.clamp(first, last),
        };
        let skipped = self.skipped.as_ref().map(|list| list.as_bytes());
        let made = Packing::new(level, skipped);
        made.map(Some).map_err(|why| usage(format!("invalid --skip-compress: {why}")))
    }

    /// Returns the note about an algorithm that zstd stands for.
    pub fn note(&self) -> Option<String> {
        let other = self.other.as_ref();
        other.map(|name| format!("note: --compress-choice={name}: zstd is used"))
    }
}

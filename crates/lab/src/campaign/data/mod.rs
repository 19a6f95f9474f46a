//! Data sets: folders that a recipe describes and that are always the same, to the byte. They are
//! made once and kept in a folder whose name says the recipe's hash.

mod make;
mod random;
#[cfg(test)]
mod tests;

pub use make::{Made, list_of, make};

use random::{Random, exp};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Counts changes of what recipes mean: what was made by an older meaning is made anew.
const MEANING: u32 = 1;
/// Random numbers of sizes and of contents have nothing to do with each other.
const FOR_SIZES: u64 = 1;
const FOR_CONTENT: u64 = 2;

/// How large files are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// As long as the line of text that each one holds.
    Line,
    /// All alike, in bytes.
    Fixed(u64),
    /// These, again and again.
    List(Vec<u64>),
    /// Any between two, both included.
    Uniform {
        /// The least, bytes.
        min: u64,
        /// The most, bytes.
        max: u64,
    },
    /// The logarithm has a normal distribution: many small files and few large ones.
    Lognormal {
        /// Half of the files are smaller, bytes.
        median: u64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// The least, bytes.
        min: u64,
        /// The most, bytes.
        max: u64,
    },
}

/// What is in files.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Bytes by chance: no compression helps.
    Random,
    /// Zeroes, written out.
    Zero,
    /// A line of text, again and again, `{n}` being the number of the file.
    Text(String),
}

/// A data set, described.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recipe {
    /// What the campaign calls it.
    pub name: String,
    /// Regular files, links not counted.
    pub count: u64,
    /// How large they are.
    pub sizes: Sizes,
    /// What is in them.
    pub content: Content,
    /// What they are called: `{n}` is the number from 1, `{n:05}` the same with zeroes in front.
    pub file_name: String,
    /// Levels of folders above the files.
    pub depth: u32,
    /// Folders in each folder.
    pub fan_out: u64,
    /// Another seed, other contents and sizes.
    pub seed: u64,
    /// So many files have a second name.
    pub hard_links: u64,
    /// To so many files a symbolic link leads.
    pub symlinks: u64,
}

impl Default for Recipe {
    fn default() -> Recipe {
        Recipe {
            name: "data".into(),
            count: 1,
            sizes: Sizes::Fixed(0),
            content: Content::Random,
            file_name: "file-{n}".into(),
            depth: 0,
            fan_out: 8,
            seed: 0,
            hard_links: 0,
            symlinks: 0,
        }
    }
}

/// What a recipe comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Names of regular files: a file with two names counts twice, as it does for who copies it.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
}

impl Recipe {
    /// Where it is kept: a folder below `cache` whose name says what is in it.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        let hash = self.hash();
        cache.join(format!("{}-{}", self.name, hash.get(..16).unwrap_or(&hash)))
    }

    /// SHA-256 of all that decides about its bytes, hexadecimal.
    pub fn hash(&self) -> String {
        // A structure of plain fields: there is no way for this to fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        let digest = Sha256::digest(format!("{MEANING} {text}"));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The size of the file of this number (from 1), in bytes.
    pub fn size(&self, number: u64) -> u64 {
        let random = || Random::new(self.seed, FOR_SIZES, number);
        match &self.sizes {
            Sizes::Line => self.line(number).len() as u64,
            Sizes::Fixed(bytes) => *bytes,
            Sizes::List(list) => {
                let at = number.saturating_sub(1).checked_rem(list.len() as u64).unwrap_or(0);
                list.get(at as usize).copied().unwrap_or(0)
            }
            Sizes::Uniform { min, max } => random().between(*min, *max),
            Sizes::Lognormal { median, sigma, min, max } => {
                let bytes = *median as f64 * exp(sigma * random().normal());
                // Beyond the largest integer it becomes that, and is held by `max`.
                (bytes as u64).clamp(*min, (*max).max(*min))
            }
        }
    }

    /// The line of text of a file, with its end.
    fn line(&self, number: u64) -> String {
        match &self.content {
            Content::Text(line) => format!("{}\n", numbered(line, number)),
            Content::Random | Content::Zero => "\n".to_owned(),
        }
    }

    /// The folder of a file below that of the data set, and its name there.
    pub fn place(&self, number: u64) -> (PathBuf, String) {
        let mut folder = PathBuf::new();
        let mut rest = number.saturating_sub(1) % self.leaves();
        let mut digits = Vec::new();
        for _ in 0..self.depth {
            digits.push(rest % self.fan_out.max(1));
            rest /= self.fan_out.max(1);
        }
        folder.extend(digits.iter().rev().map(|digit| format!("dir-{digit}")));
        (folder, numbered(&self.file_name, number))
    }

    /// Folders that hold files.
    pub fn leaves(&self) -> u64 {
        self.fan_out.max(1).saturating_pow(self.depth).max(1)
    }

    /// What it comes to.
    pub fn totals(&self) -> Totals {
        let linked = self.hard_links.min(self.count);
        let size = |number| self.size(number);
        let bytes = match &self.sizes {
            Sizes::Fixed(each) => each.saturating_mul(self.count.saturating_add(linked)),
            _ => (1..=self.count).map(size).sum::<u64>() + (1..=linked).map(size).sum::<u64>(),
        };
        Totals { files: self.count + linked, bytes }
    }

    /// What it is, in words, besides how many files and bytes.
    pub fn about(&self) -> String {
        use crate::campaign::spec::size_text;
        let sizes = match &self.sizes {
            Sizes::Line => "one line each".to_owned(),
            Sizes::Fixed(bytes) => format!("{} each", size_text(*bytes)),
            Sizes::List(list) => {
                let texts: Vec<String> = list.iter().map(|bytes| size_text(*bytes)).collect();
                format!("{} in turn", texts.join(", "))
            }
            Sizes::Uniform { min, max } => {
                format!("{} to {} each", size_text(*min), size_text(*max))
            }
            Sizes::Lognormal { median, sigma, max, .. } => format!(
                "lognormal, median {}, sigma {sigma}, at most {}",
                size_text(*median),
                size_text(*max)
            ),
        };
        let content = match &self.content {
            Content::Random => "incompressible".to_owned(),
            Content::Zero => "zeroes".to_owned(),
            Content::Text(line) => format!("text '{line}'"),
        };
        let mut about = format!("{sizes}, {content}");
        if self.depth > 0 {
            about.push_str(&format!(", {} folders {} deep", self.leaves(), self.depth));
        }
        for (links, kind) in [(self.hard_links, "hard"), (self.symlinks, "symbolic")] {
            if links > 0 {
                about.push_str(&format!(", {links} {kind} links"));
            }
        }
        about
    }
}

/// A name or a line with `{n}` and `{n:05}` replaced by a number.
pub fn numbered(template: &str, number: u64) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find("{n") {
        out.push_str(&rest[..at]);
        let hole = &rest[at..];
        match hole.find('}').and_then(|end| Some((end, width(&hole[2..end])?))) {
            Some((end, width)) => {
                out.push_str(&format!("{number:0width$}"));
                rest = &hole[end + 1..];
            }
            None => {
                out.push_str("{n");
                rest = &hole[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The width in `{n:05}`: nothing, or a colon and up to two digits.
fn width(text: &str) -> Option<usize> {
    match text.strip_prefix(':') {
        None => text.is_empty().then_some(0),
        Some(digits) if digits.len() <= 2 && digits.bytes().all(|c| c.is_ascii_digit()) => {
            digits.parse().ok()
        }
        Some(_) => None,
    }
}

/// Whether a template gives each number another text.
pub fn tells_numbers_apart(template: &str) -> bool {
    numbered(template, 1) != numbered(template, 2)
}

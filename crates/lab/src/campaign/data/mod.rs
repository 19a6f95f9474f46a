//! Data sets: folders described by a recipe and reproducible to the byte. They are cached in a folder named
//! by the hash of the recipe.

mod make;
mod random;
#[cfg(test)]
mod tests;

pub use make::{list_of, make};

pub(crate) use random::splitmix;
use random::{Xoshiro256, exp};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Version of the meaning of recipes: data sets of an older version are made again.
const MEANING: u32 = 1;
/// Purpose of a random stream: sizes and contents are independent.
const FOR_SIZES: u64 = 1;
const FOR_CONTENT: u64 = 2;

/// Distribution of file sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSizes {
    /// Length of the line of text that each file holds.
    Line,
    /// The same size for all files, bytes.
    Fixed(u64),
    /// These sizes in rotation, bytes.
    List(Vec<u64>),
    /// Uniform, both ends included.
    Uniform {
        /// Minimum, bytes.
        min: u64,
        /// Maximum, bytes.
        max: u64,
    },
    /// Log-normal: many small files and few large ones.
    Lognormal {
        /// Median, bytes.
        median: u64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// Minimum, bytes.
        min: u64,
        /// Maximum, bytes.
        max: u64,
    },
}

/// Content of files.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileContent {
    /// Random bytes, incompressible.
    Random,
    /// Zeros, written out.
    Zero,
    /// A repeated line of text, in which `{n}` is the number of the file.
    Text(String),
}

/// Description of a data set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataRecipe {
    /// Name in the campaign.
    pub name: String,
    /// Number of regular files, without hard links.
    pub count: u64,
    /// Sizes of files.
    pub sizes: FileSizes,
    /// Content of files.
    pub content: FileContent,
    /// File name: `{n}` is the number from 1, `{n:05}` the same padded with zeros.
    pub file_name: String,
    /// Levels of folders above the files.
    pub depth: u32,
    /// Folders per folder.
    pub fan_out: u64,
    /// Seed of contents and sizes.
    pub seed: u64,
    /// Number of files that get a second hard link.
    pub hard_links: u64,
    /// Number of symbolic links to files.
    pub symlinks: u64,
}

impl Default for DataRecipe {
    fn default() -> DataRecipe {
        DataRecipe {
            name: "data".into(),
            count: 1,
            sizes: FileSizes::Fixed(0),
            content: FileContent::Random,
            file_name: "file-{n}".into(),
            depth: 0,
            fan_out: 8,
            seed: 0,
            hard_links: 0,
            symlinks: 0,
        }
    }
}

/// Size of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataTotals {
    /// Names of regular files; a file with two hard links counts twice.
    pub files: u64,
    /// Total bytes.
    pub bytes: u64,
}

impl DataRecipe {
    /// Folder of the data set below `cache`, named by the hash.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        let hash = self.hash();
        cache.join(format!("{}-{}", self.name, hash.get(..16).unwrap_or(&hash)))
    }

    /// SHA-256 over everything that determines its bytes, hexadecimal.
    pub fn hash(&self) -> String {
        // Serialising plain fields cannot fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        let digest = Sha256::digest(format!("{MEANING} {text}"));
        hakobu_core::percent::hex(&digest)
    }

    /// Size of file `number` (from 1), bytes.
    pub fn size(&self, number: u64) -> u64 {
        let random = || Xoshiro256::new(self.seed, FOR_SIZES, number);
        match &self.sizes {
            FileSizes::Line => self.line(number).len() as u64,
            FileSizes::Fixed(bytes) => *bytes,
            FileSizes::List(list) => {
                let at = number.saturating_sub(1).checked_rem(list.len() as u64).unwrap_or(0);
                list.get(at as usize).copied().unwrap_or(0)
            }
            FileSizes::Uniform { min, max } => random().between(*min, *max),
            FileSizes::Lognormal { median, sigma, min, max } => {
                let bytes = *median as f64 * exp(sigma * random().normal());
                // The cast saturates, and `max` bounds it.
                (bytes as u64).clamp(*min, (*max).max(*min))
            }
        }
    }

    /// Line of text of a file, with its newline.
    fn line(&self, number: u64) -> String {
        match &self.content {
            FileContent::Text(line) => format!("{}\n", numbered(line, number)),
            FileContent::Random | FileContent::Zero => "\n".to_owned(),
        }
    }

    /// Folder of a file below the data set's, and its file name.
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

    /// Number of folders that hold files.
    pub fn leaves(&self) -> u64 {
        self.fan_out.max(1).saturating_pow(self.depth).max(1)
    }

    /// Total files and bytes.
    pub fn totals(&self) -> DataTotals {
        let linked = self.hard_links.min(self.count);
        let size = |number| self.size(number);
        let files = self.count.saturating_add(linked);
        let bytes = match &self.sizes {
            FileSizes::Fixed(each) => each.saturating_mul(files),
            _ => (1..=self.count).chain(1..=linked).map(size).fold(0, u64::saturating_add),
        };
        DataTotals { files, bytes }
    }

    /// Description in words, without the number of files and bytes.
    pub fn about(&self) -> String {
        use crate::campaign::spec::value::size_text;
        let sizes = match &self.sizes {
            FileSizes::Line => "one line each".to_owned(),
            FileSizes::Fixed(bytes) => format!("{} each", size_text(*bytes)),
            FileSizes::List(list) => {
                let texts: Vec<String> = list.iter().map(|bytes| size_text(*bytes)).collect();
                format!("{} in turn", texts.join(", "))
            }
            FileSizes::Uniform { min, max } => {
                format!("{} to {} each", size_text(*min), size_text(*max))
            }
            FileSizes::Lognormal { median, sigma, max, .. } => format!(
                "lognormal, median {}, sigma {sigma}, at most {}",
                size_text(*median),
                size_text(*max)
            ),
        };
        let content = match &self.content {
            FileContent::Random => "incompressible".to_owned(),
            FileContent::Zero => "zeroes".to_owned(),
            FileContent::Text(line) => format!("text '{line}'"),
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

/// Replaces `{n}` and `{n:05}` in a name or line by a number.
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

/// Parses the width in `{n:05}`: nothing, or a colon and up to two digits.
fn width(text: &str) -> Option<usize> {
    match text.strip_prefix(':') {
        None => text.is_empty().then_some(0),
        Some(digits) if digits.len() <= 2 && digits.bytes().all(|c| c.is_ascii_digit()) => {
            digits.parse().ok()
        }
        Some(_) => None,
    }
}

/// True if a template gives a different text for each number.
pub fn tells_numbers_apart(template: &str) -> bool {
    numbered(template, 1) != numbered(template, 2)
}

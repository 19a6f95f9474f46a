//! Under which file a key is kept. A plain key is its own path; one that cannot be a path (`//`, `.`
//! and `..`, a slash at either end), is too long for the names that s3s-fs derives from it, or stands
//! where a folder or a file is already, gets a numbered file, and a list says which is whose.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The list, in the folder that is served: a line of JSON for each number, bucket and key.
const LIST: &str = ".hakobu-names";
/// What numbered files begin with.
const NUMBERED: &str = ".key-";
/// The longest key that is its own path. s3s-fs names files after the key in base64, with a bucket
/// and the id of an upload beside it, in 255 bytes.
const PLAIN_BYTES_MAX: usize = 64;

type Whose = (String, String);

/// Which key is kept where.
#[derive(Debug)]
pub struct Names {
    root: PathBuf,
    numbered: Mutex<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    keys: Vec<Whose>,
    numbers: HashMap<Whose, usize>,
}

impl Numbered {
    fn add(&mut self, whose: Whose) -> usize {
        let number = self.keys.len();
        self.keys.push(whose.clone());
        self.numbers.insert(whose, number);
        number
    }
}

impl Names {
    /// Reads the list of a folder.
    ///
    /// # Errors
    /// The list is there and cannot be read.
    pub fn load(root: &Path) -> io::Result<Names> {
        let mut numbered = Numbered::default();
        match File::open(root.join(LIST)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            file => {
                for line in BufReader::new(file?).lines() {
                    numbered.add(serde_json::from_str(&line?).map_err(io::Error::other)?);
                }
            }
        }
        Ok(Names { root: root.to_owned(), numbered: Mutex::new(numbered) })
    }

    /// The path within its bucket of a key that may exist; `None` where it cannot.
    pub fn find(&self, bucket: &str, key: &str) -> Option<String> {
        let numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        match numbered.numbers.get(&(bucket.to_owned(), key.to_owned())) {
            Some(number) => Some(file_of(*number)),
            None => is_path(key).then(|| key.to_owned()),
        }
    }

    /// The path within its bucket for a key that is to be written.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn make(&self, bucket: &str, key: &str) -> io::Result<String> {
        let whose = (bucket.to_owned(), key.to_owned());
        let mut numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbered.numbers.get(&whose) {
            return Ok(file_of(*number));
        }
        if is_path(key) && key.len() <= PLAIN_BYTES_MAX && !self.is_taken(bucket, key) {
            return Ok(key.to_owned());
        }
        let mut line = serde_json::to_vec(&whose)?;
        line.push(b'\n');
        File::options().create(true).append(true).open(self.root.join(LIST))?.write_all(&line)?;
        Ok(file_of(numbered.add(whose)))
    }

    /// Whether a folder stands where the file would be, or a file where a folder would.
    fn is_taken(&self, bucket: &str, key: &str) -> bool {
        let bucket = self.root.join(bucket);
        let slashes = key.match_indices('/').map(|(at, _)| &key[..at]);
        bucket.join(key).is_dir() || slashes.into_iter().any(|part| bucket.join(part).is_file())
    }

    /// The key of a path within a bucket; `None` for what is no object.
    pub fn key_of(&self, bucket: &str, path: &str) -> Option<String> {
        let Some(digits) = path.strip_prefix(NUMBERED) else { return Some(path.to_owned()) };
        let numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        let (owner, key) = numbered.keys.get(digits.parse::<usize>().ok()?)?;
        (owner == bucket).then(|| key.clone())
    }
}

fn file_of(number: usize) -> String {
    format!("{NUMBERED}{number:09}")
}

/// Whether a key is the path of a file.
fn is_path(key: &str) -> bool {
    let is_name = |name: &str| !["", ".", ".."].contains(&name) && name.len() <= 255;
    !key.starts_with(NUMBERED) && !key.contains('\0') && key.split('/').all(is_name)
}

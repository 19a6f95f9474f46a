//! Maps keys to files. A plain key is its own path. A key gets a numbered file if it cannot be a path (`//`,
//! `.` and `..`, a slash at either end), is too long for derived names, or collides with an existing folder
//! or file; a list maps numbers to keys.

use super::root::Root;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::sync::Arc;

/// The list, inside the served folder: a line of JSON per number, with bucket and key.
const LIST: &str = ".hakobu-names";
/// Prefix of numbered files.
const NUMBERED: &str = ".key-";
/// Longest key used as a path, bytes. Metadata files are named after the key in base64, with a bucket and an
/// upload id, within 255 bytes.
const PLAIN_BYTES_MAX: usize = 64;

type ObjectId = (String, String);

/// Files of keys.
#[derive(Debug)]
pub struct Names {
    root: Arc<Root>,
    numbered: Mutex<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    keys: Vec<ObjectId>,
    numbers: HashMap<ObjectId, usize>,
}

impl Numbered {
    fn add(&mut self, object: ObjectId) -> usize {
        let number = self.keys.len();
        self.keys.push(object.clone());
        self.numbers.insert(object, number);
        number
    }
}

impl Names {
    /// Reads the list of a folder.
    ///
    /// # Errors
    /// The list exists and cannot be read.
    pub fn load(root: &Arc<Root>) -> io::Result<Names> {
        let mut numbered = Numbered::default();
        match root.file(LIST) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            file => {
                for line in BufReader::new(file?.0).lines() {
                    numbered.add(serde_json::from_str(&line?).map_err(io::Error::other)?);
                }
            }
        }
        Ok(Names { root: Arc::clone(root), numbered: Mutex::new(numbered) })
    }

    /// Path of an existing key within its bucket; `None` if it cannot exist.
    pub fn find(&self, bucket: &str, key: &str) -> Option<String> {
        let numbered = self.numbered.lock();
        match numbered.numbers.get(&(bucket.to_owned(), key.to_owned())) {
            Some(number) => Some(file_of(*number)),
            None => is_path(key).then(|| key.to_owned()),
        }
    }

    /// Path within its bucket for writing a key.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn make(&self, bucket: &str, key: &str) -> io::Result<String> {
        let object = (bucket.to_owned(), key.to_owned());
        let mut numbered = self.numbered.lock();
        if let Some(number) = numbered.numbers.get(&object) {
            return Ok(file_of(*number));
        }
        if is_path(key) && key.len() <= PLAIN_BYTES_MAX && !self.is_taken(bucket, key) {
            return Ok(key.to_owned());
        }
        self.number(&mut numbered, object)
    }

    /// Another path for a key whose own path has been taken since it was looked up, by a key above or below
    /// it. `None` if it is still free.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn move_aside(&self, bucket: &str, key: &str) -> io::Result<Option<String>> {
        let object = (bucket.to_owned(), key.to_owned());
        let mut numbered = self.numbered.lock();
        if let Some(number) = numbered.numbers.get(&object) {
            return Ok(Some(file_of(*number)));
        }
        if key.starts_with(NUMBERED) || !self.is_taken(bucket, key) {
            return Ok(None);
        }
        self.number(&mut numbered, object).map(Some)
    }

    /// Assigns a numbered file to a key.
    fn number(&self, numbered: &mut Numbered, object: ObjectId) -> io::Result<String> {
        let mut line = serde_json::to_vec(&object)?;
        line.push(b'\n');
        self.root.append(LIST, &line)?;
        Ok(file_of(numbered.add(object)))
    }

    /// True if a folder exists in place of the file, or a file in place of one of its folders.
    fn is_taken(&self, bucket: &str, key: &str) -> bool {
        let mut slashes = key.match_indices('/').map(|(at, _)| &key[..at]);
        self.root.is_dir(&format!("{bucket}/{key}"))
            || slashes.any(|part| self.root.is_file(&format!("{bucket}/{part}")))
    }

    /// Key of a path within a bucket; `None` if the path is not an object.
    pub fn key_of(&self, bucket: &str, path: &str) -> Option<String> {
        let Some(digits) = path.strip_prefix(NUMBERED) else { return Some(path.to_owned()) };
        let numbered = self.numbered.lock();
        let (owner, key) = numbered.keys.get(digits.parse::<usize>().ok()?)?;
        (owner == bucket).then(|| key.clone())
    }
}

fn file_of(number: usize) -> String {
    format!("{NUMBERED}{number:09}")
}

/// True if a key can be used as a path.
fn is_path(key: &str) -> bool {
    let is_name = |name: &str| !["", ".", ".."].contains(&name) && name.len() <= 255;
    !key.starts_with(NUMBERED) && !key.contains('\0') && key.split('/').all(is_name)
}

//! Data sets: folders described by a recipe and reproducible to the byte. They are cached in a folder named by the hash of
//! the recipe; a marker beside it shows that it is complete.

use crate::campaign::files::totals;
use crate::campaign::own_folder::{FolderError, FolderMark, OwnFolder};
use crate::campaign::random::{Xoshiro256, exp};
use crate::campaign::spec::toml::size_text;
use hakobu_core::error::PathError;
use hakobu_sys::{AsFd, disk};
use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use std::{fmt, fs, io};

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
            FileContent::Text(line) => format!("{}\n", with_number(line, number)),
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
        (folder, with_number(&self.file_name, number))
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
            about.push_str(&format!(", {} directories {} deep", self.leaves(), self.depth));
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
pub fn with_number(template: &str, number: u64) -> String {
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
    with_number(template, 1) != with_number(template, 2)
}

// Creates the folder of a recipe on all CPUs. The marker is written last, so that an incomplete folder is
// recognised and made again.

/// Files that a thread takes at a time.
const TURN: u64 = 64;
/// Buffer size in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// Modification time of all files, seconds since 1970: copies have to keep it, so it is constant.
const TIME_S: u64 = 1_577_836_800;
/// Estimated metadata of a small file besides its blocks, bytes.
const FILE_BYTES: u64 = 1024;
const BLOCK_BYTES: u64 = 4096;

/// File beside `folder` that lists the absolute paths of its regular files, one per line.
pub fn list_of(folder: &Path) -> PathBuf {
    beside(folder, "list")
}

fn beside(folder: &Path, end: &str) -> PathBuf {
    let mut name: OsString = folder.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    PathBuf::from(name)
}

/// Why a data set cannot be made.
#[derive(Debug)]
pub enum DataError {
    /// Its folder cannot be used.
    Folder(FolderError),
    /// A call failed.
    Path(PathError),
    /// It does not fit.
    Full {
        data: String,
        /// What is needed, and what is free.
        room: String,
    },
}

impl fmt::Display for DataError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataError::Folder(error) => error.fmt(out),
            DataError::Path(error) => error.fmt(out),
            DataError::Full { data, room } => {
                write!(out, "data set '{data}' does not fit: {room}")
            }
        }
    }
}

error_type!(DataError: Folder(FolderError), Path(PathError); );

/// Makes a data set in a folder; true if it existed already. An existing one is checked, and made again if anything is missing. Other
/// content of the folder is removed, if a mark shows that it was made here.
///
/// # Errors
/// There is not enough space (nothing is written then), a write failed, or the folder has no mark.
pub fn make(recipe: &DataRecipe, folder: &Path) -> Result<bool, DataError> {
    let wanted = recipe.totals();
    let marker = beside(folder, "done");
    let hash = recipe.hash();
    if fs::read_to_string(&marker).is_ok_and(|text| text.trim_end() == hash)
        && list_of(folder).is_file()
        && totals(folder).is_ok_and(|found| found == wanted)
    {
        return Ok(true);
    }
    for old in [&marker, &list_of(folder)] {
        match fs::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(PathError::of("remove", old)(error).into());
            }
            _ => {}
        }
    }
    OwnFolder::claim(folder, FolderMark::Beside)?.remove()?;
    OwnFolder::claim(folder, FolderMark::Beside)?;
    fits(recipe, wanted, folder)?;
    folders(recipe, folder)?;
    files(recipe, folder)?;
    list(recipe, folder).map_err(PathError::of("write", list_of(folder)))?;
    let mark = File::create_new(&marker).and_then(|mut file| writeln!(file, "{hash}"));
    mark.map_err(PathError::of("write", &marker))?;
    Ok(false)
}

/// Fails if there is not enough free space.
fn fits(recipe: &DataRecipe, wanted: DataTotals, folder: &Path) -> Result<(), DataError> {
    let Ok(space) = File::open(folder).and_then(|file| disk::space(file.as_fd())) else {
        return Ok(()); // unknown: a failing write will report it
    };
    let entries = recipe.count.saturating_add(recipe.symlinks).saturating_add(recipe.leaves());
    let rounding = recipe.count.saturating_mul(BLOCK_BYTES / 2);
    let least = entries.saturating_mul(FILE_BYTES);
    let needed = wanted.bytes.saturating_add(rounding).saturating_add(least);
    let full = |room| Err(DataError::Full { data: recipe.name.clone(), room });
    if needed > space.free_bytes {
        let (free, place) = (space.free_bytes, folder.display());
        return full(format!("{needed} bytes are needed, {free} are free at '{place}'"));
    }
    match space.free_inodes {
        Some(free) if entries > free => {
            full(format!("{entries} files are needed, {free} inodes are free"))
        }
        _ => Ok(()),
    }
}

fn folders(recipe: &DataRecipe, folder: &Path) -> Result<(), PathError> {
    if recipe.depth == 0 {
        return Ok(());
    }
    let numbers = 1..=recipe.leaves().min(recipe.count);
    let leaves: BTreeSet<PathBuf> = numbers.map(|number| recipe.place(number).0).collect();
    for leaf in leaves {
        let path = folder.join(leaf);
        fs::create_dir_all(&path).map_err(PathError::of("make", &path))?;
    }
    Ok(())
}

/// Writes all files on several threads until none is left or one has failed.
fn files(recipe: &DataRecipe, folder: &Path) -> Result<(), PathError> {
    let next = AtomicU64::new(1);
    let failed = AtomicBool::new(false);
    let problem: Mutex<Option<PathError>> = Mutex::new(None);
    let work = || {
        let mut buffer = vec![0; PIECE_BYTES];
        while !failed.load(Ordering::Relaxed) {
            let from = next.fetch_add(TURN, Ordering::Relaxed);
            if from > recipe.count {
                return;
            }
            let until = from.saturating_add(TURN - 1).min(recipe.count);
            for number in from..=until {
                if let Err(error) = file(recipe, folder, number, &mut buffer) {
                    failed.store(true, Ordering::Relaxed);
                    problem.lock().get_or_insert(error);
                    return;
                }
            }
        }
    };
    let threads = (hakobu_sys::process::cpus() as u64).min(recipe.count.div_ceil(TURN)).max(1);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    problem.into_inner().map_or(Ok(()), Err)
}

fn file(
    recipe: &DataRecipe,
    folder: &Path,
    number: u64,
    buffer: &mut [u8],
) -> Result<(), PathError> {
    let (below, name) = recipe.place(number);
    let parent = folder.join(below);
    let path = parent.join(&name);
    write(recipe, number, &path, buffer).map_err(PathError::of("write", &path))?;
    if number <= recipe.hard_links {
        let second = parent.join(format!("{name}.hard"));
        fs::hard_link(&path, &second).map_err(PathError::of("link", &second))?;
    }
    if number <= recipe.symlinks {
        let link = parent.join(format!("{name}.sym"));
        std::os::unix::fs::symlink(&name, &link).map_err(PathError::of("link", &link))?;
    }
    Ok(())
}

fn write(recipe: &DataRecipe, number: u64, path: &Path, buffer: &mut [u8]) -> io::Result<()> {
    let mut out = File::create_new(path)?;
    let mut left = recipe.size(number);
    let mut random = Xoshiro256::new(recipe.seed, FOR_CONTENT, number);
    let line = recipe.line(number);
    if let FileContent::Zero = recipe.content {
        buffer.fill(0);
    }
    let mut lines = line.bytes().cycle();
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let piece = &mut buffer[..length];
        match &recipe.content {
            FileContent::Random => random.fill(piece),
            FileContent::Zero => {}
            FileContent::Text(_) => {
                piece.iter_mut().zip(&mut lines).for_each(|(byte, letter)| *byte = letter);
            }
        }
        out.write_all(piece)?;
        left -= length as u64;
    }
    out.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(TIME_S))
}

fn list(recipe: &DataRecipe, folder: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(File::create_new(list_of(folder))?);
    for number in 1..=recipe.count {
        let (below, name) = recipe.place(number);
        let path = folder.join(below).join(&name);
        out.write_all(path.as_os_str().as_bytes())?;
        out.write_all(b"\n")?;
        if number <= recipe.hard_links {
            out.write_all(path.as_os_str().as_bytes())?;
            out.write_all(b".hard\n")?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::error::Error;
    use std::os::unix::fs::MetadataExt;
    use std::time::UNIX_EPOCH;

    fn recipe() -> DataRecipe {
        DataRecipe {
            name: "mixed".into(),
            count: 150,
            sizes: FileSizes::Lognormal { median: 2000, sigma: 1.5, min: 0, max: 400_000 },
            content: FileContent::Random,
            file_name: "f-{n:04}".into(),
            depth: 2,
            fan_out: 3,
            seed: 42,
            hard_links: 5,
            symlinks: 7,
        }
    }

    /// Names, contents and times of everything below a folder.
    fn tree(folder: &Path) -> BTreeMap<String, (String, i64)> {
        let mut found = BTreeMap::new();
        let mut open = vec![folder.to_owned()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                let meta = path.symlink_metadata().unwrap();
                let what = if meta.is_symlink() {
                    format!("-> {}", fs::read_link(&path).unwrap().display())
                } else if meta.is_dir() {
                    open.push(path);
                    "/".to_owned()
                } else {
                    let digest = Sha256::digest(fs::read(&path).unwrap());
                    digest.iter().map(|byte| format!("{byte:02x}")).collect()
                };
                let time = if meta.is_file() { meta.mtime() } else { 0 };
                found.insert(name, (what, time));
            }
        }
        found
    }

    /// One hash over a tree.
    fn hash_of_tree(folder: &Path) -> String {
        let digest = Sha256::digest(format!("{:?}", tree(folder)));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_same_recipe_makes_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        make(&recipe(), &a).unwrap();
        make(&recipe(), &b).unwrap();
        assert_eq!(tree(&a), tree(&b));
        assert_eq!(recipe().totals().files, 155);
        let other = DataRecipe { seed: 43, ..recipe() };
        make(&other, &b).unwrap();
        assert_ne!(hash_of_tree(&a), hash_of_tree(&b));
        assert_eq!(tree(&a).len(), 150 + 5 + 7 + 9 + 3);
        let linked = fs::metadata(a.join("dir-0/dir-0/f-0001")).unwrap();
        assert_eq!(linked.nlink(), 2);
        assert_eq!(linked.modified().unwrap(), UNIX_EPOCH + Duration::from_secs(1_577_836_800));
        let link = fs::read_link(a.join("dir-0/dir-1/f-0002.sym")).unwrap();
        assert_eq!(link, Path::new("f-0002"));
    }

    #[test]
    fn lines_of_text_are_what_the_study_had() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("t");
        let lines = DataRecipe {
            count: 12,
            sizes: FileSizes::Line,
            content: FileContent::Text("Test file {n}".into()),
            file_name: "test_file_{n}.txt".into(),
            ..DataRecipe::default()
        };
        make(&lines, &folder).unwrap();
        assert_eq!(lines.totals(), DataTotals { files: 12, bytes: 9 * 12 + 3 * 13 });
        assert_eq!(fs::read_to_string(folder.join("test_file_12.txt")).unwrap(), "Test file 12\n");
        let list = fs::read_to_string(list_of(&folder)).unwrap();
        let names: Vec<&str> = list.lines().collect();
        assert_eq!(names.len(), 12);
        assert!(names.iter().all(|name| Path::new(name).is_file()), "{names:?}");
        let longer = DataRecipe { count: 1, sizes: FileSizes::Fixed(30), ..lines };
        make(&longer, &folder).unwrap();
        let text = fs::read_to_string(folder.join("test_file_1.txt")).unwrap();
        assert_eq!(text, "Test file 1\nTest file 1\nTest f");
    }

    #[test]
    fn it_is_kept_and_what_is_damaged_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let recipe = recipe();
        let folder = recipe.folder(dir.path());
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("mixed-") && name.len() == "mixed-".len() + 16, "{name}");
        let cached = || make(&recipe, &folder).unwrap();
        assert!(!cached() && cached());
        let whole = tree(&folder);
        let first = folder.join("dir-0/dir-0/f-0001");
        let damages: [&dyn Fn(); 5] = [
            &|| fs::remove_file(folder.join("dir-0/dir-1/f-0011")).unwrap(),
            &|| fs::write(folder.join("more"), "x").unwrap(),
            &|| fs::write(&first, "").unwrap(),
            &|| fs::remove_file(list_of(&folder)).unwrap(),
            // Interrupted: there is no marker.
            &|| fs::remove_file(dir.path().join(format!("{name}.done"))).unwrap(),
        ];
        for (number, damage) in damages.iter().enumerate() {
            damage();
            assert!(!cached(), "damage {number}");
            assert_eq!(tree(&folder), whole, "damage {number}");
            assert!(cached());
        }
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("huge");
        let huge =
            DataRecipe { count: 1000, sizes: FileSizes::Fixed(1 << 50), ..DataRecipe::default() };
        let error = make(&huge, &folder).unwrap_err();
        assert!(matches!(error, DataError::Full { .. }), "{error:?}");
        assert!(error.to_string().contains("data set 'data' does not fit"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn errors_name_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = make(&DataRecipe::default(), &file.join("below")).unwrap_err();
        assert!(error.to_string().contains("below"), "{error}");
        let mut cause: &dyn Error = &error;
        while let Some(of) = cause.source() {
            cause = of;
        }
        assert!(cause.is::<io::Error>(), "{cause:?}");
    }

    #[test]
    fn names_have_numbers() {
        for (template, name) in [
            ("f{n}", "f7"),
            ("{n:03}-{n}", "007-7"),
            ("{n:0}", "7"),
            ("{n:x}", "{n:x}"),
            ("{n:123}", "{n:123}"),
            ("{nn}{n}", "{nn}7"),
            ("{n", "{n"),
            ("plain", "plain"),
            ("é{n}}", "é7}"),
        ] {
            assert_eq!(with_number(template, 7), name, "{template}");
        }
        assert!(tells_numbers_apart("{n}") && !tells_numbers_apart("n"));
    }

    #[test]
    fn it_says_what_it_is() {
        assert_eq!(
            recipe().about(),
            "lognormal, median 2 KB, sigma 1.5, at most 400 KB, incompressible, \
             9 directories 2 deep, 5 hard links, 7 symbolic links"
        );
        let one = DataRecipe { sizes: FileSizes::Fixed(4 << 30), ..DataRecipe::default() };
        assert_eq!(one.about(), "4 GiB each, incompressible");
    }

    #[test]
    fn the_distribution_has_its_median_and_its_spread() {
        let recipe = DataRecipe { count: 4000, ..recipe() };
        let mut sizes: Vec<u64> = (1..=4000).map(|number| recipe.size(number)).collect();
        sizes.sort_unstable();
        let at = |share: f64| sizes[(share * 4000.0) as usize] as f64;
        assert!((at(0.5) / 2000.0 - 1.0).abs() < 0.1, "median {}", at(0.5));
        // One standard deviation of the logarithm: 84.1 % are below median × e^sigma.
        assert!((at(0.841) / (2000.0 * 1.5f64.exp()) - 1.0).abs() < 0.15, "{}", at(0.841));
        assert!((at(0.159) / (2000.0 * (-1.5f64).exp()) - 1.0).abs() < 0.15, "{}", at(0.159));
    }

    proptest::proptest! {
        #[test]
        fn sizes_stay_in_their_bounds(
            seed: u64,
            number in 1u64..1_000_000,
            a in 0u64..1 << 40,
            b in 0u64..1 << 40,
            sigma in 0.0f64..10.0,
        ) {
            let (min, max) = (a.min(b), a.max(b));
            let with = |sizes| DataRecipe { sizes, seed, ..DataRecipe::default() };
            let uniform = with(FileSizes::Uniform { min, max });
            proptest::prop_assert!((min..=max).contains(&uniform.size(number)));
            let median = min + (max - min) / 2;
            let lognormal = with(FileSizes::Lognormal { median, sigma, min, max });
            proptest::prop_assert!((min..=max).contains(&lognormal.size(number)));
            proptest::prop_assert_eq!(lognormal.size(number), lognormal.clone().size(number));
            let list = with(FileSizes::List(vec![a, b]));
            proptest::prop_assert_eq!(list.size(number), if number % 2 == 1 { a } else { b });
        }

        #[test]
        fn totals_are_the_sum_of_sizes(count in 1u64..200, links in 0u64..200, seed: u64) {
            let recipe = DataRecipe {
                count,
                hard_links: links.min(count),
                sizes: FileSizes::Uniform { min: 0, max: 1000 },
                seed,
                ..DataRecipe::default()
            };
            let all: u64 = (1..=count).map(|number| recipe.size(number)).sum();
            let twice: u64 = (1..=recipe.hard_links).map(|number| recipe.size(number)).sum();
            let wanted = DataTotals { files: count + recipe.hard_links, bytes: all + twice };
            proptest::prop_assert_eq!(recipe.totals(), wanted);
        }

        #[test]
        fn another_recipe_has_another_folder(count in 2u64..100, seed in 1u64..100) {
            let plain = DataRecipe::default();
            let folder = |recipe: &DataRecipe| recipe.folder(Path::new("/c"));
            let (more, other) = (DataRecipe { count, ..plain.clone() }, DataRecipe { seed, ..plain.clone() });
            proptest::prop_assert_ne!(folder(&plain), folder(&more));
            proptest::prop_assert_ne!(folder(&plain), folder(&other));
            proptest::prop_assert_eq!(folder(&more), folder(&more.clone()));
        }

        #[test]
        fn no_two_files_have_one_place(count in 1u64..300, depth in 0u32..4, fan_out in 1u64..6) {
            let recipe = DataRecipe { count, depth, fan_out, ..DataRecipe::default() };
            let mut places: Vec<_> = (1..=count).map(|number| recipe.place(number)).collect();
            places.sort();
            places.dedup();
            proptest::prop_assert_eq!(places.len() as u64, count);
        }
    }
}

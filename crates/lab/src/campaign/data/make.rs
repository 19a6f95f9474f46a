//! Creates the folder of a recipe on all CPUs. The marker is written last, so that an incomplete folder is
//! recognised and made again.

use super::{DataRecipe, DataTotals, FOR_CONTENT, FileContent, Xoshiro256};
use crate::campaign::own::{FolderMark, OwnFolder};
use hakobu_sys::{AsFd, disk};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

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

/// Makes a data set in a folder; true if it existed already. An existing one is checked, and made again if anything is missing. Other
/// content of the folder is removed, if a mark shows that it was made here.
///
/// # Errors
/// There is not enough space (nothing is written then), a write failed, or the folder has no mark.
pub fn make(recipe: &DataRecipe, folder: &Path) -> io::Result<bool> {
    let totals = recipe.totals();
    let marker = beside(folder, "done");
    let hash = recipe.hash();
    if fs::read_to_string(&marker).is_ok_and(|text| text.trim_end() == hash)
        && list_of(folder).is_file()
        && look(folder).is_ok_and(|found| found == totals)
    {
        return Ok(true);
    }
    for old in [&marker, &list_of(folder)] {
        absent_is_fine(fs::remove_file(old)).map_err(|error| named(&error, "remove", old))?;
    }
    let own = || OwnFolder::claim(folder, FolderMark::Beside).map_err(io::Error::other);
    own()?.remove().map_err(io::Error::other)?;
    own()?;
    fits(recipe, totals, folder)?;
    folders(recipe, folder)?;
    files(recipe, folder)?;
    list(recipe, folder).map_err(|error| named(&error, "write", &list_of(folder)))?;
    let mark = File::create_new(&marker).and_then(|mut file| writeln!(file, "{hash}"));
    mark.map_err(|error| named(&error, "write", &marker))?;
    Ok(false)
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn named(error: &io::Error, doing: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {doing} '{}': {error}", path.display()))
}

/// Counts regular files and bytes below a folder.
fn look(folder: &Path) -> io::Result<DataTotals> {
    let mut totals = DataTotals::default();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                totals.files += 1;
                totals.bytes += entry.metadata()?.len();
            }
        }
    }
    Ok(totals)
}

/// Fails if there is not enough free space.
fn fits(recipe: &DataRecipe, totals: DataTotals, folder: &Path) -> io::Result<()> {
    let Ok(space) = File::open(folder).and_then(|file| disk::space(file.as_fd())) else {
        return Ok(()); // unknown: a failing write will report it
    };
    let entries = recipe.count.saturating_add(recipe.symlinks).saturating_add(recipe.leaves());
    let rounding = recipe.count.saturating_mul(BLOCK_BYTES / 2);
    let least = entries.saturating_mul(FILE_BYTES);
    let wanted = totals.bytes.saturating_add(rounding).saturating_add(least);
    let full = |what: String| {
        let text = format!("data set '{}' does not fit: {what}", recipe.name);
        io::Error::new(io::ErrorKind::StorageFull, text)
    };
    if wanted > space.free_bytes {
        let place = folder.display();
        let free = space.free_bytes;
        return Err(full(format!("{wanted} bytes are needed, {free} are free at '{place}'")));
    }
    match space.free_inodes {
        Some(free) if entries > free => {
            Err(full(format!("{entries} files are needed, {free} inodes are free")))
        }
        _ => Ok(()),
    }
}

fn folders(recipe: &DataRecipe, folder: &Path) -> io::Result<()> {
    if recipe.depth == 0 {
        return Ok(());
    }
    let numbers = 1..=recipe.leaves().min(recipe.count);
    let leaves: BTreeSet<PathBuf> = numbers.map(|number| recipe.place(number).0).collect();
    for leaf in leaves {
        let path = folder.join(leaf);
        fs::create_dir_all(&path).map_err(|error| named(&error, "make", &path))?;
    }
    Ok(())
}

/// Writes all files on several threads until none is left or one has failed.
fn files(recipe: &DataRecipe, folder: &Path) -> io::Result<()> {
    let next = AtomicU64::new(1);
    let failed = AtomicBool::new(false);
    let problem: Mutex<Option<io::Error>> = Mutex::new(None);
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

fn file(recipe: &DataRecipe, folder: &Path, number: u64, buffer: &mut [u8]) -> io::Result<()> {
    let (below, name) = recipe.place(number);
    let parent = folder.join(below);
    let path = parent.join(&name);
    let written = write(recipe, number, &path, buffer);
    written.map_err(|error| named(&error, "write", &path))?;
    if number <= recipe.hard_links {
        let second = parent.join(format!("{name}.hard"));
        fs::hard_link(&path, &second).map_err(|error| named(&error, "link", &second))?;
    }
    if number <= recipe.symlinks {
        let link = parent.join(format!("{name}.sym"));
        std::os::unix::fs::symlink(&name, &link).map_err(|error| named(&error, "link", &link))?;
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

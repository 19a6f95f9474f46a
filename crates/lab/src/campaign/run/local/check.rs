//! Checks the result of a run: the files at the target by name, size and, for some of them, content.

use crate::campaign::RunCheck;
use crate::campaign::data::DataTotals;
use crate::campaign::files::{each_file, size, totals};
use crate::campaign::run::CheckResult;
use crate::campaign::run::order::SplitMix64;
use crate::results::CheckedFiles;
use hakobu_core::error::{PathError, quoted};
use hakobu_tree::compare::first_difference_of_files;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Checks the result of a run; `seed` selects the files to compare.
pub(super) fn check(check: &RunCheck, seed: u64) -> CheckResult {
    let result = match check {
        RunCheck::Exit => return CheckResult::default(),
        RunCheck::Tree { source, target, compare } => tree(source, target, *compare, seed),
        RunCheck::Count { target, files, bytes } => count(target, *files, *bytes),
    };
    let failed = |error: PathError| CheckResult { checked: None, problem: Some(error.into()) };
    result.unwrap_or_else(failed)
}

/// Regular files below a folder by relative name, with sizes in bytes.
type Files = BTreeMap<PathBuf, u64>;

fn files(folder: &Path) -> Result<Files, PathError> {
    let mut found = Files::new();
    each_file(folder, |file| {
        let name = file.strip_prefix(folder).unwrap_or(file);
        found.insert(name.to_owned(), size(file)?);
        Ok(true)
    })?;
    Ok(found)
}

/// Files of source and target under the same names. A single file may have been copied into a folder or to
/// another name.
fn sides(source: &Path, target: &Path) -> Result<[(PathBuf, Files); 2], PathError> {
    if !source.is_file() {
        return Ok([(source.to_owned(), files(source)?), (target.to_owned(), files(target)?)]);
    }
    let name = PathBuf::from(source.file_name().unwrap_or_default());
    let meta = source.metadata().map_err(PathError::of("access", source))?;
    let folder = source.parent().unwrap_or(source).to_owned();
    let wanted = (folder, Files::from([(name.clone(), meta.len())]));
    if target.is_dir() {
        return Ok([wanted, (target.to_owned(), files(target)?)]);
    }
    let found = match target.metadata() {
        // The name of a single file may differ.
        Ok(meta) => Files::from([(name, meta.len())]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Files::new(),
        Err(error) => return Err(PathError::of("access", target)(error)),
    };
    Ok([wanted, (target.to_owned(), found)])
}

fn tree(source: &Path, target: &Path, compare: u64, seed: u64) -> Result<CheckResult, PathError> {
    if !source.exists() {
        let problem = Some(format!("its source {} is gone", quoted(source)));
        return Ok(CheckResult { checked: None, problem });
    }
    if !target.exists() {
        let problem = Some(format!("there is no {}", quoted(target)));
        return Ok(CheckResult { checked: Some(CheckedFiles::default()), problem });
    }
    let [(source, wanted), (target, found)] = sides(source, target)?;
    let mut checked =
        CheckedFiles { files: found.len() as u64, bytes: found.values().sum(), compared: 0 };
    let mut problem = differences(&wanted, &found);
    if problem.is_none() {
        let mut names: Vec<&PathBuf> = wanted.keys().collect();
        SplitMix64::new(seed, 0).shuffle(&mut names);
        let compare = usize::try_from(compare).unwrap_or(usize::MAX);
        for name in names.into_iter().take(compare) {
            // A single file may be copied to another name.
            let to = if target.is_file() { target.clone() } else { target.join(name) };
            problem = differs(&source.join(name), &to, name);
            if problem.is_some() {
                break;
            }
            checked.compared += 1;
        }
    }
    Ok(CheckResult { checked: Some(checked), problem })
}

/// Difference in names and sizes, as a sentence.
fn differences(wanted: &Files, found: &Files) -> Option<String> {
    let mut lost = wanted.keys().filter(|name| !found.contains_key(*name));
    if let Some(first) = lost.next() {
        let count = lost.count() + 1;
        let all = wanted.len();
        return Some(format!("it lost {count} of {all} files, {} is one", quoted(first)));
    }
    for (name, bytes) in wanted {
        if let Some(other) = found.get(name).filter(|other| *other != bytes) {
            return Some(format!("{} has {other} bytes, not {bytes}", quoted(name)));
        }
    }
    let mut more = found.keys().filter(|name| !wanted.contains_key(*name));
    let first = more.next()?;
    let count = more.count() + 1;
    let files = if count == 1 { "file" } else { "files" };
    Some(format!("it wrote {count} {files} too many, {} is one", quoted(first)))
}

/// Position of the first difference, as a sentence.
fn differs(source: &Path, target: &Path, name: &Path) -> Option<String> {
    match first_difference_of_files(source, target) {
        Ok(None) => None,
        Ok(Some(at)) => Some(format!("{} differs from its source at byte {at}", quoted(name))),
        Err(error) => Some(PathError::of("compare", name)(error).into()),
    }
}

fn count(
    target: &Path,
    files_wanted: u64,
    bytes_wanted: Option<u64>,
) -> Result<CheckResult, PathError> {
    let found = if target.exists() { totals(target)? } else { DataTotals::default() };
    let DataTotals { files, bytes } = found;
    let checked = CheckedFiles { files, bytes, compared: 0 };
    let problem = if files != files_wanted {
        Some(format!("there are {files} files at the target, not {files_wanted}"))
    } else {
        let other = bytes_wanted.filter(|wanted| *wanted != bytes);
        other.map(|wanted| format!("there are {bytes} bytes at the target, not {wanted}"))
    };
    Ok(CheckResult { checked: Some(checked), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A length of several buffers.
    const PIECE: usize = 256 * 1024;

    fn dirs(name: &str) -> (PathBuf, PathBuf, PathBuf) {
        let dir = std::env::temp_dir().join(format!("hakobu-check-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let (source, target) = (dir.join("s"), dir.join("t"));
        for side in [&source, &target] {
            std::fs::create_dir_all(side.join("d")).unwrap();
            for number in 0..20 {
                std::fs::write(side.join(format!("d/{number}")), format!("content {number}"))
                    .unwrap();
            }
            std::fs::write(side.join("big"), vec![5; PIECE + 9]).unwrap();
        }
        (dir, source, target)
    }

    #[test]
    fn trees() {
        let (dir, source, target) = dirs("trees");
        let look = |compare, seed| {
            let (source, target) = (source.clone(), target.clone());
            check(&RunCheck::Tree { source, target, compare }, seed)
        };
        let problem = || look(100, 1).problem.unwrap_or_default();
        let good = look(100, 1);
        let bytes = PIECE as u64 + 9 + 10 * 9 + 10 * 10;
        let checked = Some(CheckedFiles { files: 21, bytes, compared: 21 });
        assert_eq!(good, CheckResult { checked, problem: None });
        assert_eq!(look(3, 1).checked.unwrap().compared, 3);

        let mut wrong = vec![5; PIECE + 9];
        wrong[PIECE + 2] = 6;
        std::fs::write(target.join("big"), &wrong).unwrap();
        assert_eq!(problem(), format!("'big' differs from its source at byte {}", PIECE + 2));
        // The seed alone selects the files to compare.
        let found = (0..200).filter(|seed| look(1, *seed).problem.is_some()).count();
        assert!((1..40).contains(&found), "{found}");
        assert_eq!(look(1, 5), look(1, 5));
        assert_eq!(look(0, 1).problem, None);
        std::fs::write(target.join("big"), "short").unwrap();
        assert_eq!(problem(), format!("'big' has 5 bytes, not {}", PIECE + 9));
        std::fs::write(target.join("big"), vec![5; PIECE + 9]).unwrap();

        std::fs::write(target.join("d/more"), "").unwrap();
        assert_eq!(problem(), "it wrote 1 file too many, 'd/more' is one");
        std::fs::remove_file(target.join("d/7")).unwrap();
        std::fs::remove_file(target.join("d/8")).unwrap();
        assert_eq!(problem(), "it lost 2 of 21 files, 'd/7' is one");
        std::fs::remove_dir_all(&target).unwrap();
        assert_eq!(problem(), format!("there is no {}", quoted(&target)));
        std::fs::remove_dir_all(&source).unwrap();
        assert!(problem().ends_with("is gone"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn single_files() {
        let (dir, source, target) = dirs("single");
        let look = |target: &Path| {
            let check_it = RunCheck::Tree {
                source: source.join("big"),
                target: target.to_owned(),
                compare: 9,
            };
            check(&check_it, 0)
        };
        std::fs::remove_dir_all(target.join("d")).unwrap();
        assert_eq!(look(&target).problem, None);
        std::fs::rename(target.join("big"), target.join("other")).unwrap();
        let result = look(&target.join("other"));
        assert_eq!((result.problem, result.checked.unwrap().compared), (None, 1));
        assert_eq!(look(&target).problem.unwrap(), "it lost 1 of 1 files, 'big' is one");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn counts() {
        let (dir, _, target) = dirs("counts");
        let look = |files, bytes| {
            check(&RunCheck::Count { target: target.clone(), files, bytes }, 0).problem
        };
        let bytes = PIECE as u64 + 9 + 10 * 9 + 10 * 10;
        assert_eq!((look(21, None), look(21, Some(bytes))), (None, None));
        assert_eq!(look(20, None).unwrap(), "there are 21 files at the target, not 20");
        assert!(look(21, Some(1)).unwrap().ends_with("bytes at the target, not 1"));
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(look(1, None).unwrap(), "there are 0 files at the target, not 1");
        assert_eq!(check(&RunCheck::Exit, 0), CheckResult::default());
    }
}

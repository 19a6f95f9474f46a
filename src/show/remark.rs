//! Messages about entries besides their lines, in rsync's words: `--info=backup`, `--info=skip` and `--debug=filter`.

use super::escape::Escape;
use hakobu_core::event::{Remark, Skip};
use hakobu_core::unit::Kind;
use std::os::unix::ffi::OsStrExt;

/// Appends a message as a line.
pub fn push(remark: &Remark<'_>, escape: Escape, out: &mut Vec<u8>) {
    match remark {
        Remark::BackedUp { path, backup } => {
            out.extend_from_slice(b"backed up ");
            escape.push(path.as_os_str().as_bytes(), out);
            out.extend_from_slice(b" to ");
            escape.push(backup.as_os_str().as_bytes(), out);
        }
        Remark::Made { path, dirs } => {
            let words = match dirs {
                None => "created directory ".to_owned(),
                Some(1) => "created 1 directory for ".to_owned(),
                Some(dirs) => format!("created {dirs} directories for "),
            };
            out.extend_from_slice(words.as_bytes());
            let path = path.as_os_str().as_bytes();
            escape.push(path.strip_suffix(b"/").unwrap_or(path), out);
        }
        Remark::Skipped { path, kind, why: Skip::NotExisting } => {
            let kind = if *kind == Kind::Dir { "directory" } else { "file" };
            out.extend_from_slice(format!("not creating new {kind} \"").as_bytes());
            escape.push(path.as_os_str().as_bytes(), out);
            out.push(b'"');
        }
        Remark::Filtered { path, is_dir, at_target, include, pattern, list } => {
            let done = match (at_target, include) {
                (false, false) => "[sender] hiding",
                (false, true) => "[sender] showing",
                (true, false) => "[generator] protecting",
                (true, true) => "[generator] risking",
            };
            let kind = if *is_dir { "directory" } else { "file" };
            out.extend_from_slice(format!("{done} {kind} ").as_bytes());
            escape.push(path.as_os_str().as_bytes(), out);
            out.extend_from_slice(b" because of pattern ");
            match pattern {
                Some(pattern) => escape.push(pattern, out),
                None => out.extend_from_slice(b"<rule from a file read earlier>"),
            }
            if let Some(list) = list {
                out.extend_from_slice(b" [");
                escape.push(list, out);
                out.push(b']');
            }
        }
        Remark::Skipped { path, why, .. } => {
            escape.push(path.as_os_str().as_bytes(), out);
            let words = match why {
                Skip::NotExisting | Skip::Existing => " exists",
                Skip::Newer => " is newer",
                Skip::TooLarge => " is over max-size",
                Skip::TooSmall => " is under min-size",
            };
            out.extend_from_slice(words.as_bytes());
        }
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn remarks() {
        let path = Path::new("d/a");
        let mut out = Vec::new();
        for remark in [
            Remark::Made { path: Path::new("x/d/"), dirs: None },
            Remark::Made { path: Path::new("d"), dirs: Some(1) },
            Remark::Made { path: Path::new("x/d"), dirs: Some(2) },
            Remark::BackedUp { path, backup: "../old/d/a~".into() },
            Remark::Skipped { path, kind: Kind::Dir, why: Skip::NotExisting },
            Remark::Skipped { path, kind: Kind::File, why: Skip::NotExisting },
            Remark::Skipped { path, kind: Kind::File, why: Skip::Existing },
            Remark::Skipped { path, kind: Kind::File, why: Skip::Newer },
            Remark::Skipped { path, kind: Kind::File, why: Skip::TooLarge },
            Remark::Skipped { path: Path::new("x\n"), kind: Kind::File, why: Skip::TooSmall },
            Remark::Filtered {
                path,
                is_dir: false,
                at_target: false,
                include: false,
                pattern: Some(b"a\x01"),
                list: None,
            },
            Remark::Filtered {
                path: Path::new("d"),
                is_dir: true,
                at_target: true,
                include: true,
                pattern: None,
                list: Some(b"per-dir .rules"),
            },
        ] {
            push(&remark, Escape::Utf8, &mut out);
        }
        let text = "created directory x/d\ncreated 1 directory for d\ncreated 2 directories for x/d\n\
                    backed up d/a to ../old/d/a~\nnot creating new directory \"d/a\"\n\
                    not creating new file \"d/a\"\nd/a exists\nd/a is newer\nd/a is over max-size\n\
                    x\\#012 is under min-size\n\
                    [sender] hiding file d/a because of pattern a\\#001\n\
                    [generator] risking directory d because of pattern <rule from a file read earlier> [per-dir .rules]\n";
        assert_eq!(String::from_utf8_lossy(&out), text);
    }
}

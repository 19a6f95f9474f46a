//! Symlinks that point out of the tree.

/// Returns whether the text of a symlink points out of the transferred tree (rsync(1), `--safe-links`,
/// `--copy-unsafe-links`): absolute, empty, or with more `..` than the link's depth. `path` is the link's own path in
/// the transfer.
pub fn is_unsafe_link(text: &[u8], path: &[u8]) -> bool {
    if text.is_empty() || text.starts_with(b"/") {
        return true;
    }
    let deep = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut depth = deep.count() as i64 - 1;
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'/').collect();
    let mut named = false;
    for part in &parts {
        match *part {
            b"" | b"." => {}
            b".." => {
                // rsync distrusts `..` after a name: that name may itself be a symlink.
                if named {
                    return true;
                }
                depth -= 1;
                if depth < 0 {
                    return true;
                }
            }
            _ => {
                named = true;
                depth += 1;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_unsafe_link;

    #[test]
    fn links_that_lead_out_are_unsafe() {
        let cases: [(&[u8], &[u8], bool); 9] = [
            (b"x", b"link", false),
            (b"/etc/passwd", b"link", true),
            (b"", b"link", true),
            (b"../x", b"link", true),
            (b"../x", b"a/link", false),
            (b"../../x", b"a/link", true),
            (b"../../x", b"a/b/link", false),
            (b"b/../../x", b"a/link", true),
            (b"./x/y", b"link", false),
        ];
        for (text, path, unsafe_) in cases {
            assert_eq!(is_unsafe_link(text, path), unsafe_, "{text:?} at {path:?}");
        }
    }
}

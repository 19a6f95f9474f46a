//! Filter rules: those of options, and those of files in the tree.

use hakobu_transfer::policy::filter::{FilterBuilder, Origin};

/// Names of a small tree that the rules are asked about.
const NAMES: &[&[u8]] = &[b"a", b"a/b", b"a/b/c.o", b".rsync-filter", b"a/[x]*?", b"sp ace\n/\xff"];

/// The first byte picks options; up to the first NUL stand rules of options, one a line; after it
/// the content of every per-directory file. Rules are refused with a message or say the same of an
/// entry each time that they are asked.
pub fn check(data: &[u8]) {
    let Some((&options, data)) = data.split_first() else { return };
    let (rules, file) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &b""[..]),
    };
    let mut builder = FilterBuilder::default();
    builder.delete_excluded(options & 1 != 0);
    builder.from0(options & 2 != 0);
    if options & 4 != 0 {
        builder.cvs_exclude();
        builder.cvs_ignores(Some(file), Some(rules));
    }
    if options & 8 != 0 {
        builder.per_directory().expect("the rules are fixed");
    }
    let added = match options >> 4 & 3 {
        0 => rules.split(|byte| *byte == b'\n').try_for_each(|rule| builder.rule(rule)),
        1 => rules.split(|byte| *byte == b'\n').try_for_each(|rule| builder.exclude(rule)),
        2 => builder.include_from(rules, "rules", options & 2 != 0),
        _ => builder.exclude_from(rules, "rules", options & 2 != 0),
    };
    if let Err(error) = added {
        assert!(!error.to_string().is_empty());
        return;
    }
    let mut merged = 0;
    let mut merge = |_: &[u8]| {
        merged += 1;
        if merged < 50 { Ok(file.to_vec()) } else { Ok(Vec::new()) }
    };
    let filter = match builder.build(&mut merge) {
        Ok(filter) => filter,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let origin = Origin { source: b"/from/here", target: b"/to/there", first: b"" };
    // Files that merge each other end at a bound of their own; all the way there takes long.
    let mut files = 0;
    let mut read = |_: &[u8]| {
        files += 1;
        Ok((!file.is_empty() && files < 50).then(|| file.to_vec()))
    };
    let Ok(root) = filter.root(&origin, &mut read) else { return };
    let Ok(top) = filter.enter(&root, b"", &mut read) else { return };
    let Ok(below) = filter.enter(&top, b"a", &mut read) else { return };
    for rules in [&root, &top, &below] {
        for name in NAMES {
            for (is_dir, deleted) in [(false, false), (true, false), (true, true)] {
                let said = filter.check(rules, name, is_dir, deleted);
                assert_eq!(said, filter.check(rules, name, is_dir, deleted));
            }
        }
    }
}

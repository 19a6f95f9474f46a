//! Lines of a run file.

#[allow(dead_code, unused_imports)]
#[path = "../../src/commands/run/lines.rs"]
mod lines;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// A line is refused or split into words that are not longer than itself; words that are quoted
/// again are the same words; translating adds none, and
/// drops only conditions of copies that another one decides.
pub fn check(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(words) = lines::words(line) else { continue };
        let bytes: usize = words.iter().map(|word| word.len()).sum();
        assert!(bytes <= line.len() && words.len() <= line.len());
        let mut quoted = Vec::new();
        for word in &words {
            quoted.extend_from_slice(b" '");
            for byte in word.as_bytes() {
                match byte {
                    b'\'' => quoted.extend_from_slice(b"'\\''"),
                    other => quoted.push(*other),
                }
            }
            quoted.push(b'\'');
        }
        assert_eq!(lines::words(&quoted).as_ref(), Ok(&words));
        let count = words.len();
        let conditions =
            ["-n", "--no-clobber", "-no-clobber", "-s", "--if-size-differ", "-if-size-differ"];
        // A switch may have a value, which may switch it off (`-u=0`).
        let is_switch = |word: &OsString| {
            let parts = word.to_str().and_then(|text| text.strip_prefix('-')?.split_once('='));
            let values = ["1", "t", "true", "0", "f", "false"];
            parts.is_some_and(|(_, value)| values.contains(&&*value.to_ascii_lowercase()))
        };
        let is_droppable =
            |word: &OsString| conditions.iter().any(|one| word == one) || is_switch(word);
        let least = words.iter().filter(|word| !is_droppable(word)).count();
        // `-p -n 5` may become `-p 5`: the -p of cp before a file, which would be the part size of s5cmd if it were
        // read again.
        let joins = words
            .windows(2)
            .any(|pair| (pair[0] == "-c" || pair[0] == "-p") && is_droppable(&pair[1]));
        let told = lines::translated(words);
        assert!((least..=count).contains(&told.len()));
        if !joins {
            assert_eq!(lines::translated(told.clone()), told, "translated twice");
        }
    }
}

//! Changes to mode bits in the syntax of chmod(1) and rsync (`--chmod=D755,Fu=rw,go-w`).
//!
//! The syntax is that of rsync(1), `--chmod`: comma-separated clauses, each with an optional `D` (directories only)
//! or `F` (everything else), then an octal mode or `[ugoa]*[-+=]` with letters of `rwxXst` or one of `ugo` to copy
//! from.

use std::fmt;

const READ: u32 = 0o444;
const WRITE: u32 = 0o222;
const EXECUTE: u32 = 0o111;
const STICKY: u32 = 0o1000;
const ALL: u32 = 0o7777;

/// Parsed rules, applied in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChmodRules {
    clauses: Vec<Clause>,
}

/// Reason that a `--chmod` value is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChmodError {
    clause: String,
}

impl fmt::Display for ChmodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a change of mode bits", self.clause)
    }
}

impl std::error::Error for ChmodError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Add,
    Remove,
    Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bits {
    /// Octal digits or letters: fixed bits, and those that `X` adds if the entry is a directory or executable for any
    /// class.
    Given { fixed: u32, conditional: u32 },
    /// The bits of one class (its shift), copied to all classes as far as `mask` allows.
    Copied { from: u32, mask: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clause {
    /// It concerns directories only (`true`), or everything else.
    dirs: Option<bool>,
    op: Op,
    bits: Bits,
    /// Bits that `=` clears first.
    clear: u32,
}

impl ChmodRules {
    /// Parses one `--chmod` value and appends it. `umask` masks bits where a clause names no class, as in chmod(1).
    ///
    /// # Errors
    /// The first invalid clause.
    pub fn add(&mut self, text: &str, umask: u32) -> Result<(), ChmodError> {
        for clause in text.split(',') {
            let parsed =
                parse(clause, umask).ok_or_else(|| ChmodError { clause: clause.to_owned() })?;
            self.clauses.push(parsed);
        }
        Ok(())
    }

    /// Returns the changed mode of an entry.
    pub fn apply(&self, mode: u32, is_dir: bool) -> u32 {
        // `X` refers to the original mode, not to the result of earlier clauses.
        let executable = is_dir || mode & EXECUTE != 0;
        let concerned = self.clauses.iter().filter(|c| c.dirs.is_none_or(|dirs| dirs == is_dir));
        concerned.fold(mode & ALL, |new, clause| clause.apply(new, executable))
    }
}

impl Clause {
    fn apply(&self, mode: u32, executable: bool) -> u32 {
        let bits = match self.bits {
            Bits::Given { fixed, conditional } => fixed | if executable { conditional } else { 0 },
            Bits::Copied { from, mask } => (((mode >> from) & 7) * EXECUTE) & mask,
        };
        match self.op {
            Op::Add => mode | bits,
            Op::Remove => mode & !bits,
            Op::Set => (mode & !self.clear) | bits,
        }
    }
}

fn parse(clause: &str, umask: u32) -> Option<Clause> {
    let (dirs, rest) = match clause.as_bytes().first()? {
        b'D' => (Some(true), &clause[1..]),
        b'F' => (Some(false), &clause[1..]),
        _ => (None, clause),
    };
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        // All twelve bits.
        let fixed = u32::from_str_radix(rest, 8).ok().filter(|mode| *mode <= ALL)?;
        let bits = Bits::Given { fixed, conditional: 0 };
        return Some(Clause { dirs, op: Op::Set, bits, clear: ALL });
    }
    let (op, bits, clear) = parse_letters(rest, umask)?;
    Some(Clause { dirs, op, bits, clear })
}

fn parse_letters(text: &str, umask: u32) -> Option<(Op, Bits, u32)> {
    let at = text.find(['+', '-', '='])?;
    let (classes, rest) = text.split_at(at);
    let mut chars = rest.chars();
    let op = match chars.next()? {
        '+' => Op::Add,
        '-' => Op::Remove,
        _ => Op::Set,
    };
    // `to` has the execute bit of every class; `own` its setuid or setgid bit.
    let (mut to, mut own) = (0, 0);
    for class in classes.chars() {
        let (class_to, class_own) = match class {
            'u' => (0o100, 0o4000),
            'g' => (0o010, 0o2000),
            'o' => (0o001, 0),
            'a' => (0o111, 0o6000),
            _ => return None,
        };
        to |= class_to;
        own |= class_own;
    }
    let allowed = if to == 0 { !umask } else { ALL };
    if to == 0 {
        to = EXECUTE;
    }
    let mask = (to * 7) & allowed;
    let letters = chars.as_str();
    if let Some(from) = ["o", "g", "u"].iter().position(|class| *class == letters) {
        // The sticky bit belongs to others here; a clause without a class selects all.
        let special = match classes {
            "" => own | 0o7000,
            _ if classes.contains(['o', 'a']) => own | STICKY,
            _ => own,
        };
        let from = 3 * from as u32;
        return Some((op, Bits::Copied { from, mask }, (to * 7) | special));
    }
    let (mut fixed, mut conditional, mut special) = (0, 0, 0);
    for letter in letters.chars() {
        match letter {
            'r' => fixed |= READ & mask,
            'w' => fixed |= WRITE & mask,
            'x' => fixed |= EXECUTE & mask,
            'X' => conditional = EXECUTE & mask,
            's' => special |= if own == 0 { 0o4000 } else { own },
            't' => special |= STICKY,
            _ => return None,
        }
    }
    // `u=rw` keeps a setuid bit; it is only cleared if the clause mentions such bits.
    let clear = (to * 7) | if special != 0 { own } else { 0 };
    Some((op, Bits::Given { fixed: fixed | special, conditional }, clear))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(text: &str, umask: u32, mode: u32, is_dir: bool) -> Option<u32> {
        let mut rules = ChmodRules::default();
        rules.add(text, umask).ok()?;
        Some(rules.apply(mode, is_dir))
    }

    /// Rule, mode of a file, and the mode that rsync 3.5.0 sets.
    #[test]
    fn special_bits_belong_to_classes() {
        for (rule, before, after) in [
            ("o=u", 0o1644, 0o646),
            ("o=u", 0o7777, 0o6777),
            ("u=o", 0o7777, 0o3777),
            ("g=u", 0o7777, 0o5777),
            ("a=u", 0o7777, 0o777),
            ("=u", 0o7777, 0o755),
            ("=u", 0o1644, 0o644),
            ("ug=o", 0o7777, 0o1777),
            ("o=rx", 0o7777, 0o7775),
            ("a=rx", 0o7777, 0o7555),
        ] {
            assert_eq!(apply(rule, 0o022, before, false), Some(after), "{rule} {before:o}");
        }
    }

    /// Rule, and the modes that rsync 3.5.0 sets on a file 0640 and a directory 0750, umask 022.
    const RSYNC_022: &[(&str, u32, u32)] = &[
        ("D755", 0o640, 0o755),
        ("F644", 0o644, 0o750),
        ("Fu=rw,go-w", 0o640, 0o750),
        ("D2750,F640", 0o640, 0o2750),
        ("u=g", 0o440, 0o550),
        ("g=u", 0o660, 0o770),
        ("go=u", 0o666, 0o777),
        ("a+X", 0o640, 0o751),
        ("+w", 0o640, 0o750),
        ("-w", 0o440, 0o550),
        ("=r", 0o444, 0o444),
        ("u+s", 0o4640, 0o4750),
        ("g+s", 0o2640, 0o2750),
        ("+t", 0o1640, 0o1750),
        ("u=rwxs,g=rXs", 0o6740, 0o6750),
        ("o=t", 0o1640, 0o1750),
        ("Du+s", 0o640, 0o4750),
        ("0644", 0o644, 0o644),
        ("7777", 0o7777, 0o7777),
        ("F+x", 0o751, 0o750),
        ("Fg+w,Do-rx", 0o660, 0o750),
        ("D+x,F-x", 0o640, 0o751),
        ("go=", 0o600, 0o700),
        ("a=", 0, 0),
        ("u-X,g+X", 0o640, 0o650),
        ("Dg+s,Dg-x", 0o640, 0o2740),
        ("o+s", 0o4640, 0o4750),
        ("u=rwX,go=rX", 0o644, 0o755),
        ("g=rwx,u=g,o=u", 0o777, 0o777),
    ];

    /// The same for a file 7755 and a directory 7770, umask 027.
    const RSYNC_027: &[(&str, u32, u32)] = &[
        ("=r", 0o7440, 0o7440),
        ("-r", 0o7315, 0o7330),
        ("+w", 0o7755, 0o7770),
        ("-w", 0o7555, 0o7570),
        ("=", 0o7000, 0o7000),
        ("u=", 0o7055, 0o7070),
        ("u-s", 0o3755, 0o3770),
        ("g-s", 0o5755, 0o5770),
        ("o-s", 0o3755, 0o3770),
        ("a-s", 0o1755, 0o1770),
        ("-s", 0o3755, 0o3770),
        ("u=rw", 0o7655, 0o7670),
        ("g=rx", 0o7755, 0o7750),
        ("o=x", 0o7751, 0o7771),
        ("=x", 0o7110, 0o7110),
        ("g+u", 0o7775, 0o7770),
        ("g-u", 0o7705, 0o7700),
        ("-t", 0o6755, 0o6770),
        ("g=t", 0o5705, 0o5700),
        ("a=t", 0o1000, 0o1000),
        ("go=t", 0o5700, 0o5700),
        ("=t", 0o7000, 0o7000),
        ("a=s", 0o7000, 0o7000),
        ("755", 0o755, 0o755),
        ("u+", 0o7755, 0o7770),
        ("u=X", 0o7155, 0o7170),
        ("go=X", 0o7711, 0o7711),
        ("u=o", 0o3555, 0o3070),
        ("aug+r", 0o7755, 0o7774),
        ("o+g", 0o7755, 0o7777),
    ];

    #[test]
    fn as_rsync() {
        for (text, file, dir) in RSYNC_022 {
            assert_eq!(apply(text, 0o022, 0o640, false), Some(*file), "{text}");
            assert_eq!(apply(text, 0o022, 0o750, true), Some(*dir), "{text}");
        }
        for (text, file, dir) in RSYNC_027 {
            assert_eq!(apply(text, 0o027, 0o7755, false), Some(*file), "{text}");
            assert_eq!(apply(text, 0o027, 0o7770, true), Some(*dir), "{text}");
        }
    }

    #[test]
    fn refused() {
        for text in
            "X||,|F|D|8|17777|u+rwx,|u+w-r|ug-r=x|u=rw g=r|g=uw|u=go|D+S|Du|ä+x|u+ä".split('|')
        {
            assert_eq!(apply(text, 0o022, 0o644, false), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text: String, mode in 0u32..0o10000, umask in 0u32..0o1000) {
            if let Some(changed) = apply(&text, umask, mode, false) {
                proptest::prop_assert!(changed <= ALL);
            }
        }

        #[test]
        fn a_rule_applied_twice_is_applied_once(
            text in "[DF]?[ugoa]{0,3}[-+=][rwxst]{0,4}", mode in 0u32..0o10000, is_dir: bool,
        ) {
            let mut rules = ChmodRules::default();
            proptest::prop_assert!(rules.add(&text, 0o022).is_ok());
            let once = rules.apply(mode, is_dir);
            proptest::prop_assert_eq!(rules.apply(once, is_dir), once);
        }
    }
}

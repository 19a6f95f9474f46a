//! The command line of `hakobu io`: the rows of the reader of options and job files, which also gives them their meaning.

use crate::cli::{self, Block, OptArg, Row, Table, Takes};
use hakobu_io::spec::{self, GROUPS, IoOption, REFUSED, REMOVED};
use std::sync::LazyLock;

/// An option as it was typed, and its value.
pub type Word = (String, Option<String>);

/// The command line of `io`.
pub static TABLE: Table<Vec<Word>> = Table {
    command: "io",
    about: "Measure a disk, a file system or the page cache, with fio's options and job files",
    description: "--name begins a job; options before the first --name apply to all jobs, and \
            without --name the options define one job. Where a comma has no other meaning, \
            an option takes a list (--numjobs 1,2,4..128), and each combination is measured. \
            Files that were not laid out here, and devices, are written only with \
            --allow-overwrite.",
    usage: "hakobu io [OPTIONS] [JOBFILE]...",
    examples: &[
        (
            "hakobu io --name=a --rw=randread --bs=4k --size=4m --numjobs=2",
            "Measure random reads of two jobs.",
        ),
        (
            "hakobu io --rw=randread --size=4m --runtime=1 --time_based --numjobs=1,2",
            "Measure each number of jobs.",
        ),
        ("hakobu io job.fio", "Run a job file of fio."),
    ],
    common: &[
        "name",
        "rw",
        "bs",
        "size",
        "numjobs",
        "iodepth",
        "ioengine",
        "direct",
        "filename",
        "directory",
        "runtime",
        "time_based",
        "output-format",
    ],
    after: "JOBFILE may be - for standard input. SIZE is a number with k, m, g, t or p (of \
            1024; kib, mib, ... of 1000); TIME is a number with us, ms, s, m, h or d; BOOL \
            is 1 or 0. --sweep gives lists for all options.\n\
            hakobu help io-guide lists every option with its default, and the differences \
            from fio.\n\
            Exit codes: 0 done, 1 a job failed, 2 usage, 130 stopped by a signal (the \
            measurements so far are reported).",
    options: &[&IoOptions],
    unbuilt: &[REFUSED, REMOVED],
    abbreviates: false,
};

/// All options, handed on as they were typed.
struct IoOptions;

/// Their rows, each with its title in the help.
static ROWS: LazyLock<Vec<(&'static str, Row)>> = LazyLock::new(|| {
    let of_group = |group: &'static spec::OptionGroup| {
        group.options.iter().map(|option| (group.title, row(option)))
    };
    GROUPS.iter().flat_map(of_group).collect()
});

impl Block<Vec<Word>> for IoOptions {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        ROWS.iter().map(|(title, row)| (*title, row)).collect()
    }

    fn set(&self, words: &mut Vec<Word>, given: &OptArg) -> Option<Result<(), String>> {
        let (_, row) = ROWS.iter().find(|(_, row)| row.name == given.name)?;
        Some(given.text().map(|text| {
            words.push((row.name.to_owned(), (!text.is_empty()).then(|| text.to_owned())));
        }))
    }
}

fn row(option: &'static IoOption) -> Row {
    let takes = match (option.takes, option.repeats) {
        (spec::Takes::Value, true) => Takes::Values(option.what),
        (spec::Takes::Value, false) => Takes::Value(option.what),
        (spec::Takes::Mark | spec::Takes::Text, _) => Takes::PerhapsValues(option.what),
        (spec::Takes::Switch, _) => Takes::Nothing,
    };
    let aliases = match option.listed == option.name {
        true => option.aliases,
        false => std::slice::from_ref(&option.name),
    };
    cli::flag(option.listed, None, option.help).alias(aliases).takes(takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_io::spec::{Effect, System, read};
    use std::ffi::OsString;

    /// Reads a command line to its end.
    fn typed(line: &str) -> Result<Vec<(String, Option<String>)>, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match TABLE.parse(&words) {
            Ok(typed) => TABLE.read(&typed, Vec::new()),
            Err(crate::cli::Refused::Usage(message)) => Err(message),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn every_option_is_in_the_table_with_all_its_names() {
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        let rows: Vec<Vec<&str>> =
            TABLE.rows().map(|row| sorted([&[row.name], row.aliases].concat())).collect();
        for option in spec::options() {
            let names = sorted([&[option.name], option.aliases].concat());
            assert!(rows.contains(&names), "{names:?} is not in the table");
        }
        assert_eq!(rows.len(), spec::options().count());
        let all: Vec<&str> = sorted(rows.concat());
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    }

    #[test]
    fn each_option_is_read_as_it_stands() {
        for (line, expected) in [
            ("--bs 4k --bs=8k", "bs=4k bs=8k"),
            ("--name a --rw=read --name=b --readwrite write", "name=a rw=read name=b rw=write"),
            ("--time_based --runtime 3 --time_based=0", "time_based runtime=3 time_based=0"),
            ("--strict --output-format json+", "strict output-format=json+"),
            ("--write_bw_log --write_lat_log=x", "write_bw_log write_lat_log=x"),
            ("--group_reporting --numjobs 1,2..8", "group_reporting numjobs=1,2..8"),
            ("--sweep bs=4k..1m --sweep rw=read,write", "sweep=bs=4k..1m sweep=rw=read,write"),
            ("--num 1", ""),
            ("--bssplit=4k/50", "bssplit=4k/50"),
            ("-rw=read", ""),
        ] {
            let found = typed(line).unwrap_or_default();
            let found = found.iter().map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => name.clone(),
            });
            assert_eq!(found.collect::<Vec<_>>().join(" "), expected, "{line}");
        }
    }

    #[test]
    fn what_is_fios_and_not_ours_is_named() {
        for (line, expected) in [
            ("--minimal", "--minimal is not supported"),
            ("--client=host", "--client is not supported"),
            ("--nosuch", "unexpected argument '--nosuch'"),
        ] {
            let message = typed(line).err().unwrap_or_default();
            assert!(message.starts_with(expected), "{line}: {message}");
        }
    }

    #[test]
    fn what_is_always_so_is_taken() {
        for option in spec::options() {
            let Effect::Only(values) = option.effect else { continue };
            let line = format!("--name=x --size=1m --{}={}", option.name, values[0]);
            let arguments = typed(&line).unwrap();
            assert!(read(&arguments, &[], &System).is_ok(), "{line}");
        }
    }
}

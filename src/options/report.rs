//! The options of `hakobu report`.

use super::{Opt, Table, value};

/// The command line of `report`.
pub const TABLE: Table = Table {
    command: "report",
    about: "Make a page, an article or a table of what campaigns found",
    usage: "hakobu report [OPTIONS] RESULT...",
    after: "RESULT is a folder of results, as bench makes them (results.jsonl, samples.jsonl). \
            Several stand side by side: the same campaign on other machines or with other settings.\n\
            html is one file that loads nothing and says everything without scripts; md is for an \
            article or an issue; csv has the raw runs, json the analysis, svg the pictures. CSV and \
            JSON are the same in every language. docs/report.md describes them.\n\
            Exit codes: 0; 1 a result could not be read, or the report not be written; 2 usage.",
    options: &[OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

const OPTIONS: &[Opt] = &[
    value("output", Some('o'), "FILE", "write to FILE, not to standard output (also: -)"),
    value(
        "format",
        None,
        "FORMAT",
        "html, md, csv, json or svg (default: as the name of FILE ends; md without FILE)",
    ),
    value("lang", None, "LANG", "language of the text: en (default) or ja"),
];

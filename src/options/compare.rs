//! The options of `hakobu compare`.

use super::{Opt, Table, Takes, flag, value};

/// The command line of `compare`.
pub const TABLE: Table = Table {
    command: "compare",
    about: "Hold results of several machines or settings against each other, with what they cost",
    usage: "hakobu compare [OPTIONS] [NAME=]RESULT [NAME=]RESULT...",
    after: "RESULT is a folder of results, or the name of one as `hakobu results ls` shows it; NAME is \
            what to call it (default: its machine). The first is what the others are held against.\n\
            Settings are the same where group, tool and parameters are. Said are: which one for which \
            need, which conclusions change between them, medians with intervals beside means, ratios \
            with intervals, and what it costs.\n\
            --price and --rated name a result as it is called, or by a letter: A is the first.\n\
            Without -o it is a table for the terminal. csv has a line for each setting of each result, \
            json everything; both are the same in every language. docs/compare.md describes it.\n\
            Exit codes: 0; 1 a result could not be read, or the output not be written; 2 usage.",
    options: &[OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

const OPTIONS: &[Opt] = &[
    value("price", None, "NAME=PRICE/h", "what one costs: A=0.366/h (also /s, /min, /day, /month)")
        .takes(Takes::Values("NAME=PRICE/h")),
    value(
        "rated",
        None,
        "NAME=IOPS",
        "the IOPS that one is sold with: A=206250, or of reads and of writes: A=206250/18750",
    )
    .takes(Takes::Values("NAME=IOPS")),
    value(
        "output",
        Some('o'),
        "FILE",
        "write to FILE (its name ends in .html, .md, .csv or .json)",
    ),
    value(
        "format",
        None,
        "FORMAT",
        "html, md, csv or json, whatever FILE is called; without FILE to standard output",
    ),
    value("lang", None, "LANG", "language of the text: en (default) or ja"),
    flag("no-color", None, "without colours"),
];

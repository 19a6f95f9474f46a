//! The options of `hakobu results`.

use super::{Opt, Table, flag, value};

/// The command line of `results`.
pub const TABLE: Table = Table {
    command: "results",
    about: "List, show, remove, import and export what bench measured",
    usage: "hakobu results ls [DIR]\n       \
            hakobu results show [RESULT]\n       \
            hakobu results rm [-f] RESULT...\n       \
            hakobu results import [OPTIONS] FILE...\n       \
            hakobu results export [OPTIONS] [RESULT]",
    after: "RESULT is a folder of results, or the name of one as ls shows it; without one, the \
            newest. ls lists those in DIR (default: where bench puts them).\n\
            import makes a folder of the JSON that hyperfine or fio wrote; several files of one \
            program are one campaign.\n\
            rm asks before it removes, unless -f is given, and removes nothing but folders of results.\n\
            Exit codes: 0 done, 1 something could not be done, 2 usage.",
    options: &[OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

const OPTIONS: &[Opt] = &[
    flag("force", Some('f'), "rm: do not ask"),
    value(
        "format",
        None,
        "FORMAT",
        "export: csv (a line for each run, the default) or hyperfine (its JSON)",
    ),
    value("output", Some('o'), "PATH", "export: the file; import: the folder"),
    value("name", Some('n'), "NAME", "import: what to call it (default: the first file's name)"),
    flag("no-color", None, "show: without colours"),
];

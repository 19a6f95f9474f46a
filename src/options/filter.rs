//! The options of filter rules, which `sync` and `verify` share.

use super::{Opt, Takes, flag, value};

const FILTER: &str = "Filters";

/// In the order of the help.
pub const OPTIONS: &[Opt] = &[
    value("filter", Some('f'), "RULE", "add a filter rule")
        .takes(Takes::Values("RULE"))
        .in_group(FILTER),
    value("exclude", None, "PATTERN", "leave out what matches")
        .takes(Takes::Values("PATTERN"))
        .in_group(FILTER),
    value("include", None, "PATTERN", "do not leave out what matches")
        .takes(Takes::Values("PATTERN"))
        .in_group(FILTER),
    value("exclude-from", None, "FILE", "read exclude patterns ('-': standard input)")
        .takes(Takes::Values("FILE"))
        .in_group(FILTER),
    value("include-from", None, "FILE", "read include patterns ('-': standard input)")
        .takes(Takes::Values("FILE"))
        .in_group(FILTER),
    flag("F", Some('F'), "per-directory .rsync-filter files")
        .short_only()
        .takes(Takes::Marks)
        .in_group(FILTER),
    flag("cvs-exclude", Some('C'), "leave out what CVS would").in_group(FILTER),
    flag("from0", Some('0'), "names, patterns and rules in files end with NUL")
        .off(&["no-from0"])
        .in_group(FILTER),
];

//! The options of `hakobu ls`: the names and meanings of ls(1), and hakobu's own.

use super::columns;
use crate::filters::{self, ArgumentFilters, Filters};
use crate::objects::{self, ObjectArgs};
use crate::options::{JSON, Opt, Table, flag, parts};
use crate::show::escape::Escape;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::policy::filter::Filter;
use std::ffi::OsString;
use std::sync::Arc;

/// The command line of `ls`.
pub static TABLE: Table<Plan> = Table {
    command: "ls",
    about: "List directories and files",
    usage: "hakobu ls [OPTIONS] [PATH]...",
    after: "Names are sorted by their bytes, as ls does in the C locale. Of -t, -S and -U, of \
            -l, -1 and -C, and of -q and -N the last one counts.\n\
            Exit codes: 0 done, 1 an entry could not be listed, 2 an argument could not be \
            listed, or usage.",
    options: &[
        &OPTIONS,
        &objects::STORE,
        &objects::ACCEPTED,
        &objects::DEBUG,
        &objects::RAW,
        &objects::ALL_VERSIONS,
        &objects::STAT,
        &filters::CHOSEN,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// Format of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Byte for byte.
    #[default]
    Literal,
    /// A question mark for each unprintable character.
    Marked(Escape),
    /// Quoted if a shell requires it.
    Quoted(Escape),
}

/// Format of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Lines,
    Columns,
    Long,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Name,
    Newest,
    Largest,
    AsRead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hidden {
    #[default]
    No,
    /// All except `.` and `..`.
    Almost,
    All,
}

/// Type indicator after a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sign {
    #[default]
    None,
    Slash,
    All,
}

/// The parsed command line.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub(super) form: Form,
    /// `-l` itself was given.
    pub(super) long: bool,
    pub(super) order: Order,
    pub(super) hidden: Hidden,
    pub(super) reverse: bool,
    pub(super) directory: bool,
    pub(super) recursive: bool,
    pub(super) human: bool,
    pub(super) numeric: bool,
    pub(super) owner: bool,
    pub(super) group: bool,
    pub(super) full_time: bool,
    pub(super) inode: bool,
    pub(super) sign: Sign,
    pub(super) names: Names,
    pub(super) end: u8,
    pub(super) summarize: bool,
    pub(super) full_path: bool,
    pub(super) json: bool,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// Rules for local arguments: entries that they exclude are not listed.
    pub(super) hidden_by: ArgumentFilters,
    /// The filter for objects.
    pub(super) filter: Option<Arc<Filter>>,
    pub(super) width: usize,
    /// Arguments that are local.
    pub(super) paths: Vec<OsString>,
    /// Arguments in S3, as typed and parsed; none of both kinds at once.
    pub(super) places: Vec<(OsString, S3Url)>,
}

impl Plan {
    /// Returns the defaults.
    pub(super) fn new(is_terminal: bool) -> Plan {
        let escape = Escape::of_locale();
        Plan {
            form: if is_terminal { Form::Columns } else { Form::Lines },
            owner: true,
            group: true,
            names: if is_terminal { Names::Quoted(escape) } else { Names::Literal },
            end: b'\n',
            width: columns::width(),
            ..Plan::default()
        }
    }

    /// Returns whether entries must be examined.
    pub(super) fn needs_meta(&self) -> bool {
        matches!(self.form, Form::Long | Form::Json)
            || matches!(self.order, Order::Newest | Order::Largest)
            || self.sign == Sign::All
    }
}

parts!(Plan { objects: ObjectArgs, filters: Filters });

const OPTIONS: &[Opt<Plan>] = &[
    flag("l", Some('l'), "type, mode, links, owner, group, size, time")
        .short_only()
        .sets(|it, _| (it.form, it.long) = (Form::Long, true)),
    flag("all", Some('a'), "include names that begin with a dot")
        .sets(|it, _| it.hidden = Hidden::All),
    flag("almost-all", Some('A'), "the same without '.' and '..'")
        .sets(|it, _| it.hidden = Hidden::Almost),
    flag("directory", Some('d'), "list directories themselves, not their contents")
        .local("")
        .sets(|it, on| it.directory = on),
    flag("recursive", Some('R'), "list subdirectories recursively")
        .sets(|it, on| it.recursive = on),
    flag("t", Some('t'), "newest first")
        .short_only()
        .local("")
        .sets(|it, _| it.order = Order::Newest),
    flag("S", Some('S'), "largest first")
        .short_only()
        .local("")
        .sets(|it, _| it.order = Order::Largest),
    flag("U", Some('U'), "in the order of the directory")
        .short_only()
        .sets(|it, _| it.order = Order::AsRead),
    flag("reverse", Some('r'), "reverse order").sets(|it, on| it.reverse = on),
    flag("human-readable", Some('h'), "sizes such as 1.5M (powers of 1024)")
        .alias(&["humanize"])
        .sets(|it, on| it.human = on),
    flag("numeric-uid-gid", Some('n'), "-l with numbers of owner and group")
        .local("")
        .sets(|it, _| (it.form, it.numeric) = (Form::Long, true)),
    flag("g", Some('g'), "-l without the owner")
        .short_only()
        .local("")
        .sets(|it, _| (it.form, it.owner) = (Form::Long, false)),
    flag("o", Some('o'), "-l without the group")
        .short_only()
        .local("")
        .sets(|it, _| (it.form, it.group) = (Form::Long, false)),
    flag("no-group", Some('G'), "no group in -l").local("").sets(|it, _| it.group = false),
    flag("full-time", None, "-l with whole times")
        .local("")
        .sets(|it, _| (it.form, it.full_time) = (Form::Long, true)),
    flag("inode", Some('i'), "inode numbers").local("").sets(|it, on| it.inode = on),
    // As in coreutils, -1 does not cancel -l.
    flag("1", Some('1'), "one name per line (default unless on a terminal)").short_only().sets(
        |it, _| {
            if it.form != Form::Long {
                it.form = Form::Lines;
            }
        },
    ),
    flag("C", Some('C'), "names in columns (the default on a terminal)")
        .short_only()
        .local("")
        .sets(|it, _| it.form = Form::Columns),
    flag("classify", Some('F'), "append a type indicator to names")
        .local("")
        .sets(|it, _| it.sign = Sign::All),
    flag("p", Some('p'), "append a slash to directories")
        .short_only()
        .local("")
        .sets(|it, _| it.sign = Sign::Slash),
    flag("hide-control-chars", Some('q'), "show nonprintable characters as '?'")
        .local("")
        .sets(|it, _| it.names = Names::Marked(Escape::of_locale())),
    flag("literal", Some('N'), "print names unchanged (default unless on a terminal)")
        .sets(|it, _| it.names = Names::Literal),
    flag("zero", None, "end each line with NUL instead of a newline").sets(|it, _| {
        (it.end, it.names) = (0, Names::Literal);
        if it.form == Form::Columns {
            it.form = Form::Lines;
        }
    }),
    flag("etag", None, "with s3://: storage class and ETag, as -l")
        .alias(&["storage-class"])
        .stored()
        .sets(|it, _| (it.form, it.long) = (Form::Long, true)),
    flag("show-fullpath", None, "with s3://: whole URLs, and nothing else")
        .stored()
        .sets(|it, on| it.full_path = on),
    flag("summarize", None, "with s3://: count and size of all at the end")
        .stored()
        .sets(|it, on| it.summarize = on),
    JSON.sets(|it, on| it.json = on),
];

const UNBUILT: &[(&str, &str)] = &[
    (
        "--author --color --context -Z --dereference -L --dereference-command-line -H \
         --dired -D --group-directories-first --hide --hyperlink --ignore -I \
         --ignore-backups -B --kibibytes -k -m -c -u -v -x -X -Q -T -w --quote-name \
         --quoting-style --si --tabsize --time --width",
        "",
    ),
    ("--block-size", "-h shows sizes with units"),
    ("--dereference-command-line-symlink-to-dir", "it is how ls works without -l, -d or -F"),
    ("--escape -b", "names on a terminal are quoted"),
    ("-f", "-aU does nearly the same"),
    ("--file-type --indicator-style", "-F and -p show types"),
    ("--format", "-l, -1 and -C choose the form"),
    ("-s --size", "du counts room"),
    ("--show-control-chars", "-N shows names as they are"),
    ("--sort", "-t, -S and -U choose the order"),
    ("--time-style", "--full-time shows whole times"),
];

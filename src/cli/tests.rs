//! Tables, and command lines parsed with them.

use super::*;

fn table(command: &str) -> &'static dyn Syntax {
    crate::find(command).unwrap().table
}

fn parse(command: &str, line: &str) -> Result<Typed, Refused> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    table(command).parse(&arguments)
}

fn parsed(command: &str, line: &str) -> String {
    match parse(command, line) {
        Ok(typed) => {
            let options = typed.options.iter().map(|arg| {
                let sign = if arg.on { "" } else { "!" };
                let count = if arg.count > 1 { arg.count.to_string() } else { String::new() };
                format!("{sign}{}{count}{}", arg.name, arg.value.to_string_lossy())
            });
            let paths = typed.paths.iter().map(|path| format!("[{}]", path.to_string_lossy()));
            options.chain(paths).collect::<Vec<_>>().join(" ")
        }
        Err(Refused::Help(_)) => "help".to_owned(),
        Err(Refused::Usage(message) | Refused::Failed { message, .. }) => {
            message.lines().next().unwrap_or("").to_owned()
        }
    }
}

#[test]
fn tables_are_sound() {
    for command in crate::COMMANDS {
        command.table.clap().debug_assert();
        let help = command.table.help(HelpLength::Whole);
        assert!(help.contains(command.table.usage()), "{}", command.name);
        // Headlines are words, not names of types.
        for headline in help.lines().filter(|line| !line.starts_with(' ') && line.ends_with(':')) {
            let rest = headline.get(1..).unwrap_or_default();
            assert!(!rest.contains(char::is_uppercase) || rest.contains(' '), "{headline}");
        }
    }
}

/// A state that records its settings, and a part of it that could be shared.
#[derive(Default)]
struct Probe {
    set: Vec<String>,
    part: Part,
}

#[derive(Default)]
struct Part(Option<u8>);

parts!(Part {});
parts!(Probe { part: Part });

const PROBED: Table<Probe> = Table {
    command: "probe",
    about: "",
    description: "",
    usage: "probe",
    examples: &[],
    common: &[],
    after: "",
    options: &[&OWN, &SHARED],
    unbuilt: &[],
    abbreviates: false,
};

const OWN: &[Opt<Probe>] = &[
    flag("late", None, "").sets(|it, on| it.set.push(format!("late {on}"))),
    flag("early", None, "")
        .off(&["no-early"])
        .local("no such thing")
        .sets(|it, on| it.set.push(format!("early {on}"))),
];

const SHARED: Group<Part> = titled("Shared").with(&[value("level", Some('l'), "N", "how high")
    .stored()
    .reads(|part, arg| put(&mut part.0, Some(arg.number()?)))]);

#[test]
fn options_set_what_their_rows_say_in_the_order_of_the_command_line() {
    let typed = |line: &str| PROBED.parse_line(line).unwrap();
    let read = |line: &str| PROBED.read(&typed(line), Probe::default());
    let probe = read("--no-early --level=3 --late").unwrap();
    assert_eq!(probe.set, ["early false", "late true"]);
    assert_eq!(probe.part.0, Some(3));
    assert_eq!(read("-l x").err().as_deref(), Some("invalid --level 'x': not a number"));
    let stray = OptArg { name: "other", on: true, count: 1, value: "".into() };
    let stray = Typed { options: vec![stray], ..Typed::default() };
    let message = PROBED.read(&stray, Probe::default()).err();
    assert_eq!(message.as_deref(), Some("--other is not an option of probe"));

    let checked = |line: &str, any| PROBED.check_places(&typed(line), any, any).err();
    let only = "--level is for s3:// locations, and none is given";
    assert_eq!(checked("-l1", false).as_deref(), Some(only));
    assert_eq!(checked("-l1", true), None);
    let refused = "--early is not supported for s3:// (no such thing)";
    assert_eq!(checked("--early", true).as_deref(), Some(refused));
    assert_eq!(checked("--no-early --late", true), None);
    assert_eq!(checked("--early", false), None);
    let help = Syntax::help(&PROBED, HelpLength::Whole);
    assert!(help.contains("Shared:\n  -l, --level <N>"), "{help}");
}

#[test]
fn order_is_kept() {
    for (line, expected) in [
        ("-avR s d", "archive verbose relative [s] [d]"),
        ("-a --no-o s d", "archive !owner [s] [d]"),
        ("--no-o -a s d", "!owner archive [s] [d]"),
        ("-o --no-owner -o s d", "owner [s] [d]"),
        ("-vv --no-v -v s", "verbose [s]"),
        ("-vvi s -i d", "verbose2 itemize-changes2 [s] [d]"),
        (
            "--include a --exclude=b -f -_c -F --include d -F",
            "includea excludeb filter-_c F included F",
        ),
        ("-F --exclude -x -FF", "F exclude-x F F"),
        ("--modify-window=-1 -@-1", "modify-window-1"),
        ("-j -2 -j+3", "jobs+3"),
        ("--bwlimit 1m --bwlimit 2m", "bwlimit2m"),
        ("-- -a --delete", "[-a] [--delete]"),
        ("s -a d --del", "archive delete-during [s] [d]"),
        ("--help", "help"),
    ] {
        assert_eq!(parsed("sync", line), expected, "{line}");
    }
}

#[test]
fn several_words_are_one_value() {
    for (line, expected) in [
        (
            "-L jobs 1,4 -w 2 -L size a=b,c x",
            "parameter-listjobs=1,4 warmup2 parameter-listsize=a=b,c [x]",
        ),
        ("-P n -1 3 -D 2 x", "parameter-scann=-1=3 parameter-step-size2 [x]"),
        ("--repeat 3 -N x", "runs3 no-shell [x]"),
        ("--style full x", "stylefull [x]"),
    ] {
        assert_eq!(parsed("bench", line), expected, "{line}");
    }
    assert!(parsed("bench", "x -L jobs").contains("needs values: --parameter-list VAR VALUES"));
}

#[test]
fn unbuilt_options_are_named() {
    for (line, expected) in [
        (
            "--copy-as=x a b",
            "--copy-as is not supported: run hakobu as that user: sudo -u USER hakobu sync ...",
        ),
        (
            "--copy-as x a b",
            "--copy-as is not supported: run hakobu as that user: sudo -u USER hakobu sync ...",
        ),
        (
            "-N a b",
            "-N is not supported: Linux cannot set birth times; rsync refuses it there as well",
        ),
        (
            "--password-file=p a b",
            "--password-file is not supported: there is no rsync daemon; HOST:PATH uses ssh",
        ),
        ("--nosuch a b", "unexpected argument '--nosuch' found (hakobu sync --help)"),
        ("--exclude", "--exclude needs a value: --exclude PATTERN (hakobu sync --help)"),
    ] {
        assert_eq!(parsed("sync", line), expected, "{line}");
    }
}

#[test]
fn getopt_abbreviates() {
    assert_eq!(
        parsed("cp", "--rec --refl=never --preserve a b"),
        "recursive reflinknever preserve [a] [b]"
    );
    assert_eq!(parsed("cp", "--backup a b"), "backup [a] [b]");
    assert_eq!(parsed("mv", "-Z a b"), "-Z is not supported");
    // Not an abbreviation of --version-id.
    let version = "--version is not supported: it is an option of hakobu itself: hakobu --version";
    assert_eq!(parsed("cp", "--version a b"), version);
    assert_eq!(parsed("cp", "--version-id=x a b"), "version-idx [a] [b]");
    // An abbreviation of an option without effect does not take an argument away.
    let unknown = "unexpected argument '--no-such' found (hakobu cp --help)";
    assert_eq!(parsed("cp", "--no-such a b"), unknown);
    assert_eq!(parsed("cp", "--no-such-upload-retry-count 3 a b"), "[a] [b]");
}

#[test]
fn options_without_their_value() {
    for (command, line, message) in [
        ("sync", "-a --jobs", "--jobs needs a value: --jobs N (hakobu sync --help)"),
        (
            "sync",
            "a b --exclude",
            "--exclude needs a value: --exclude PATTERN (hakobu sync --help)",
        ),
        (
            "cp",
            "a b -t",
            "--target-directory needs a value: --target-directory DIR (hakobu cp --help)",
        ),
    ] {
        assert_eq!(parsed(command, line), message);
    }
    #[cfg(feature = "lab")]
    assert_eq!(
        parsed("bench", "-L a"),
        "--parameter-list needs values: --parameter-list VAR VALUES (hakobu bench --help)"
    );
}

#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(b"a\xff".to_vec());
    let mut joined = OsString::from("--exclude=");
    joined.push(&odd);
    let typed = table("sync").parse(&[joined, odd.clone()]);
    let typed = typed.unwrap_or_default();
    assert_eq!(typed.paths, std::slice::from_ref(&odd));
    assert_eq!(typed.options.first().map(|arg| arg.value.clone()), Some(odd));
}

proptest::proptest! {
    #[test]
    fn any_command_line_is_taken_or_refused(
        words in proptest::collection::vec("-{0,2}[a-zA-Z0-9@=./+%é-]{0,8}", 0..6),
    ) {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        for command in ["sync", "cp", "mv"] {
            if let Ok(typed) = table(command).parse(&arguments) {
                proptest::prop_assert!(typed.paths.len() <= words.len());
            }
        }
    }
}

// The options of rsync, of `aws s3` and of s5cmd: each is supported, accepted with a note, or refused by name.

/// Long and short options of rsync 3.5; those that end with `=` take a value.
const RSYNC: &str = "--verbose -v --info=name --debug=ALL --stderr=e --quiet -q --no-motd --checksum -c \
    --archive -a --recursive -r --inc-recursive --i-r --no-inc-recursive --no-i-r --relative -R \
    --no-implied-dirs --backup -b --backup-dir=d --suffix=s --update -u --inplace --append \
    --append-verify --dirs -d --old-dirs --old-d --mkpath --links -l --copy-links -L \
    --copy-unsafe-links --safe-links --insecure-links --confine-root=/d --munge-links --copy-dirlinks \
    -k --keep-dirlinks -K --hard-links -H --perms -p --executability -E --chmod=u+w --acls -A --xattrs \
    -X --owner -o --group -g --devices --copy-devices --write-devices --specials --drop-D -D --times -t \
    --atimes -U --open-noatime --crtimes -N --omit-dir-times -O --omit-link-times -J --super --no-super \
    --fake-super --sparse -S --preallocate --dry-run -n --whole-file -W --no-whole-file --no-W \
    --checksum-choice=md5 --cc=md5 --one-file-system -x --block-size=9 -B9 --rsh=ssh -essh \
    --rsync-path=p --existing --ignore-non-existing --ignore-existing --remove-source-files --del \
    --delete --delete-before --delete-during --delete-delay --delete-after --delete-excluded \
    --ignore-missing-args --delete-missing-args --ignore-errors --force --max-delete=1 --max-size=1 \
    --min-size=1 --max-alloc=1G --partial --partial-dir=d --delay-updates --prune-empty-dirs -m \
    --numeric-ids --usermap=a:b --groupmap=a:b --chown=0:0 --timeout=1 --contimeout=1 --ignore-times -I \
    --size-only --modify-window=1 -@1 --temp-dir=d -Td --fuzzy -y --compare-dest=d --copy-dest=d \
    --link-dest=d --compress -z --compress-choice=zstd --zc=zstd --compress-level=1 --zl=1 \
    --compress-threads=1 --zt=1 --skip-compress=gz --cvs-exclude -C --filter=-_x -f-_x -F --exclude=x \
    --exclude-from=/dev/null --include=x --include-from=/dev/null --files-from=/dev/null --from0 -0 \
    --old-args --secluded-args -s --protect-args --trust-sender --copy-as=u --address=a --port=1 \
    --sockopts=o --blocking-io --no-blocking-io --outbuf=L --stats --8-bit-output -8 --human-readable -h \
    --progress -P --itemize-changes -i --remote-option=x -Mx --out-format=%n --log-format=%n \
    --log-file=/dev/null --log-file-format=%n --password-file=f --early-input=f --list-only \
    --bwlimit=1000 --stop-after=1 --time-limit=1 --stop-at=23:59 --fsync --write-batch=f \
    --only-write-batch=f --read-batch=f --protocol=30 --iconv=utf8 --checksum-seed=1 --ipv4 -4 --ipv6 -6 \
    --version -V --help --no-r --no-l --no-p --no-t --no-g --no-o --no-D --no-v --no-i --no-h --no-z \
    --no-compress --no-s --no-S --no-H --no-A --no-X --no-O --no-R --no-d --no-x --no-m --no-partial \
    --no-progress --no-inplace --no-bwlimit --no-timeout --no-force --no-backup --no-y --no-c --no-K \
    --no-fuzzy --no-relative --no-dirs --no-links --no-times --no-perms";

/// Options of all `aws s3` commands.
const AWS: &str = "--endpoint-url=http://h --no-verify-ssl --no-paginate --output=text --query=x \
    --profile=p --region=r --color=off --no-sign-request --ca-bundle=f --cli-read-timeout=1 \
    --cli-connect-timeout=1 --cli-binary-format=base64 --no-cli-pager --no-cli-auto-prompt --debug \
    --v2-debug --version";

/// Options of `aws s3 cp`, `mv` and `sync`.
const AWS_COPY: &str = "--dryrun --quiet --include=x --exclude=x --acl=private --follow-symlinks \
    --no-follow-symlinks --no-guess-mime-type --sse --sse=AES256 --sse-c --sse-c-key=k --sse-kms-key-id=k \
    --sse-c-copy-source=AES256 --sse-c-copy-source-key=k --storage-class=STANDARD --grants=read=id=x \
    --website-redirect=/x --content-type=a/b --cache-control=x --content-disposition=x \
    --content-encoding=x --content-language=x --expires=2030-01-31T12:00:00Z --source-region=r \
    --only-show-errors --no-progress --page-size=5 --ignore-glacier-warnings --force-glacier-transfer \
    --request-payer=requester --checksum-mode=ENABLED --checksum-algorithm=CRC32 --metadata=a=b \
    --metadata-directive=COPY --copy-props=default --no-overwrite --case-conflict=ignore";

const S5CMD: &str = "--credentials-file=f --dry-run --endpoint-url=http://h --json --log=error \
    --no-sign-request --no-verify-ssl --profile=p --request-payer=requester --retry-count=3 \
    --use-list-objects-v1 --install-completion --help";

/// Options of s5cmd's `cp` and `mv`; short spellings are those of `run` files.
const S5CMD_COPY: &str = "--flatten --no-clobber -n --if-size-differ --if-source-newer -u \
    --version-id=x --show-progress --no-follow-symlinks --storage-class=STANDARD --concurrency=5 \
    --part-size=50 --metadata=a=b --metadata-directive=COPY --sse=AES256 --sse-kms-key-id=k --acl=private \
    --cache-control=x --expires=2030-01-31T12:00:00Z --force-glacier-transfer \
    --ignore-glacier-warnings --source-region=r --destination-region=r --exclude=x --include=x --raw \
    --content-type=a/b --content-encoding=x --content-disposition=x";

/// Each command with the options of its peers.
const PEERS: &[(&str, &[&str])] = &[
    ("sync", &[RSYNC]),
    (
        "cp",
        &[
            AWS,
            AWS_COPY,
            "--recursive --expected-size=1",
            S5CMD,
            S5CMD_COPY,
            "--no-such-upload-retry-count=1",
        ],
    ),
    ("mv", &[AWS, AWS_COPY, "--recursive --validate-same-s3-paths", S5CMD, S5CMD_COPY]),
    (
        "sync",
        &[AWS, AWS_COPY, "--size-only --exact-timestamps --delete", S5CMD, "--exit-on-error --raw"],
    ),
    (
        "rm",
        &[
            AWS,
            "--dryrun --quiet --recursive --request-payer=requester --include=x --exclude=x \
             --only-show-errors --page-size=5",
            S5CMD,
            "--raw --all-versions --version-id=x",
        ],
    ),
    (
        "ls",
        &[
            AWS,
            "--recursive --page-size=5 --human-readable --summarize --request-payer=requester \
             --bucket-name-prefix=x --bucket-region=x",
            S5CMD,
            "--etag --humanize --storage-class --exclude=x --all-versions --show-fullpath",
        ],
    ),
    ("mb", &[AWS, "--tags=a", S5CMD]),
    ("rb", &[AWS, "--force", S5CMD]),
    ("bucket-version", &[S5CMD, "--set=Enabled"]),
    ("presign", &[AWS, "--expires-in=5 --expire=5 --version-id=x", S5CMD]),
    ("du", &[S5CMD, "--group --humanize --exclude=x --all-versions --version-id=x"]),
    ("cat", &[S5CMD, "--raw --version-id=x --concurrency=5 --part-size=50"]),
    ("head", &[S5CMD, "--raw --version-id=x"]),
    (
        "pipe",
        &[
            S5CMD,
            "--storage-class=STANDARD --concurrency=5 --part-size=50 --metadata=a=b --sse=AES256 \
             --sse-kms-key-id=k --acl=private --cache-control=x --expires=2030-01-31T12:00:00Z --raw \
             --content-type=a/b --content-encoding=x --content-disposition=x --no-clobber",
        ],
    ),
    ("run", &[S5CMD, "--numworkers=5 --stat"]),
];

/// Returns how one option is handled.
fn outcome(table: &dyn Syntax, option: &str) -> &'static str {
    match table.parse(&[OsString::from(option), "s3://abc/k".into(), "d".into()]) {
        Ok(typed) if typed.notes.is_empty() => "built",
        Ok(_) => "noted",
        Err(Refused::Help(_)) => "built",
        Err(Refused::Usage(message) | Refused::Failed { message, .. }) => {
            match message.contains(" is not supported") && !message.contains("similar") {
                true => "named",
                false => "unknown",
            }
        }
    }
}

#[test]
fn every_option_of_a_peer_is_built_noted_or_named() {
    let mut unknown = Vec::new();
    for (command, lists) in PEERS {
        for option in lists.iter().flat_map(|list| list.split_whitespace()) {
            if outcome(table(command), option) == "unknown" {
                unknown.push(format!("{command} {option}"));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn options_without_effect_are_noted_once() {
    let typed = |line: &str| {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        table("sync").parse(&words).unwrap().note()
    };
    let note = typed("-av --zt=3 -B9 --port=5 --max-alloc=1g --port=6 s d").unwrap();
    assert_eq!(
        note,
        "note: without effect here: --compress-threads (each sender compresses what it sends); -B \
         (files are copied whole between local paths); --max-alloc (no file list is built); --port \
         (no rsync daemon)"
    );
    assert_eq!(typed("-av s d"), None);
}

//! Options of `sync` on the standard fixture: exit code, resulting tree, and (with `-i`) the itemized changes
//! must be rsync's. One test per family; a failing family lists every line that failed.

use crate::common::area::Area;
use crate::common::case::Case;
use crate::common::diff::{Fields, diff};
use crate::common::snapshot::Snapshot;
use crate::common::{have, remove_tree};
use crate::oracle::stage;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Runs one line on a fresh scene, with both programs; what differs comes back as text.
fn compare(line: &str) -> Option<String> {
    let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
    stage::set(&case);
    if line.contains("--ignore-existing") {
        // rsync stumbles over names that are files here and directories there.
        for tree in [case.src(), case.dst(), case.oracle_dst()] {
            ["c", "keep"].iter().for_each(|name| remove_tree(&tree.join(name)));
            crate::common::grow::set_mtime(&tree, stage::T, 0);
        }
    }
    let recent_s = now() - 1;
    let ours = case.run();
    let source = Snapshot::of(&case.src());
    // Both programs read the same source: what one removed, the other needs again.
    remove_tree(&case.src());
    stage::source(&case.src());
    if line.contains("--ignore-existing") {
        ["c", "keep"].iter().for_each(|name| remove_tree(&case.src().join(name)));
        crate::common::grow::set_mtime(&case.src(), stage::T, 0);
    }
    let theirs = case.oracle();
    let mut wrong = Vec::new();
    if ours.code != theirs.code {
        let texts = (ours.err(), theirs.err());
        wrong.push(format!("exit code {} instead of {}: {texts:?}", ours.code, theirs.code));
    }
    // With -K rsync gives the directory's time to the symlink that stands for it.
    let own_times = !line.contains("K ");
    let fields = Fields {
        recent_s,
        holes: line.contains("S SRC"),
        dir_times: own_times,
        link_times: own_times,
        ..Fields::ALL
    };
    let (left, right) = (Snapshot::of(&case.oracle_dst()), Snapshot::of(&case.dst()));
    wrong.extend(diff(&left, &right, &fields, 12));
    let source = diff(&Snapshot::of(&case.src()), &source, &fields, 5);
    wrong.extend(source.iter().map(|text| format!("source: {text}")));
    if itemizes(line) {
        let (ours, theirs) = (ours.items(), theirs.items());
        wrong.extend(theirs.iter().filter(|l| !ours.contains(l)).map(|l| format!("lacks  {l}")));
        wrong.extend(ours.iter().filter(|l| !theirs.contains(l)).map(|l| format!("has    {l}")));
    }
    (!wrong.is_empty()).then(|| format!("{line}\n    {}", wrong.join("\n    ")))
}

fn itemizes(line: &str) -> bool {
    line.split(' ').any(|word| {
        word == "-ii" || word.starts_with('-') && !word.starts_with("--") && word.contains('i')
    })
}

pub fn family(lines: &[&str]) {
    if !have("rsync", "comparison with rsync") {
        return;
    }
    let failed: Vec<_> = lines.iter().filter_map(|line| compare(line)).collect();
    assert!(
        failed.is_empty(),
        "{} of {} differ from rsync:\n  {}",
        failed.len(),
        lines.len(),
        failed.join("\n  ")
    );
}

#[test]
fn recursion_links_and_times() {
    family(&[
        "sync -a -i SRC/ DST",
        "sync -r -i SRC/ DST",
        "sync -rl -i SRC/ DST",
        "sync -rt -i SRC/ DST",
        "sync -rlt -i SRC/ DST",
        "sync -rlpt -i SRC/ DST",
        "sync -rp -i SRC/ DST",
        "sync -ro -i SRC/ DST",
        "sync -rg -i SRC/ DST",
        "sync -rD -i SRC/ DST",
        "sync -rltO -i SRC/ DST",
        "sync -d -i SRC/ DST",
        "sync -dt -i SRC/a/ DST",
        "sync -i SRC/ DST",
        "sync -aL -i SRC/ DST",
        "sync -rk -i SRC/ DST",
        "sync -ak -i SRC/ DST",
        "sync -aK -i SRC/ DST",
        "sync -rK -i SRC/ DST",
        "sync -aH SRC/ DST",
        "sync -aHS SRC/ DST",
        "sync -aAX -i SRC/ DST",
        "sync -aW -i SRC/ DST",
        "sync -aq SRC/ DST",
        "sync -ah -i SRC/ DST",
        "sync -aii SRC/a/ DST/a",
        "sync --archive --itemize-changes SRC/ DST",
        "sync --recursive --links --perms --times --group --owner --devices --specials -i SRC/ DST",
    ]);
}

#[test]
fn negations() {
    family(&[
        "sync -a --no-times -i SRC/ DST",
        "sync -a --no-t -i SRC/ DST",
        "sync -a --no-perms -i SRC/ DST",
        "sync -a --no-p -i SRC/ DST",
        "sync -a --no-owner --no-group -i SRC/ DST",
        "sync -a --no-o --no-g -i SRC/ DST",
        "sync -a --no-links -i SRC/ DST",
        "sync -a --no-l -i SRC/ DST",
        "sync -a --no-D -i SRC/ DST",
        "sync -a --no-devices -i SRC/ DST",
        "sync -a --no-specials -i SRC/ DST",
        "sync -a --no-recursive -i SRC/ DST",
        "sync -a --no-r -i SRC/ DST",
        "sync -aHAX --no-H --no-A --no-X -i SRC/ DST",
        "sync --no-times -a -i SRC/ DST",
    ]);
}

#[test]
fn what_counts_as_changed() {
    family(&[
        "sync -au -i SRC/ DST",
        "sync -ac -i SRC/ DST",
        "sync -a --size-only -i SRC/ DST",
        "sync -rl --size-only -i SRC/ DST",
        "sync -ac --size-only -i SRC/ DST",
        "sync -aI --size-only -i SRC/ DST",
        "sync -acI -i SRC/ DST",
        "sync -a --ignore-times -i SRC/ DST",
        "sync -aI -i SRC/ DST",
        "sync -a --modify-window=1 -i SRC/ DST",
        "sync -a -@1 -i SRC/ DST",
        "sync -a --modify-window=400 -i SRC/ DST",
        "sync -a --existing -i SRC/ DST",
        "sync -a --ignore-existing -i SRC/ DST",
        "sync -a --existing --ignore-existing -i SRC/ DST",
        "sync -a --max-size=10k -i SRC/ DST",
        "sync -a --min-size=2k -i SRC/ DST",
        "sync -a --max-size=1024 --min-size=1 -i SRC/ DST",
        "sync -a --max-size=1KB -i SRC/ DST",
        "sync -a --max-size=1KiB -i SRC/ DST",
        "sync -a --max-size=1K-1 -i SRC/ DST",
        "sync -rc -i SRC/ DST",
        "sync -ru -i SRC/ DST",
        "sync -rt --existing -i SRC/ DST",
        "sync -a --delete --existing -i SRC/ DST",
        "sync -a --delete --ignore-existing -i SRC/ DST",
        "sync -a --delete --max-size=2k -i SRC/ DST",
    ]);
}

#[test]
fn deletion() {
    family(&[
        "sync -a --delete -i SRC/ DST",
        "sync -a --del -i SRC/ DST",
        "sync -a --delete-before -i SRC/ DST",
        "sync -a --delete-during -i SRC/ DST",
        "sync -a --delete-delay -i SRC/ DST",
        "sync -a --delete-after -i SRC/ DST",
        "sync -a --delete-excluded --exclude=*.o -i SRC/ DST",
        "sync -a --delete --exclude=*.o -i SRC/ DST",
        "sync -a --delete --exclude=/x/ -i SRC/ DST",
        "sync -a --delete --filter='P stale.o' -i SRC/ DST",
        "sync -a --delete --filter='protect x/' -i SRC/ DST",
        "sync -a --delete --filter='R x/' --filter='P *' -i SRC/ DST",
        "sync -a --delete --filter='H *.txt' -i SRC/ DST",
        "sync -a --delete --filter='-s *.txt' -i SRC/ DST",
        "sync -a --delete --filter='-r *.txt' -i SRC/ DST",
        "sync -a --delete-excluded --filter='P *.o' --exclude=*.txt -i SRC/ DST",
        "sync -r --delete -i SRC/ DST",
        "sync -d --delete -i SRC/ DST",
        "sync --delete -i SRC/ DST",
        "sync -a --delete --max-delete=0 -i SRC/ DST",
        "sync -a --delete --max-delete=1000 -i SRC/ DST",
        "sync -a --delete -n -i SRC/ DST",
        "sync -a --delete SRC DST",
        "sync -a --delete -i SRC/a SRC/b DST",
        "sync -aR --delete -i SRC/./a SRC/./x DST",
        "sync -a --delete --ignore-errors -i SRC/ DST",
        "sync -a --force -i SRC/ DST",
        "sync -aK --delete -i SRC/ DST",
        "sync -aL --delete -i SRC/ DST",
        "sync -ax --delete -i SRC/ DST",
        "sync -am --delete -i SRC/ DST",
    ]);
}

#[test]
fn writing() {
    family(&[
        "sync -a --inplace -i SRC/ DST",
        "sync -aH --inplace SRC/ DST",
        "sync -a --partial -i SRC/ DST",
        "sync -a --backup -i SRC/ DST",
        "sync -ab -i SRC/ DST",
        "sync -ab --suffix=.old -i SRC/ DST",
        "sync -ab --delete -i SRC/ DST",
        "sync -ab --suffix=.bak --delete -i SRC/ DST",
        "sync -a --fsync -i SRC/ DST",
        "sync -aS SRC/ DST",
        "sync -aS --no-S SRC/ DST",
        "sync -a --whole-file -i SRC/ DST",
        "sync -a --bwlimit=100m -i SRC/ DST",
        "sync -a --remove-source-files -i SRC/ DST",
        "sync -a --remove-source-files --exclude=*.txt -i SRC/ DST",
        // Not itemized: rsync compares the line with the basis, we with the target.
        "sync -a --link-dest=OLD SRC/ DST",
        "sync -a --link-dest=OLD SRC/ DST/fresh/",
        "sync -a --link-dest=../../old SRC/ DST/fresh/",
        "sync -aH --link-dest=OLD SRC/ DST/fresh/",
        "sync -a --mkpath SRC/a/new.txt DST/p/q/r/",
        "sync -a --mkpath SRC/a/new.txt DST/p/q/r",
        "sync -a --mkpath SRC/a DST/p/q/r/",
        "sync -a --temp-dir=OLD -i SRC/ DST",
        "sync -a -n -i SRC/ DST",
        "sync -a --dry-run -i --delete SRC/ DST",
        "sync -am -i SRC/ DST",
        "sync -am --exclude=file -i SRC/ DST",
        "sync -a --safe-links -i SRC/ DST",
        "sync -a --numeric-ids -i SRC/ DST",
    ]);
}

#[test]
fn modes_and_owners() {
    family(&[
        "sync -a --chmod=u+x -i SRC/ DST",
        "sync -a --chmod=F644,D755 -i SRC/ DST",
        "sync -a --chmod=Du+rwx,Dgo-w,Fgo= -i SRC/ DST",
        "sync -a --chmod=ugo=rwX -i SRC/ DST",
        "sync -a --chmod=a-s,o+t -i SRC/ DST",
        "sync -a --chmod=D2775,F664 -i SRC/ DST",
        "sync -a --chmod=g=u,o=g -i SRC/ DST",
        "sync -a --chmod=Fo=u,Dg=o -i SRC/ DST",
        "sync -a --chmod==u -i SRC/ DST",
        "sync -avz --zl=3 --no-whole-file --no-inc-recursive -s --timeout=60 -i SRC/ DST",
        "sync -a --drop-D -i SRC/ DST",
        "sync -r --chmod=F600 -i SRC/ DST",
        "sync -a --chown=1000:1001 -i SRC/ DST",
        "sync -a --chown=1000 -i SRC/ DST",
        "sync -a --usermap=root:1000,1-9:nobody,*:5 --groupmap=0-10:77 -i SRC/ DST",
        "sync -r --usermap=0:1000 -i SRC/ DST",
        "sync -a --chown=:1001 -i SRC/ DST",
        "sync -a --chown=nobody -i SRC/ DST",
        "sync -r --chown=1000:1001 -i SRC/ DST",
    ]);
}

#[test]
fn filters() {
    family(&[
        "sync -a --exclude=*.txt -i SRC/ DST",
        "sync -a --exclude=a -i SRC/ DST",
        "sync -a --exclude=a/ -i SRC/ DST",
        "sync -a --exclude=/a/*.txt -i SRC/ DST",
        "sync -a --exclude=**/file -i SRC/ DST",
        "sync -a --include=*/ --include=*.txt --exclude=* -i SRC/ DST",
        "sync -am --include=*/ --include=*.txt --exclude=* -i SRC/ DST",
        "sync -a --include=/a/*** --exclude=* -i SRC/ DST",
        "sync -a --include='a/***' --exclude='*' -i SRC/ DST",
        "sync -a --exclude='[a-c]' -i SRC/ DST",
        "sync -a --exclude='?' -i SRC/ DST",
        "sync -a --exclude='[!a]' -i SRC/ DST",
        "sync -a --exclude='[[:digit:]]k' -i SRC/ DST",
        "sync -a --filter='- *.txt' -i SRC/ DST",
        "sync -a --filter='-! */' -i SRC/ DST",
        "sync -a --filter='exclude,! *.txt' -i SRC/ DST",
        "sync -a --filter='-/ SRC/a' -i SRC/ DST",
        "sync -a --filter='+ same.txt' --filter='- *.txt' -i SRC/ DST",
        "sync -a --filter='- a' --filter='!' -i SRC/ DST",
        "sync -a -C -i SRC/ DST",
        "sync -a -C --delete -i SRC/ DST",
        "sync -a -f '- /b' -f 'hide c' -f 'show c' -i SRC/ DST",
        "sync -a --exclude='same.txt' SRC/a/same.txt DST/",
        "sync -a --exclude=/a SRC DST",
        "sync -a --exclude=/src/a SRC DST",
        "sync -aR --exclude=/a/new.txt SRC/./a DST",
    ]);
}

#[test]
fn sources_and_layout() {
    family(&[
        "sync -a -i SRC DST",
        "sync -a SRC/. DST",
        "sync -a SRC/ DST/",
        "sync -a SRC DST/new/",
        "sync -a SRC DST/new",
        "sync -a SRC/a SRC/b DST",
        "sync -a SRC/a/ SRC/b/ DST",
        "sync -a SRC/a/new.txt DST",
        "sync -a SRC/a/new.txt DST/",
        "sync -a SRC/a/new.txt DST/other-name",
        "sync -a SRC/a/new.txt DST/missing/",
        "sync -a SRC/a/new.txt DST/missing/other-name",
        "sync -a SRC/a/new.txt SRC/a/same.txt DST/x/",
        "sync -a SRC/a/new.txt SRC/a/same.txt DST/missing",
        "sync -a SRC/a/new.txt DST/a/same.txt",
        "sync -a SRC/a/ DST/a/same.txt",
        "sync -a SRC/l/dir DST",
        "sync -a SRC/l/dir/ DST",
        "sync -a SRC/l/relative DST",
        "sync -aL SRC/l/relative DST",
        "sync -r SRC/l/relative DST",
        "sync -a SRC/missing DST",
        "sync -a SRC/missing SRC/a DST",
        "sync -a SRC/a DST/missing/deep/er",
        "sync -aR SRC/./a/new.txt DST",
        "sync -aR SRC/./b/only-src DST/",
        "sync -aR SRC/./b/only-src/deep/file SRC/./a DST/",
        "sync -aR SRC/./ DST/",
        "sync -rR SRC/./p/dir DST/",
        "sync -d SRC/a DST",
        "sync -d SRC/a/ DST",
        "sync SRC/a DST",
        "sync SRC/a/new.txt DST",
        "sync -t SRC/a/new.txt DST",
        "sync -a SRC/s/fifo DST",
        "sync SRC/s/fifo DST",
        "sync -a SRC/h/one SRC/h/two DST",
        "sync -aH SRC/h/one SRC/h/two DST",
    ]);
}

#[test]
fn lines_of_out_format_are_rsyncs() {
    if !have("rsync", "lines beside rsync") {
        return;
    }
    for line in [
        "sync -a --out-format='%o|%i|%n%L|' SRC/ DST",
        "sync -a --delete --out-format='%i %n%L' SRC/ DST",
        "sync -a --delete --out-format='%n%L' SRC/ DST",
        "sync -a --out-format='[%-30n] %o' SRC/ DST",
        "sync -an --delete --out-format='%o %n' SRC/ DST",
    ] {
        let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
        stage::set(&case);
        let (ours, theirs) = (case.run(), case.oracle());
        assert_eq!(ours.code, theirs.code, "{line}");
        let lines = |text: String| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(ours.out()), lines(theirs.out()), "{line}");
    }
}

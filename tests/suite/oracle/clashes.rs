//! cp and mv where a directory has the name of what is not one: as coreutils they leave it, and say so.

use crate::common::have_root;
use crate::tools::place::Place;

/// Runs a script with `$P` as the command (`cp`, `mv`): with ours and with coreutils', each in a copy of the same
/// tree. Both must end with the same code and tree.
fn same(setup: &str, line: &str) {
    let place = Place::new();
    place.sh(&format!("mkdir one two; for d in one two; do (cd $d; {setup}); done"));
    let command = line.split_whitespace().next().unwrap_or_default();
    let ours = place.try_sh(&format!("cd one; export XDG_STATE_HOME=/tmp/none; $H {line}"));
    let theirs = place.try_sh(&format!("cd two; {line}"));
    assert_eq!(ours.code, theirs.code, "{command}: {ours}{theirs}");
    let tree = |dir| place.sh(&format!("cd {dir} && find . -printf '%p %y %l\\n' | LC_ALL=C sort"));
    assert_eq!(tree("one"), tree("two"), "{ours}");
    for word in theirs.err().split('\'').skip(1).step_by(2) {
        let sentence =
            |name: &str| format!("cannot overwrite directory '{name}' with non-directory");
        if theirs.err().contains(&sentence(word)) {
            let expected = sentence(&word.replace("/./", "/"));
            assert!(ours.err().contains(&expected), "{ours}{theirs}");
        }
    }
}

#[test]
fn a_directory_stays() {
    const FILE: &str = "echo x > f; mkdir -p dst/f";
    const FULL: &str = "echo x > f; mkdir -p dst/f/in";
    const TREE: &str =
        "mkdir -p s dst/s/f dst/s/l dst/s/p; echo x > s/f; ln -s f s/l; mkfifo s/p; echo y > s/z";
    for (setup, line) in [
        (FILE, "cp f dst"),
        (FULL, "cp f dst"),
        (FILE, "cp -f f dst"),
        (FILE, "cp -t dst f"),
        (FILE, "cp -T f dst"),
        (FILE, "cp -T f dst/f"),
        (FILE, "cp -l f dst"),
        (FILE, "cp -s -f f dst"),
        (FILE, "mv f dst"),
        (FULL, "mv f dst"),
        (FILE, "mv -f f dst"),
        (FILE, "mv -T f dst"),
        (TREE, "cp -r s dst"),
        (TREE, "cp -a s dst"),
        (TREE, "cp -a s/. dst/s"),
        ("ln -s x l; mkdir -p dst/l", "cp -P l dst"),
        ("ln -s x l; mkdir -p dst/l", "mv l dst"),
        ("mkfifo p; mkdir -p dst/p", "cp -r p dst"),
        ("mkfifo p; mkdir -p dst/p", "mv p dst"),
        ("echo x > f; echo y > g; mkdir -p dst/f", "cp f g dst"),
        ("mkdir d; mkdir dst; echo x > dst/d", "cp -r d dst"),
        ("mkdir d; mkdir dst; echo x > dst/d", "mv d dst"),
    ] {
        same(setup, line);
    }
    if have_root("device nodes") {
        same("mknod n c 1 3; mkdir -p dst/n", "cp -a n dst");
    }
}

#[test]
fn a_directory_stays_on_another_file_system() {
    if !have_root("a mount") {
        return;
    }
    let place = Place::new();
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state; mkdir m; echo x > f; ln -s f l
         unshare -m bash -c 'mount -t tmpfs none m || exit 77; mkdir m/f m/l
             $H mv f m; [ $? = 1 ] || exit 3; $H mv l m; [ $? = 1 ] || exit 4
             $H cp f m; [ $? = 1 ] || exit 5; [ -d m/f ] && [ -d m/l ] && [ -f f ] && [ -L l ]'",
    );
    if run.code == 77 {
        return crate::common::skip("a mount: it is refused");
    }
    run.ok();
}

#[test]
fn sync_replaces_an_empty_directory_as_rsync_does() {
    let place = Place::new();
    place.sh("mkdir -p s t/f; echo x > s/f");
    place.run("sync -a s/ t/").ok();
    assert_eq!(place.sh("cat t/f"), "x\n");
}

//! Folders that options name, and links of the target: what is one file is never two.

use crate::common::case::{Case, case};

fn file(c: &Case, name: &str, text: &str) {
    let path = c.place(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn has(c: &Case, name: &str) -> String {
    std::fs::read_to_string(c.place(name)).unwrap_or_default()
}

/// `src/f` is new, `dst/f` old, `dst/x` extraneous.
fn stage(c: &Case) {
    file(c, "src/f", "new, of another size");
    file(c, "src/sub/f", "below");
    file(c, "dst/f", "old");
    file(c, "dst/x", "extraneous");
    std::os::unix::fs::symlink("dst", c.place("link")).unwrap();
}

/// Runs a line whose paths begin at `@`.
fn run(c: &Case, line: &str) -> crate::common::case::Run {
    c.run_line(&line.replace('@', c.place("").to_str().unwrap()))
}

#[test]
fn a_backup_folder_that_is_the_target_or_a_source_is_refused() {
    for dir in [".", "./", "../dst", "@dst", "@link", "@src/../dst/", "@src"] {
        for delete in ["", "--delete", "--delete-before", "--delete-after"] {
            case("sync -a -b", |c| {
                stage(c);
                let run = run(c, &format!("sync -a -b --backup-dir={dir} {delete} @src/ @dst/"));
                run.expect(1).says(&["--backup-dir"]);
                assert_eq!((has(c, "dst/f"), has(c, "dst/x")), ("old".into(), "extraneous".into()));
                assert_eq!(has(c, "src/f"), "new, of another size");
            });
        }
    }
    // With a suffix they are beside their files.
    case("sync -a -b --suffix", |c| {
        stage(c);
        run(c, "sync -a -b --suffix=.old --backup-dir=. @src/ @dst/").ok();
        assert_eq!(
            (has(c, "dst/f.old"), has(c, "dst/f")),
            ("old".into(), "new, of another size".into())
        );
    });
}

#[test]
fn a_backup_never_takes_the_name_of_another_entry() {
    // Beside the files: f~ is an entry of the source.
    for jobs in ["-j1", "-j8"] {
        case("sync -a -b", |c| {
            stage(c);
            file(c, "src/f~", "the source's own");
            file(c, "dst/f~", "the target's own f~");
            run(c, &format!("sync -a -b {jobs} @src/ @dst/")).ok();
            assert_eq!(has(c, "dst/f~"), "the source's own");
            assert_eq!(
                (has(c, "dst/f~~"), has(c, "dst/f~~~")),
                ("the target's own f~".into(), "old".into())
            );
        });
    }
    // Below the target: dst/sub/f is an entry of the source.
    case("sync -a -b --backup-dir=sub", |c| {
        stage(c);
        run(c, "sync -a -b --backup-dir=sub --remove-source-files @src/ @dst/").expect(23);
        assert_eq!((has(c, "dst/f"), has(c, "dst/sub/f")), ("old".into(), "below".into()));
        assert_eq!(has(c, "src/f"), "new, of another size");
    });
    // In a source: what it has is not replaced.
    case("sync -a -b --backup-dir=SRC/sub", |c| {
        stage(c);
        run(c, "sync -a -b --backup-dir=@src/sub @src/ @dst/").expect(23);
        assert_eq!((has(c, "dst/f"), has(c, "src/sub/f")), ("old".into(), "below".into()));
    });
}

#[test]
fn a_partial_folder_that_is_the_target_or_a_source_is_refused() {
    for dir in ["@dst", "@link", "@src", "@dst/sub", "@src/sub"] {
        case("sync -a --partial-dir", |c| {
            stage(c);
            let line = format!("sync -a --remove-source-files --partial-dir={dir} @src/ @dst/");
            run(c, &line).expect(1).says(&["--partial-dir"]);
            assert_eq!(
                (has(c, "src/f"), has(c, "src/sub/f")),
                ("new, of another size".into(), "below".into())
            );
        });
    }
    for dir in ["@aside", ".parts", "@dst/.parts"] {
        case("sync -a --partial-dir", |c| {
            stage(c);
            run(c, &format!("sync -a --partial-dir={dir} @src/ @dst/")).ok();
            assert_eq!(
                (has(c, "dst/f"), has(c, "dst/sub/f")),
                ("new, of another size".into(), "below".into())
            );
        });
    }
}

#[test]
fn trees_beside_the_target_are_not_the_target_or_deleted() {
    case("sync -a --compare-dest", |c| {
        stage(c);
        run(c, "sync -a --compare-dest=@link @src/ @dst/").expect(1).says(&["--compare-dest"]);
        let line = "sync -a --remove-source-files --compare-dest=@src @src/ @dst/";
        run(c, line).expect(1).says(&["--compare-dest"]);
        assert_eq!(has(c, "src/f"), "new, of another size");
        file(c, "dst/old/g", "kept");
        run(c, "sync -a --delete --link-dest=old @src/ @dst/").expect(1).says(&["--link-dest"]);
        assert_eq!(has(c, "dst/old/g"), "kept");
    });
}

#[test]
fn a_log_is_no_file_of_the_transfer() {
    case("sync -a --log-file", |c| {
        stage(c);
        run(c, "sync -a --log-file=@link/f @src/ @dst/").expect(1).says(&["--log-file"]);
        run(c, "sync -a --log-file=@src/f @src/f @dst/").expect(1).says(&["--log-file"]);
        run(c, "sync -a --log-file=@src/log @src/sub @dst/").ok();
    });
}

#[test]
fn a_link_of_the_target_that_leads_out_is_not_followed() {
    for to in ["../out", "@out", "chain"] {
        for delete in ["", "--delete", "--delete-before", "--delete-during", "--delete-after"] {
            case("sync -aK", |c| {
                file(c, "src/sub/g", "new");
                file(c, "out/precious", "kept");
                std::fs::create_dir(c.dst()).unwrap();
                std::os::unix::fs::symlink("../out", c.place("dst/chain")).unwrap();
                let to = to.replace('@', c.place("").to_str().unwrap());
                std::os::unix::fs::symlink(to, c.place("dst/sub")).unwrap();
                let run = run(c, &format!("sync -aK {delete} @src/ @dst/"));
                // With --delete the link in between is extraneous.
                if c.place("dst/sub").is_symlink() {
                    run.expect(23);
                }
                assert_eq!(has(c, "out/precious"), "kept");
                assert!(!c.place("out/g").exists(), "{run}");
            });
        }
    }
    for delete in ["", "--delete", "--delete-after"] {
        case("sync -aK", |c| {
            file(c, "src/sub/g", "one");
            file(c, "src/other/g", "another");
            file(c, "dst/other/g", "before");
            std::os::unix::fs::symlink("other", c.place("dst/sub")).unwrap();
            run(c, &format!("sync -aK --remove-source-files {delete} @src/ @dst/")).expect(23);
            assert_eq!(
                (has(c, "src/sub/g"), has(c, "dst/other/g")),
                ("one".into(), "another".into())
            );
        });
    }
}

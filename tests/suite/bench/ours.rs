//! `bench` empties or removes only folders that it made.

use crate::bench::{bench, runs};
use crate::common::area::Area;
use crate::common::side_by_side;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A campaign that copies a small data set to a place.
fn campaign(area: &Area, place: &str, tool: &str) {
    let text = format!(
        "name = \"copies\"\ntitle = \"Copies\"\nquestion = \"?\"\n[data.small]\ncount = 3\n\
         size = \"4KiB\"\n[place.target]\n{place}\n[repeat]\nmin = 2\nmax = 2\n[check]\n\
         what = \"tree\"\ncompare = \"all\"\n[[tool]]\n{tool}\n"
    );
    fs::write(area.join("c.toml"), text).unwrap();
}

const CP: &str = "name = \"cp\"\ncommand = \"cp -r {src}/. {dst}\"";

/// A foreign folder, with a file in it.
fn thesis(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder.join("sub")).unwrap();
    fs::write(folder.join("sub/thesis"), "mine").unwrap();
    folder.join("sub/thesis")
}

#[test]
fn folders_of_others_are_not_emptied() {
    let places = [
        ("path = \"AREA/place\"", "place/hakobu-copies", false),
        ("path = \"target\"", "work/places/target", false),
        ("serve = \"folder\"", "work/served/target-0us-free", true),
    ];
    for by_link in [false, true] {
        side_by_side(places, |(place, taken, serves)| {
            let area = Area::tmpfs();
            let place = place.replace("AREA", area.path().to_str().unwrap());
            campaign(&area, &place, if serves { "use = \"hakobu\"" } else { CP });
            let taken = area.join(taken);
            fs::create_dir_all(taken.parent().unwrap()).unwrap();
            let file = match by_link {
                true => {
                    let file = thesis(&area.join("elsewhere"));
                    symlink(area.join("elsewhere"), &taken).unwrap();
                    file
                }
                false => thesis(&taken),
            };
            let ran = bench(&area, &["c.toml", "--work", "work"]);
            ran.expect(1).says(&[taken.file_name().unwrap().to_str().unwrap(), "left alone"]);
            assert_eq!(fs::read_to_string(&file).unwrap(), "mine", "{place} {by_link}");
            assert_eq!(runs(&area).len(), 0);
            // After it is moved away, the same command works, also repeatedly.
            match by_link {
                true => fs::remove_file(&taken).unwrap(),
                false => fs::rename(&taken, area.join("away")).unwrap(),
            }
            for _ in 0..2 {
                let _ = fs::remove_dir_all(area.join("out"));
                bench(&area, &["c.toml", "--work", "work"]).ok();
                assert_eq!(runs(&area).iter().filter(|run| run["ok"] == true).count(), 4);
            }
            // Replaced by a foreign folder, it is no longer ours.
            fs::remove_dir_all(&taken).unwrap();
            let file = thesis(&taken);
            let _ = fs::remove_dir_all(area.join("out"));
            bench(&area, &["c.toml", "--work", "work"]).expect(1).says(&["left alone"]);
            assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        });
    }
}

#[test]
fn the_folder_to_work_in_and_data_sets_are_ours_or_left_alone() {
    let area = Area::tmpfs();
    campaign(&area, "path = \"target\"", CP);
    let work = area.join("cache/hakobu/work/copies");
    let file = thesis(&work);
    bench(&area, &["c.toml"]).expect(1).says(&["copies", "left alone"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    fs::remove_dir_all(&work).unwrap();
    bench(&area, &["c.toml"]).ok();
    assert!(!work.exists(), "what was made there is removed again");
    // An incomplete data set without a mark would be made again.
    let data = area.join("cache/hakobu/data");
    let entries = || fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    let set = entries().find(|path| path.is_dir()).unwrap();
    fs::remove_file(entries().find(|path| path.extension().is_some_and(|e| e == "done")).unwrap())
        .unwrap();
    fs::remove_dir_all(&set).unwrap();
    let file = thesis(&set);
    fs::remove_dir_all(area.join("out")).unwrap();
    bench(&area, &["c.toml"]).expect(1).says(&["data set 'small'", "left alone"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn tools_may_replace_their_target() {
    let area = Area::tmpfs();
    let tool = "name = \"anew\"\ncommand = \"rm -rf {dst} && cp -r {src} {dst}\"";
    campaign(&area, &format!("path = \"{}\"", area.path().display()), tool);
    bench(&area, &["c.toml"]).ok();
    assert_eq!(runs(&area).iter().filter(|run| run["ok"] == true).count(), 4);
}

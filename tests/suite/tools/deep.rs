//! Trees deeper than the limit of open directories: closed ones are reopened with few calls.

use crate::tools::place::Place;

/// One chain of directories is copied, looked at again, and proved to be the same.
#[test]
fn directories_of_a_deep_tree_are_opened_a_few_times_each() {
    const DEPTH: usize = 1500;
    let place = Place::new();
    place.deep("s", "d", DEPTH, "f");
    for (run, per_dir_max) in [("first", 16), ("second", 16)] {
        place.sh(&format!(
            "ulimit -n 64; strace -f -q -e trace=openat,openat2 -o {run}.log $H sync -a -j 4 s/ t/"
        ));
        let opened = std::fs::read_to_string(place.path().join(format!("{run}.log"))).unwrap();
        let opened = opened.lines().filter(|line| line.contains("openat")).count();
        assert!(opened < per_dir_max * DEPTH, "{run}: {opened} for {DEPTH} directories");
    }
    place.sh("$H verify s t");
}

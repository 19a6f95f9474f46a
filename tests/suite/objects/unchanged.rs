//! A second run transfers nothing, with the minimum of requests.

use crate::objects::stage::{Stage, everywhere, file, on_servers};

const FILES: u64 = 12;

fn fill(stage: &Stage) {
    for number in 0..FILES {
        let name = format!("{}/f{number}", number % 3);
        file(&stage.src(), &name, name.as_bytes(), 100);
    }
}

/// Runs a line twice: everything, then nothing, with these requests at most for each file.
fn twice(stage: &Stage, line: &str, allowed: &[&str]) {
    stage.counts(line, FILES, 0);
    let asked = stage.asked(|| drop(stage.counts(line, 0, FILES)));
    for (operation, count) in asked.unwrap_or_default() {
        let may = match operation.as_str() {
            "ListObjectsV2" => 3,
            // A bucket that is asked for where it is.
            "HeadBucket" | "GetBucketLocation" => 1,
            name => FILES as usize * allowed.iter().filter(|allowed| **allowed == name).count(),
        };
        assert!(count <= may, "{line}: {count} times {operation}");
    }
}

#[test]
fn sync_rt_both_ways() {
    everywhere(|stage| {
        fill(stage);
        twice(stage, "sync -rt SRC/ SPOT/", &["HeadObject"]);
        twice(stage, "sync -rt SPOT/ DST/", &["HeadObject"]);
    });
}

#[test]
fn sync_r_both_ways_and_across() {
    on_servers(|stage| {
        fill(stage);
        twice(stage, "sync -r SRC/ SPOT/", &[]);
        twice(stage, "sync -r SPOT/ DST/", &[]);
        twice(stage, "sync -r SPOT/ BKT/copy/", &[]);
        twice(stage, "sync -r --size-only SRC/ BKT/sizes/", &[]);
    });
}

#[test]
fn sync_a_both_ways_and_across() {
    everywhere(|stage| {
        fill(stage);
        twice(stage, "sync -a --no-o --no-g SRC/ SPOT/", &["HeadObject"]);
        twice(stage, "sync -a --no-o --no-g SPOT/ DST/", &["HeadObject"]);
        twice(stage, "sync -a --no-o --no-g SPOT/ BKT/copy/", &["HeadObject", "HeadObject"]);
        stage.counts("sync -a SRC/ SPOT/", 0, FILES);
        stage.counts("sync -a SPOT/ DST/", 0, FILES);
    });
}

#[test]
fn checksums_of_what_is_the_same() {
    everywhere(|stage| {
        fill(stage);
        twice(stage, "sync -rc SRC/ SPOT/", &["HeadObject"]);
        twice(stage, "sync -rc SPOT/ DST/", &["HeadObject"]);
    });
}

#[test]
fn multipart_objects_too() {
    on_servers(|stage| {
        file(&stage.src(), "large", &crate::objects::stage::content(7, 12_000_000), 100);
        let up = "sync -r --part-size 5MiB SRC/ SPOT/";
        stage.counts(up, 1, 0);
        stage.counts(up, 0, 1);
        // Written in parts of another size, or in one, its content is found to be the same.
        stage.counts("sync -rc SRC/ SPOT/", 0, 1);
        stage.counts("sync -r SPOT/ DST/", 1, 0);
        stage.counts("sync -r SPOT/ DST/", 0, 1);
        stage.counts("sync -rc SPOT/ DST/", 0, 1);
    });
}

//! Random option sets on random pairs of trees with an end on another machine, compared with rsync between two directories.
//! The seeds are those of `oracle/generated.rs`, and so is what they do not generate.

use crate::common::have;
use crate::oracle::generated::{Ends, differs, seeds};

fn differ(ends: Ends) {
    if !have("rsync", "random options with another machine beside rsync") {
        return;
    }
    let wanted = seeds(20);
    let failed: Vec<_> = wanted.clone().filter_map(|seed| differs(seed, ends)).collect();
    assert!(
        failed.is_empty(),
        "{} of {} differ from rsync:\n  {}",
        failed.len(),
        wanted.count(),
        failed.join("\n  ")
    );
}

#[test]
fn random_options_from_another_machine() {
    differ(Ends::SourceThere);
}

#[test]
fn random_options_to_another_machine() {
    differ(Ends::TargetThere);
}

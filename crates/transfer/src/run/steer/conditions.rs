//! Conditions of a run, as text. A number of jobs is only good under the same conditions: another number is good with
//! one CPU allowed, under a quota, a disk limit, or with a low priority.

use super::ends::Ends;
use crate::plan::Spec;
use hakobu_explain::ceilings::Ceilings;
use hakobu_explain::verdict::Side;
use hakobu_sys::priority;

/// Returns the conditions that the user sets: limits, and the work per entry.
pub(super) fn asked(spec: &Spec) -> String {
    let limits = [
        ("bytes/s", spec.bytes_per_s_max),
        ("operations/s", spec.operations_per_s_max),
        ("memory", spec.memory_bytes_max),
    ];
    let mut parts: Vec<String> =
        limits.into_iter().filter_map(|(name, limit)| Some(format!("{name} {}", limit?))).collect();
    for (name, is_set) in [("checksum", spec.policy.checksum), ("dry run", spec.policy.dry_run)] {
        parts.extend(is_set.then(|| name.to_owned()));
    }
    parts.join(", ")
}

/// Returns all conditions: the kind of work, the user's settings, and the current limits of this machine.
pub(super) fn all(asked: &str, ends: &Ends) -> String {
    let ceilings = Ceilings::of(&ends.devs());
    let mut parts = vec![kind(ends).to_owned()];
    parts.extend((!asked.is_empty()).then(|| asked.to_owned()));
    parts.extend(ceilings.words());
    // A priority that cannot be read cannot have been set either.
    let (nice, io) = (priority::nice().unwrap_or(0), priority::io_priority().unwrap_or(0));
    parts.push(format!("nice {nice}, io priority {io}"));
    parts.join("; ")
}

/// Returns the kind of work: which side is a store.
fn kind(ends: &Ends) -> &'static str {
    match (ends.is_store(Side::Source), ends.is_store(Side::Target)) {
        (false, false) => "local",
        (false, true) => "up",
        (true, false) => "down",
        (true, true) => "between stores",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::steer::prove::AFFINITY;

    #[test]
    fn conditions_of_this_thread() {
        let _alone = AFFINITY.lock();
        let here = || all("", &Ends::default());
        let before = here();
        assert!(before.starts_with("local; CPUs ") && before.contains("nice "), "{before}");
        assert_eq!(here(), before);
        assert_ne!(all("bytes/s 5", &Ends::default()), before);
        // Priorities and affinity are per thread.
        std::thread::spawn(move || {
            priority::set_nice(19).unwrap();
            let nicer = here();
            assert_ne!(nicer, before);
            let one = hakobu_sys::task::affinity(0).unwrap()[0];
            hakobu_sys::task::set_affinity(0, &[one]).unwrap();
            assert!(all("", &Ends::default()).contains("CPUs 1"));
        })
        .join()
        .unwrap();
    }
}

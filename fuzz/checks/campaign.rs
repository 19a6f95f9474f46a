//! Campaigns.

use hakobu_lab::campaign::plan;
use hakobu_lab::campaign::plan::{PlanEnvironment, PlanOptions};
use hakobu_lab::campaign::spec::CampaignSpec;
use hakobu_lab::campaign::spec::data::COUNT_MAX;
use hakobu_lab::campaign::throttle::ThrottleError;

/// A campaign is refused with a message that names the file, or read, and then planned for a
/// machine that has no programs.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let spec = match CampaignSpec::parse("fuzz.toml", text) {
        Ok(spec) => spec,
        Err(error) => return assert!(error.to_string().contains("fuzz.toml")),
    };
    assert_eq!(spec.header.text, text);
    // Plans have a line for each combination of values.
    if data.iter().filter(|byte| **byte == b',').count() > 30 || data.len() > 6000 {
        return;
    }
    let ground = PlanEnvironment {
        path: Vec::new(),
        cpus: 2,
        throttle: |_, _| Err(ThrottleError::NoGroups),
        is_one_fs: |_, _| false,
        is_free: |_| true,
        is_memory: |_| true,
    };
    for scale in [None, Some(0.001), Some(1_000_000.0)] {
        // The total size of a data set is summed up file by file.
        let at = scale.unwrap_or(spec.scale);
        if spec.data.iter().any(|data| (10_000..=COUNT_MAX).contains(&data.at(at).count)) {
            continue;
        }
        let wishes = PlanOptions {
            scale,
            work: "/nowhere/work".into(),
            cache: "/nowhere/cache".into(),
            own: "/nowhere/hakobu".into(),
            secret_key: "secret".into(),
            ..PlanOptions::default()
        };
        if let Err(why) = plan::make(&spec, &wishes, &ground) {
            assert!(!why.to_string().is_empty());
        }
    }
}

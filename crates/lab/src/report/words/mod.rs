//! Texts of reports, one file for each language. Terms of the field are not translated. The analysis has its own
//! texts.

mod en;
mod ja;

use crate::analysis::Lang;
use crate::report::words::en::EN;
use crate::report::words::ja::JA;

impl Lang {
    pub(super) fn words(self) -> &'static ReportWords {
        self.pick(&EN, &JA)
    }
}

/// Texts of one language. `{}` stands for the arguments, in order.
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct ReportWords {
    /// The language.
    #[cfg_attr(test, serde(skip))]
    pub(super) lang: Lang,
    pub(super) report: &'static str,
    pub(super) verdict: &'static str,
    pub(super) caveats: &'static str,
    pub(super) no_caveats: &'static str,
    pub(super) not_whole: &'static str,
    pub(super) ended: &'static str,
    pub(super) machines: &'static str,
    pub(super) machines_caption: &'static str,
    pub(super) times_as_fast: &'static str,
    pub(super) sweep: &'static str,
    pub(super) comparison: &'static str,
    pub(super) sweep_text: &'static str,
    pub(super) settings_text: &'static str,
    pub(super) from_to: &'static str,
    pub(super) logarithmic: &'static str,
    pub(super) sweep_caption: &'static str,
    pub(super) any_value: &'static str,
    pub(super) knee: &'static str,
    pub(super) fit: &'static str,
    pub(super) lines_caption: &'static str,
    pub(super) more_at_edge: &'static str,
    pub(super) at_share: &'static str,
    pub(super) limits: &'static str,
    pub(super) published: &'static str,
    pub(super) published_caption: &'static str,
    pub(super) published_title: &'static str,
    pub(super) here: &'static str,
    pub(super) as_published: &'static str,
    pub(super) study_machine: &'static str,
    pub(super) tools: &'static str,
    pub(super) tools_caption: &'static str,
    pub(super) compared_with: &'static str,
    pub(super) tool: &'static str,
    pub(super) setting: &'static str,
    pub(super) median: &'static str,
    pub(super) mean: &'static str,
    real_time: &'static str,
    user_time: &'static str,
    sys_time: &'static str,
    pub(super) bandwidth: &'static str,
    pub(super) deviation: &'static str,
    pub(super) least: &'static str,
    pub(super) most: &'static str,
    pub(super) gain: &'static str,
    pub(super) real: &'static str,
    pub(super) user: &'static str,
    pub(super) sys: &'static str,
    pub(super) concurrency: &'static str,
    pub(super) cpu_gb: &'static str,
    pub(super) cpu_files: &'static str,
    pub(super) memory: &'static str,
    pub(super) runs: &'static str,
    pub(super) failed: &'static str,
    pub(super) outliers: &'static str,
    pub(super) cells_caption: &'static str,
    pub(super) all_settings: &'static str,
    pub(super) controls: &'static str,
    pub(super) controls_caption: &'static str,
    pub(super) noise: &'static str,
    pub(super) no_controls: &'static str,
    pub(super) ratio: &'static str,
    pub(super) claim: &'static str,
    pub(super) pairs: &'static str,
    pub(super) faster: &'static str,
    pub(super) slower: &'static str,
    pub(super) same: &'static str,
    pub(super) unclear: &'static str,
    pub(super) proofs: &'static str,
    pub(super) proofs_caption: &'static str,
    pub(super) no_proofs: &'static str,
    pub(super) changed: &'static str,
    pub(super) elasticity: &'static str,
    pub(super) follows: &'static str,
    pub(super) elasticity_means: &'static str,
    pub(super) load: &'static str,
    pub(super) load_title: &'static str,
    pub(super) load_label: &'static str,
    pub(super) load_text: &'static str,
    pub(super) load_some: &'static str,
    pub(super) load_run: &'static str,
    pub(super) load_more: &'static str,
    pub(super) no_load: &'static str,
    pub(super) run_seconds: &'static str,
    pub(super) cpu_panel: &'static str,
    pub(super) disk_panel: &'static str,
    pub(super) operations_panel: &'static str,
    pub(super) network_panel: &'static str,
    pub(super) runs_panel: &'static str,
    pub(super) cursor: &'static str,
    pub(super) raw_runs: &'static str,
    pub(super) raw_caption: &'static str,
    pub(super) raw_some: &'static str,
    pub(super) number: &'static str,
    pub(super) block: &'static str,
    pub(super) start_at: &'static str,
    pub(super) outcome: &'static str,
    pub(super) ok: &'static str,
    pub(super) warmup: &'static str,
    pub(super) read: &'static str,
    pub(super) written: &'static str,
    pub(super) switches: &'static str,
    pub(super) cached: &'static str,
    pub(super) checked: &'static str,
    pub(super) checked_text: &'static str,
    pub(super) commands: &'static str,
    pub(super) commands_caption: &'static str,
    pub(super) command: &'static str,
    pub(super) conditions: &'static str,
    pub(super) machine: &'static str,
    pub(super) machine_caption: &'static str,
    pub(super) property: &'static str,
    pub(super) cpu: &'static str,
    pub(super) cpus: &'static str,
    pub(super) ram: &'static str,
    pub(super) kernel: &'static str,
    pub(super) instance: &'static str,
    pub(super) volume: &'static str,
    pub(super) machine_limit: &'static str,
    pub(super) programs_caption: &'static str,
    pub(super) version: &'static str,
    pub(super) path: &'static str,
    pub(super) data: &'static str,
    pub(super) data_caption: &'static str,
    pub(super) name: &'static str,
    pub(super) files: &'static str,
    pub(super) bytes: &'static str,
    pub(super) about: &'static str,
    pub(super) campaign: &'static str,
    pub(super) made: &'static str,
    pub(super) contents: &'static str,
    pub(super) usl: &'static str,
    pub(super) cap: &'static str,
    pub(super) at_twice: &'static str,
    whole_group: &'static str,
    pub(super) compared: &'static str,
    pub(super) needs: &'static str,
    pub(super) need: &'static str,
    pub(super) need_unsure: &'static str,
    pub(super) changed_conclusions: &'static str,
    pub(super) same_conclusions: &'static str,
    pub(super) study_caption: &'static str,
    pub(super) rows_caption: &'static str,
    pub(super) side_median: &'static str,
    pub(super) side_mean: &'static str,
    pub(super) side_ratio: &'static str,
    pub(super) side_claim: &'static str,
    pub(super) costs: &'static str,
    pub(super) costs_caption: &'static str,
    pub(super) result: &'static str,
    pub(super) price_hour: &'static str,
    pub(super) per_1m_iops: &'static str,
    pub(super) per_million_ios: &'static str,
    pub(super) per_gb: &'static str,
    pub(super) per_million_files: &'static str,
}

impl ReportWords {
    /// Word for a group, which may be unnamed.
    pub(super) fn group<'a>(&'a self, group: &'a str) -> &'a str {
        if group.is_empty() { self.whole_group } else { group }
    }

    /// Word for a metric; one of a campaign keeps its name.
    pub(super) fn metric<'a>(&'a self, metric: &'a str) -> &'a str {
        match metric {
            "wall_s" => self.real_time,
            "user_s" => self.user_time,
            "sys_s" => self.sys_time,
            "bw_bytes_per_s" => self.bandwidth,
            "iops" => "IOPS",
            _ => metric,
        }
    }
}

/// Inserts arguments into a pattern: `{}` takes the next one, `{1}` the first. Arguments are inserted
/// verbatim.
pub(super) fn with(pattern: &str, parts: &[&str]) -> String {
    let (mut out, mut rest, mut next) = (String::new(), pattern, 0);
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (inside, behind) = after.split_once('}').unwrap_or((after, ""));
        let place = inside.parse::<usize>().map_or(next, |place| place.saturating_sub(1));
        next += usize::from(inside.is_empty());
        out.push_str(parts.get(place).unwrap_or(&""));
        rest = behind;
    }
    out + rest
}

/// Names of all texts, with both languages.
#[cfg(test)]
pub(super) fn all() -> Vec<(String, String, String)> {
    let texts = |words: &ReportWords| -> Vec<(String, String)> {
        let value = serde_json::to_value(words).unwrap();
        let fields = value.as_object().unwrap().iter();
        fields.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect()
    };
    let both = texts(&EN).into_iter().zip(texts(&JA));
    both.map(|((name, en), (_, ja))| (name, en, ja)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_say_everything() {
        for (name, en, ja) in all() {
            assert!(!en.is_empty() && !ja.is_empty(), "{name}");
            assert!(ja.chars().any(|c| c > '\u{2e7f}'), "{name} is not Japanese: {ja}");
            assert!(en.chars().all(|c| c < '\u{2e7f}'), "{name} is not English: {en}");
            // Both take the same arguments.
            assert_eq!(en.matches('{').count(), ja.matches('{').count(), "{name}");
        }
        assert_eq!(Lang::of_code("ja"), Some(Lang::Ja));
        assert_eq!(Lang::of_code("de"), None);
    }

    #[test]
    fn metrics_have_names() {
        assert_eq!((EN.metric("wall_s"), JA.metric("wall_s")), ("real time", "実時間"));
        assert_eq!((EN.metric("iops"), EN.metric("lat_mean_ns")), ("IOPS", "lat_mean_ns"));
    }

    #[test]
    fn parts_are_put_in() {
        assert_eq!(with("a {} b {}.", &["{x}", "2"]), "a {x} b 2.");
        assert_eq!(with("{2} of {1}", &["a", "b"]), "b of a");
        assert_eq!(with("{} and {}", &["a"]), "a and ");
    }
}

//! Words of reports: everything that people read, one file for each language, sentences as whole sentences with holes.
//! Names of resources, levels and signals are those of verdicts.

mod en;
mod ja;

use crate::report::words::en::EN;
use crate::report::words::ja::JA;
pub use hakobu_core::language::Language;

/// Words of a language.
pub(super) fn words_in(language: Language) -> &'static ReportWords {
    language.pick(&EN, &JA)
}

/// A noun that is counted: its name as a swept number, a pattern for one, a pattern for several, its label.
pub(super) type CountedNoun = (&'static str, &'static str, &'static str, &'static str);

macro_rules! words {
    ($($name:ident)*) => {
        /// Texts of one language. `{}` stands for the arguments, in order.
        pub(super) struct ReportWords {
            /// The language.
            pub(super) lang: Language,
            /// Swept numbers that are counted.
            pub(super) counted: &'static [CountedNoun],
            $(pub(super) $name: &'static str,)*
        }

        /// Names of all texts, with both languages.
        #[cfg(test)]
        pub(super) fn all() -> Vec<(&'static str, &'static str, &'static str)> {
            vec![$((stringify!($name), EN.$name, JA.$name),)*]
        }
    };
}

words! {
    // Headings and labels.
    report verdict caveats no_caveats machines machines_caption times_as_fast
    swept_title side_by_side contents commands commands_caption command conditions
    machine machine_caption property cpu cpus ram kernel instance volume machine_limit
    programs_caption version path data data_caption name files bytes about campaign record
    raw_runs raw_caption raw_some number block start_at outcome ok warmup read written
    checked checked_text all_settings cells_caption runs failed mean deviation least most
    outliers gain whole_group group_cpu group_cpus tool setting
    // Metrics.
    real_time user_time sys_time bandwidth real user sys median unit_of
    // The table of times.
    times_caption baseline_caption speed
    lines_caption knee fit bottleneck at_edge at_share usl cap at_twice
    published published_caption published_scaled published_machine published_here
    resources resources_caption concurrency cpu_gb cpu_files memory
    // Charts.
    sweep_text settings_text sweep_legend settings_legend from_to logarithmic load load_title load_label
    load_text load_text_own load_some
    load_run load_more run_seconds cpu_panel disk_panel operations_panel network_panel
    runs_panel cursor curve_user curve_system curve_iowait curve_steal curve_busiest curve_own
    curve_own_user curve_own_system curve_all curve_limit
    curve_read curve_write curve_iops curve_net
    // Experiments and controls.
    proofs proofs_caption changed effect sensitivity follows sensitivity_means
    controls controls_caption noise no_controls ratio claim pairs faster slower same unclear
    // The facts of the record.
    made machine_line took ended not_whole machine_cpus machine_cpu
    // Comparisons.
    compared needs changed_conclusions same_conclusions study_caption rows_caption
    side_mean side_claim costs costs_caption result price_hour per_1m_iops
    per_million_ios per_gb per_million_files rated rated_reads rated_writes rated_throughput
    need_best need_tie need_of need_as fastest_need iops_need gb_need files_need why_fastest
    why_price why_price_with conclusion_same conclusion_differs conclusion_of on_result
    best_tool_kind knee_kind bottleneck_kind rating_kind knee_or_more reached not_reached
    nothing_shared other_metric other_data of_result
    // Lists, intervals and names.
    list_comma list_and list_or list_more span times_span plain_times spread_times full_stop sentence_end_space x_other with_x
    // Conclusions.
    no_result noisy too_noisy alone fastest tied tied_far tied_next ahead_unsure in_group best_of_groups
    all_groups all_groups_by some_groups in_count lead_noise lead_noise_group groups_few all_few value_at
    enough_one enough_many near_best_of_few best_of_few best_one best_many edge_one edge_many beyond_proven beyond_signals
    bottleneck_of_line no_effect_line no_effect_times
    limit_level limit_evidence limit_unknown limit_unknown_evidence limit_open
    range_at range_to range_from range_between range_else stretch stretch_unknown
    model_flat model gain_line shorter longer more less gain_span within_noise
    // Changes of experiments.
    edge_proven subject_cpu subject_iops subject_other
    noun_cpus noun_iops noun_bandwidth noun_latency noun_source noun_sink noun_endpoint
    change_half change_double change_times change_from_to change_free change_other effect_speed effect_none
    effect_counts is_bottleneck is_no_bottleneck is_unclear too_few_pairs one_sided
    // Caveats.
    failed_runs without_runs all_failed work_done stopped out_of_time unfinished one_run few_runs
    control_differs outliers_caveat stolen busy mixed_caches short_runs overhead scale left_out
    // The page.
    copy_markdown copy_csv copied save baseline_row
}

/// Group of commands that were named without a campaign.
const COMMANDS: &str = "commands";

impl ReportWords {
    /// Word for a group, which may be unnamed.
    pub(super) fn group(&self, group: &str) -> String {
        let cpus = group.strip_suffix(" CPUs").or(group.strip_suffix(" CPU"));
        match cpus.filter(|count| count.parse::<u32>().is_ok()) {
            _ if group.is_empty() || group == COMMANDS => self.whole_group.to_owned(),
            Some("1") => with(self.group_cpu, &["1"]),
            Some(count) => with(self.group_cpus, &[count]),
            None => group.to_owned(),
        }
    }

    /// Label of a swept number.
    pub(super) fn swept<'a>(&'a self, name: &'a str) -> &'a str {
        self.counted.iter().find(|noun| noun.0 == name).map_or(name, |noun| noun.3)
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

    /// A name with its unit, unless it is its own: `real (s)`, `IOPS`.
    pub(super) fn in_unit(&self, name: &str, unit: &str) -> String {
        match unit.is_empty() || unit == name {
            true => name.to_owned(),
            false => with(self.unit_of, &[name, unit]),
        }
    }

    /// Joins whole sentences.
    pub(super) fn sentences(&self, all: &[String]) -> String {
        all.join(match self.lang {
            Language::English => " ",
            Language::Japanese => "",
        })
    }

    /// `a`, `a and b`, `a, b and c`.
    pub(super) fn list(&self, items: &[String], last: &str) -> String {
        match items {
            [] => String::new(),
            [one] => one.clone(),
            [first @ .., end] => with(last, &[&first.join(self.list_comma), end]),
        }
    }
}

/// Inserts arguments into a pattern: `{}` takes the next one, `{1}` the first. Arguments are inserted verbatim.
/// A space between two characters of Japanese is dropped: patterns separate holes from words by a space, as
/// Japanese does from Latin letters and digits.
pub(super) fn with(pattern: &str, parts: &[&str]) -> String {
    let (mut out, mut rest, mut next) = (String::new(), pattern, 0);
    while let Some((before, after)) = rest.split_once('{') {
        append(&mut out, before);
        let (inside, behind) = after.split_once('}').unwrap_or((after, ""));
        let place = inside.parse::<usize>().map_or(next, |place| place.saturating_sub(1));
        next += usize::from(inside.is_empty());
        append(&mut out, parts.get(place).unwrap_or(&""));
        rest = behind;
    }
    append(&mut out, rest);
    out
}

fn append(out: &mut String, text: &str) {
    let is_wide = |c: char| c >= '\u{2e80}';
    let text = match (out.chars().next_back(), text.strip_prefix(' ')) {
        // "8 並列" and " で".
        (Some(last), Some(rest)) if is_wide(last) && rest.starts_with(is_wide) => rest,
        _ => text,
    };
    if let Some(before) = out.strip_suffix(' ')
        && before.ends_with(is_wide)
        && text.starts_with(is_wide)
    {
        out.pop();
    }
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_say_everything() {
        // The same in both: intervals, names of the field.
        const SAME: [&str; 11] = [
            "no_effect_times",
            "change_from_to",
            "in_group",
            "list_comma",
            "span",
            "x_other",
            "of_result",
            "full_stop",
            "stretch",
            "subject_cpu",
            "subject_other",
        ];
        for (name, en, ja) in all() {
            assert!(!en.is_empty() && !ja.is_empty(), "{name}");
            let is_japanese = ja.chars().any(|c| c > '\u{2e7f}');
            assert!(is_japanese || SAME.contains(&name) || en == ja, "{name}: {ja}");
            assert!(en.chars().all(|c| c < '\u{2e7f}'), "{name} is not English: {en}");
            // Both take the same arguments.
            assert_eq!(en.matches('{').count(), ja.matches('{').count(), "{name}");
        }
        let names =
            |words: &ReportWords| words.counted.iter().map(|noun| noun.0).collect::<Vec<_>>();
        assert_eq!(names(&EN), names(&JA));
    }

    #[test]
    fn metrics_and_groups_have_names() {
        assert_eq!((EN.metric("wall_s"), JA.metric("wall_s")), ("real time", "実行時間"));
        assert_eq!((EN.metric("iops"), EN.metric("lat_mean_ns")), ("IOPS", "lat_mean_ns"));
        assert_eq!([EN.group("1 CPU"), JA.group("2 CPUs")], ["1 CPU", "CPU 2 個"]);
        assert_eq!(JA.group("3000 IOPS"), "3000 IOPS");
    }

    #[test]
    fn parts_are_put_in() {
        assert_eq!(with("a {} b {}.", &["{x}", "2"]), "a {x} b 2.");
        assert_eq!(with("{2} of {1}", &["a", "b"]), "b of a");
        assert_eq!(with("{} and {}", &["a"]), "a and ");
        assert_eq!(with("{} で十分です", &["8 並列"]), "8 並列で十分です");
        assert_eq!(with("{} で十分です", &["n=8"]), "n=8 で十分です");
        assert_eq!(with("要因は {} です", &["帯域"]), "要因は帯域です");
    }
}

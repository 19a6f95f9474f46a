//! Facts of an analysis as sentences, in any language: chooses the pattern of a sentence and fills its holes.

use crate::analysis::Interval;
use crate::analysis::caveats::{Caveat, SHORT_S};
use crate::analysis::compare::{
    BestResult, BuyerNeed, ComparisonCaveat, Conclusion as ComparedConclusion, ConclusionChange,
    ConclusionKind, CostBasis,
};
use crate::analysis::limits::{LimitingResource, SweepStretch, XRange};
use crate::analysis::proofs::Proof;
use crate::analysis::ranking::BaselineGain;
use crate::analysis::statistics::{PAIRS_MIN, SpeedClaim};
use crate::analysis::verdict::{
    BeyondKnee, Finding, GroupLead, MeasuredSetting, NamedSetting, SufficientJobs,
};
use crate::distinct;
use crate::report::number::{
    MetricUnit, bytes, digits, percent, rough, seconds, setting, smallest_difference, times,
};
use crate::report::words::{ReportWords, with};
use crate::results::ResultsHeader;
use hakobu_explain::verdict::{
    Conclusion, Level, Resource, evidence_words, level_words, resource_words,
};

/// Most settings, and most groups, that a sentence names; further ones are counted.
const NAMED_MAX: usize = 3;
/// Intervals of ratios that span more than this factor are given by their ends alone.
const WIDE: f64 = 3.0;
/// Smaller differences of speed are worded as no change, if the experiment found none.
const NOTHING: f64 = 0.03;
/// Medians that differ by this factor without a significant difference get a reason.
const FAR: f64 = 1.25;
/// Most stretches of a sweep that are listed one by one.
const STRETCHES_MAX: usize = 3;

/// Makes sentences about one result.
#[derive(Clone, Copy)]
pub(super) struct Sentences<'a> {
    pub(super) words: &'static ReportWords,
    pub(super) header: &'a ResultsHeader,
    pub(super) unit: MetricUnit,
}

impl Sentences<'_> {
    /// Name of the swept number.
    fn x_name(&self) -> &str {
        self.header.x_name.as_deref().unwrap_or("jobs")
    }

    /// True if a swept number takes the plural.
    fn is_many(&self, x: f64) -> bool {
        x != 1.0 && self.words.counted.iter().any(|noun| noun.0 == self.x_name())
    }

    /// The swept number with its noun: `8 jobs`, `n=8`.
    pub(super) fn x(&self, x: f64) -> String {
        let number = setting(x);
        match self.words.counted.iter().find(|noun| noun.0 == self.x_name()) {
            Some((_, one, ..)) if x == 1.0 => with(one, &[&number]),
            Some((_, _, many, _)) => with(many, &[&number]),
            None => with(self.words.x_other, &[self.x_name(), &number]),
        }
    }

    /// `rsync with 8 jobs`.
    pub(super) fn setting(&self, of: &NamedSetting) -> String {
        match of.x {
            Some(x) => with(self.words.with_x, &[&of.series, &self.x(x)]),
            None => of.series.clone(),
        }
    }

    /// Names of some settings, and the number of further ones.
    fn settings(&self, of: &[NamedSetting]) -> String {
        let mut names: Vec<String> = of.iter().take(NAMED_MAX).map(|of| self.setting(of)).collect();
        let more = of.len() - names.len();
        if more > 0 {
            names.push(with(self.words.list_more, &[&more.to_string()]));
        }
        names.join(self.words.list_comma)
    }

    /// Names of the settings that a caveat is about; all of several have one name.
    fn affected(&self, of: &[NamedSetting]) -> String {
        let all = self.header.cells.iter().filter(|cell| cell.control_of.is_none());
        let all = distinct(all.map(|cell| (&cell.series, cell.x.map(f64::to_bits))));
        match of.len() > 2 && of.len() == all.len() {
            true => self.words.whole_group.to_owned(),
            false => self.settings(of),
        }
    }

    /// `2.76 s with 8 jobs`.
    fn value_at(&self, of: &MeasuredSetting) -> String {
        let value = self.unit.text(of.value);
        match of.setting.x {
            Some(x) => with(self.words.value_at, &[&value, &self.x(x)]),
            None => value,
        }
    }

    /// `3× (2.9 to 3.1)`; of a wide interval only `6× to 1,200×`.
    fn times(&self, of: Interval) -> String {
        let w = self.words;
        match of {
            _ if of.high > WIDE * of.low => with(w.times_span, &[&rough(of.low), &rough(of.high)]),
            _ if digits(of.low) == digits(of.high) => with(w.plain_times, &[&times(of.mid)]),
            _ => {
                let span = with(w.span, &[&times(of.low), &times(of.high)]);
                with(w.spread_times, &[&times(of.mid), &span])
            }
        }
    }

    // Conclusions.

    /// The verdict.
    pub(super) fn verdict(&self, findings: &[Finding]) -> Vec<String> {
        let is_lead = |of: &Finding| match of {
            Finding::Leads(leads) => leads.iter().any(|lead| lead.next.is_some()),
            Finding::Gain(..) => true,
            _ => false,
        };
        let each = findings.iter().map(|of| match of {
            // Some difference is larger.
            Finding::Noisy(noise) if findings.iter().any(is_lead) => {
                with(self.words.noisy, &[&smallest_difference(*noise)])
            }
            of => self.finding(of),
        });
        each.collect()
    }

    fn finding(&self, of: &Finding) -> String {
        let w = self.words;
        match of {
            Finding::Nothing => w.no_result.to_owned(),
            Finding::Noisy(noise) => with(w.too_noisy, &[&smallest_difference(*noise)]),
            Finding::Leads(leads) => self.leads(leads),
            Finding::Jobs(jobs) => self.jobs(jobs),
            Finding::Bottleneck(setting, limiting) => {
                with(w.bottleneck_of_line, &[&self.setting(setting), &self.limiting(limiting)])
            }
            Finding::Proven(series, proofs) => {
                with(w.bottleneck_of_line, &[series, &self.proven(proofs)])
            }
            Finding::NoEffect(proofs) => {
                let each: Vec<String> = proofs.iter().map(|of| self.no_effect(of)).collect();
                with(w.no_effect_line, &[&each.join(w.list_comma)])
            }
            Finding::Prediction { series, peak_x, x, value } => {
                let (low, high) = (self.unit.scaled(value.low), self.unit.scaled(value.high));
                let span = with(w.span, &[&digits(low), &digits(high)]);
                let (x, value) = (self.x(*x), self.unit.text(value.mid));
                let series = if series.is_empty() { &self.header.name } else { series };
                match peak_x.map(|peak| self.x(peak)) {
                    Some(peak) => with(w.model_flat, &[series, &peak, &x, &value, &span]),
                    None => with(w.model, &[series, &x, &value, &span]),
                }
            }
            Finding::Gain(setting, gain, base) => {
                with(w.gain_line, &[&self.setting(setting), &self.gain(gain), base])
            }
        }
    }

    fn leads(&self, leads: &[GroupLead]) -> String {
        let w = self.words;
        let firsts = name_counts(leads.iter().map(|lead| lead.first.setting.series.as_str()));
        let only = |lead: &GroupLead| lead.tied.is_empty() && lead.next.is_none();
        if leads.len() > 1 && firsts.len() == 1 && leads.iter().all(only) {
            let each: Vec<String> = leads
                .iter()
                .map(|lead| with(w.in_group, &[&w.group(&lead.group), &self.value_at(&lead.first)]))
                .collect();
            return with(w.best_of_groups, &[&each.join("; ")]);
        }
        if leads.len() <= 2 {
            let several = leads.len() > 1;
            let each: Vec<String> = leads
                .iter()
                .map(|lead| match several {
                    true => with(w.in_group, &[&w.group(&lead.group), &self.lead(lead)]),
                    false => self.lead(lead),
                })
                .collect();
            return w.sentences(&each);
        }
        let all = leads.len().to_string();
        let mut said = match firsts.as_slice() {
            [(series, _)] => {
                let mids = || leads.iter().filter_map(|lead| Some(lead.next.as_ref()?.1.mid));
                let ends = mids().reduce(f64::min).zip(mids().reduce(f64::max));
                let is_clear = leads.iter().all(|lead| lead.tied.is_empty());
                vec![match ends.filter(|_| is_clear) {
                    Some((least, most)) => {
                        let times = with(w.times_span, &[&times(least), &times(most)]);
                        with(w.all_groups_by, &[series, &all, &times])
                    }
                    None => with(w.all_groups, &[series, &all]),
                }]
            }
            [(series, count), rest @ ..] => {
                let rest: Vec<String> = rest
                    .iter()
                    .map(|(series, count)| with(w.in_count, &[series, &count.to_string()]))
                    .collect();
                let rest = w.list(&rest, w.list_and);
                vec![with(w.some_groups, &[series, &count.to_string(), &all, &rest])]
            }
            [] => Vec::new(),
        };
        let tied: Vec<&GroupLead> =
            leads.iter().filter(|lead| !lead.tied.is_empty() && !lead.is_unsure).collect();
        if !tied.is_empty() {
            let names = |lead: &GroupLead| -> Vec<String> {
                lead.tied.iter().map(|of| of.setting.series.clone()).collect()
            };
            // Few short names of groups are named, else the tools alone.
            let is_short =
                tied.len() <= NAMED_MAX && tied.iter().all(|lead| !lead.group.contains(','));
            let each: Vec<String> = match is_short {
                true => tied
                    .iter()
                    .map(|lead| {
                        let rivals = names(lead).join(w.list_comma);
                        with(w.lead_noise_group, &[&w.group(&lead.group), &rivals])
                    })
                    .collect(),
                false => distinct(tied.iter().flat_map(|lead| names(lead))),
            };
            let each = each.join(w.list_comma);
            said.push(with(w.lead_noise, &[&tied.len().to_string(), &all, &each]));
        }
        let unsure = leads.iter().filter(|lead| lead.is_unsure).count();
        if unsure == leads.len() {
            said.push(w.all_few.to_owned());
        } else if unsure > 0 {
            said.push(with(w.groups_few, &[&unsure.to_string(), &all]));
        }
        w.sentences(&said)
    }

    fn lead(&self, lead: &GroupLead) -> String {
        let w = self.words;
        let first = &lead.first.setting.series;
        let next = lead.next.as_ref().map(|(series, ratio)| (series, self.times(*ratio)));
        if lead.tied.is_empty() {
            let value = self.value_at(&lead.first);
            return match next {
                Some((next, times)) => with(w.fastest, &[first, &value, &times, next]),
                None => with(w.alone, &[first, &value, &lead.first.runs.to_string()]),
            };
        }
        if lead.is_unsure {
            let tied: Vec<String> = lead.tied.iter().map(|of| of.setting.series.clone()).collect();
            let tied = w.list(&tied, w.list_and);
            return with(w.ahead_unsure, &[first, &tied, &self.value_at(&lead.first)]);
        }
        let each: Vec<String> = std::iter::once(&lead.first)
            .chain(&lead.tied)
            .map(|of| with(w.limit_level, &[&of.setting.series, &self.unit.text(of.value)]))
            .collect();
        let each = w.list(&each, w.list_and);
        match (next, lead.tied.as_slice()) {
            (Some((next, times)), _) => with(w.tied_next, &[&each, first, &times, next]),
            (None, [other]) => {
                let (a, b) = (lead.first.value, other.value);
                let apart = (a / b).max(b / a);
                match apart >= FAR {
                    true => with(w.tied_far, &[&each, &with(w.plain_times, &[&times(apart)])]),
                    false => with(w.tied, &[&each]),
                }
            }
            (None, _) => with(w.tied, &[&each]),
        }
    }

    /// `8 jobs are enough (2.76 s, 98% of peak); beyond that the CPU is the bottleneck: …`.
    fn jobs(&self, jobs: &[SufficientJobs]) -> String {
        let w = self.words;
        let each = jobs.iter().map(|job| {
            let knee = &job.knee;
            let (x, value) = (self.x(knee.x), self.unit.text(knee.value));
            let many = self.is_many(knee.x);
            let said = match (knee.at_edge, knee.x < knee.best_x) {
                (_, true) if knee.few_runs => with(w.near_best_of_few, &[&x, &value]),
                (_, false) if knee.few_runs => with(w.best_of_few, &[&x, &value]),
                (true, _) if many => with(w.edge_many, &[&x, &value]),
                (true, _) => with(w.edge_one, &[&x, &value]),
                (false, true) => {
                    let pattern = if many { w.enough_many } else { w.enough_one };
                    with(pattern, &[&x, &value, &share_of_peak(knee.share)])
                }
                (false, false) if many => with(w.best_many, &[&x, &value]),
                (false, false) => with(w.best_one, &[&x, &value]),
            };
            let said = match &job.beyond {
                Some(BeyondKnee::Proven(proofs)) if knee.at_edge => {
                    let subject = proofs.first().map_or(String::new(), |of| self.subject(of));
                    with(w.edge_proven, &[&said, &subject, &self.effects(proofs)])
                }
                Some(_) if knee.few_runs => said,
                // Nothing is known beyond the end.
                Some(_) if knee.at_edge => said,
                Some(BeyondKnee::Proven(proofs)) => {
                    let subject = proofs.first().map_or(String::new(), |of| self.subject(of));
                    with(w.beyond_proven, &[&said, &subject, &self.effects(proofs)])
                }
                Some(BeyondKnee::Signals(limiting)) => {
                    with(w.beyond_signals, &[&said, &self.limit(limiting)])
                }
                None => said,
            };
            let names = [w.group(&job.group), job.series.clone()];
            let is_named = [!job.group.is_empty(), !job.series.is_empty()];
            let names = names.into_iter().zip(is_named).filter(|(_, is)| *is).map(|(name, _)| name);
            let names: Vec<String> = names.collect();
            match names.is_empty() {
                true => said,
                false => with(w.in_group, &[&names.join(w.list_comma), &said]),
            }
        });
        let each: Vec<String> = each.collect();
        format!("{}{}", each.join(w.sentence_end_space), w.full_stop)
    }

    // Bottlenecks.

    /// `CPU (at its limit)`.
    fn limit(&self, of: &LimitingResource) -> String {
        let w = self.words;
        match of.is_determined() {
            true => with(
                w.limit_level,
                &[resource_words(of.resource, w.lang), level_words(of.level, w.lang)],
            ),
            false => w.limit_unknown.to_owned(),
        }
    }

    /// `CPU (at its limit: 1.97 of 2 CPUs used)`.
    pub(super) fn limiting(&self, of: &LimitingResource) -> String {
        let w = self.words;
        let evidence = match of.open.is_empty() {
            true => self.evidence(of).join(w.list_comma),
            false => {
                let names: Vec<String> =
                    of.open.iter().map(|of| resource_words(*of, w.lang).to_owned()).collect();
                with(w.limit_open, &[&w.list(&names, w.list_or)])
            }
        };
        match (of.is_determined(), evidence.is_empty()) {
            (_, true) => self.limit(of),
            (true, false) => {
                let (what, level) =
                    (resource_words(of.resource, w.lang), level_words(of.level, w.lang));
                with(w.limit_evidence, &[what, level, &evidence])
            }
            (false, false) => with(w.limit_unknown_evidence, &[&evidence]),
        }
    }

    /// Signals, a few words each.
    pub(super) fn evidence(&self, of: &LimitingResource) -> Vec<String> {
        of.evidence.iter().map(|of| evidence_words(of, self.words.lang)).collect()
    }

    /// `up to 8 jobs`.
    pub(super) fn range(&self, of: XRange) -> String {
        let w = self.words;
        match of {
            XRange::Elsewhere => w.range_else.to_owned(),
            XRange::At(x) => with(w.range_at, &[&self.x(x)]),
            XRange::UpTo(x) => with(w.range_to, &[&self.x(x)]),
            XRange::From(x) => with(w.range_from, &[&self.x(x)]),
            XRange::Between(from, to) => with(w.range_between, &[&digits(from), &self.x(to)]),
        }
    }

    /// `latency up to 8 jobs (likely)`.
    pub(super) fn stretch(&self, of: &SweepStretch) -> String {
        self.stretch_over(&of.limiting, &self.range(of.range))
    }

    fn stretch_over(&self, of: &LimitingResource, range: &str) -> String {
        match of.is_determined() {
            true => {
                let lang = self.words.lang;
                let (what, level) =
                    (resource_words(of.resource, lang), level_words(of.level, lang));
                with(self.words.stretch, &[what, range, level])
            }
            false => with(self.words.stretch_unknown, &[range]),
        }
    }

    /// Bottlenecks along a sweep, in order. Of many stretches those with the same bottleneck are joined, and the
    /// unknown ones come last as one.
    pub(super) fn stretches(&self, all: &[SweepStretch]) -> String {
        let w = self.words;
        if all.len() <= STRETCHES_MAX {
            let each: Vec<String> = all.iter().map(|of| self.stretch(of)).collect();
            return each.join("; ");
        }
        let mut known: Vec<(LimitingResource, Vec<String>)> = Vec::new();
        for of in all.iter().filter(|of| of.limiting.is_determined()) {
            let range = self.range(of.range);
            match known.iter_mut().find(|(one, _)| one.resource == of.limiting.resource) {
                Some((one, ranges)) => {
                    one.level = one.level.min(of.limiting.level);
                    ranges.push(range);
                }
                None => known.push((of.limiting.clone(), vec![range])),
            }
        }
        let mut parts: Vec<String> = known
            .iter()
            .map(|(of, ranges)| self.stretch_over(of, &w.list(ranges, w.list_and)))
            .collect();
        if all.iter().any(|of| of.limiting.level == Level::NotDetermined) {
            parts.push(with(w.stretch_unknown, &[w.range_else]));
        }
        parts.join("; ")
    }

    // Experiments.

    fn noun(&self, of: &Proof) -> String {
        let w = self.words;
        match of.changed.as_str() {
            "cpus" => resource_words(Resource::Cpu, w.lang).to_owned(),
            _ => self.changed_noun(of).to_owned(),
        }
    }

    /// The resource as the subject of a sentence: `the CPU`.
    fn subject(&self, of: &Proof) -> String {
        let w = self.words;
        match of.changed.as_str() {
            "cpus" => w.subject_cpu.to_owned(),
            "iops" => w.subject_iops.to_owned(),
            _ => with(w.subject_other, &[self.changed_noun(of)]),
        }
    }

    fn changed_noun<'a>(&self, of: &'a Proof) -> &'a str {
        let w = self.words;
        match of.changed.as_str() {
            "cpus" => w.noun_cpus,
            "iops" => w.noun_iops,
            "bandwidth" => w.noun_bandwidth,
            "latency" => w.noun_latency,
            "source" => w.noun_source,
            "sink" => w.noun_sink,
            "endpoint" => w.noun_endpoint,
            other => other,
        }
    }

    /// `half the CPUs`, `CPUs: 1 → 2`.
    pub(super) fn change(&self, of: &Proof) -> String {
        let w = self.words;
        let noun = self.changed_noun(of);
        match (of.changed.as_str(), &of.values) {
            ("source" | "sink", _) => with(w.change_free, &[noun]),
            ("endpoint", _) => with(w.change_other, &[noun]),
            (_, Some((from, to))) => with(w.change_from_to, &[noun, from, to]),
            _ if (of.factor - 0.5).abs() < 1e-9 => with(w.change_half, &[noun]),
            _ if (of.factor - 2.0).abs() < 1e-9 => with(w.change_double, &[noun]),
            _ => with(w.change_times, &[noun, &digits(of.factor)]),
        }
    }

    /// `half the CPUs ran 0.50× as fast`, `2 CPUs were 1.75× as fast as 1`.
    fn effect(&self, of: &Proof) -> String {
        let w = self.words;
        let speed = times(of.speed);
        let is_nothing = of.says == Some(Conclusion::NoEffect) && (of.speed - 1.0).abs() < NOTHING;
        match &of.values {
            _ if is_nothing => with(w.effect_none, &[&self.change(of)]),
            Some((from, to)) if matches!(of.changed.as_str(), "cpus" | "iops") => {
                with(w.effect_counts, &[self.changed_noun(of), to, from, &speed])
            }
            _ => with(w.effect_speed, &[&self.change(of), &speed]),
        }
    }

    /// `CPUs 1 → 2`, with a small change of speed `CPUs 1 → 2 (0.96×)`.
    fn no_effect(&self, of: &Proof) -> String {
        let change = self.change(of);
        match (of.speed - 1.0).abs() < NOTHING {
            true => change,
            false => {
                let times = with(self.words.plain_times, &[&times(of.speed)]);
                with(self.words.no_effect_times, &[&change, &times])
            }
        }
    }

    fn effects(&self, of: &[Proof]) -> String {
        let each: Vec<String> = of.iter().map(|of| self.effect(of)).collect();
        each.join("; ")
    }

    fn proven(&self, of: &[Proof]) -> String {
        let w = self.words;
        let what = of.first().map_or(String::new(), |of| self.noun(of));
        let level = level_words(Level::Proven, w.lang);
        with(w.limit_evidence, &[&what, level, &self.effects(of)])
    }

    /// Conclusion of an experiment: `the CPU is the bottleneck`.
    pub(super) fn follows(&self, of: &Proof) -> String {
        let w = self.words;
        let noun = self.subject(of);
        match of.says {
            _ if of.is_one_sided => w.one_sided.to_owned(),
            None => with(w.too_few_pairs, &[&of.pairs.to_string()]),
            Some(Conclusion::Bottleneck) => with(w.is_bottleneck, &[&noun]),
            Some(Conclusion::NoEffect) => with(w.is_no_bottleneck, &[&noun]),
            Some(Conclusion::Unclear) => with(w.is_unclear, &[&noun]),
        }
    }

    /// Measurement and conclusion in one sentence.
    pub(super) fn proof(&self, of: &Proof) -> String {
        let w = self.words;
        format!("{}{}", with(w.in_group, &[&self.effect(of), &self.follows(of)]), w.full_stop)
    }

    /// `36% shorter (34% to 38%)`.
    pub(super) fn gain(&self, of: &BaselineGain) -> String {
        let w = self.words;
        let more_is_better = self.header.more_is_better;
        let ratio = of.ratio.ratio;
        // For times the metric changes inversely to speed.
        let change = |ratio: f64| if more_is_better { ratio - 1.0 } else { 1.0 / ratio - 1.0 };
        let (mid, ends) = (change(ratio.mid), [change(ratio.low), change(ratio.high)]);
        let way = match (more_is_better, mid < 0.0) {
            (true, true) => w.less,
            (true, false) => w.more,
            (false, true) => w.shorter,
            (false, false) => w.longer,
        };
        let said = with(way, &[&percent(mid.abs())]);
        let is_one_way = (ends[0] < 0.0) == (ends[1] < 0.0);
        let said = match !ratio.is_point() && is_one_way {
            true => {
                let [a, b] = ends.map(f64::abs);
                let span = with(w.span, &[&percent(a.min(b)), &percent(a.max(b))]);
                with(w.gain_span, &[&said, &span])
            }
            false => said,
        };
        match of.ratio.claim {
            SpeedClaim::Faster | SpeedClaim::Slower => said,
            SpeedClaim::Same | SpeedClaim::Unclear => with(w.within_noise, &[&said]),
        }
    }

    // Caveats.

    /// Reasons for distrust.
    pub(super) fn caveats(&self, of: &[Caveat]) -> Vec<String> {
        of.iter().map(|of| self.caveat(of)).collect()
    }

    pub(super) fn caveat(&self, of: &Caveat) -> String {
        let w = self.words;
        match of {
            Caveat::Failed { runs, settings, why } => {
                with(w.failed_runs, &[&runs.to_string(), &self.settings(settings), why])
            }
            Caveat::WithoutRuns(settings, why) if why.is_empty() => {
                with(w.without_runs, &[&self.settings(settings)])
            }
            Caveat::WithoutRuns(settings, why) => {
                with(w.all_failed, &[&self.settings(settings), why])
            }
            Caveat::WorkDone { settings, before, after } => {
                let [before, after] = [before, after].map(|count| bytes(*count as f64));
                with(w.work_done, &[&self.settings(settings), &after, &before])
            }
            Caveat::Stopped => w.stopped.to_owned(),
            Caveat::OutOfTime => w.out_of_time.to_owned(),
            Caveat::Unfinished => w.unfinished.to_owned(),
            Caveat::OneRun(settings) => with(w.one_run, &[&self.affected(settings)]),
            Caveat::FewRuns(settings) => {
                with(w.few_runs, &[&PAIRS_MIN.to_string(), &self.affected(settings)])
            }
            Caveat::ControlDiffers(settings, by) => {
                with(w.control_differs, &[&self.settings(settings), &times(*by)])
            }
            Caveat::Outliers(count, settings) => {
                with(w.outliers_caveat, &[&count.to_string(), &self.affected(settings)])
            }
            Caveat::Stolen(share) => with(w.stolen, &[&percent(*share)]),
            Caveat::Busy(cpus) => with(w.busy, &[&times(*cpus)]),
            Caveat::MixedCaches(settings) => with(w.mixed_caches, &[&self.affected(settings)]),
            Caveat::Short(settings) => {
                with(w.short_runs, &[&seconds(SHORT_S), &self.affected(settings)])
            }
            Caveat::Overhead(share) => with(w.overhead, &[&percent(*share)]),
            Caveat::Scale(scale) => with(w.scale, &[&percent(*scale)]),
            Caveat::LeftOut(what) => with(w.left_out, &[what]),
        }
    }

    // Comparisons of results.

    /// A conclusion of one result.
    pub(super) fn conclusion(&self, of: &ComparedConclusion) -> String {
        let w = self.words;
        match of {
            ComparedConclusion::Tools(names) => w.list(names, w.list_or),
            ComparedConclusion::Knee(x, false) => self.x(*x),
            ComparedConclusion::Knee(x, true) => with(w.knee_or_more, &[&self.x(*x)]),
            ComparedConclusion::Bottleneck(resource, level) => with(
                w.limit_level,
                &[resource_words(*resource, w.lang), level_words(*level, w.lang)],
            ),
            ComparedConclusion::Reached(x) => with(w.reached, &[&self.x(*x)]),
            ComparedConclusion::NotReached => w.not_reached.to_owned(),
        }
    }

    /// Name of a kind of conclusions.
    pub(super) fn conclusion_kind(&self, of: ConclusionKind) -> &'static str {
        match of {
            ConclusionKind::BestTool => self.words.best_tool_kind,
            ConclusionKind::Knee => self.words.knee_kind,
            ConclusionKind::Bottleneck => self.words.bottleneck_kind,
            ConclusionKind::Rating => self.words.rating_kind,
        }
    }

    /// The conclusions of all results in one sentence.
    pub(super) fn conclusion_change(&self, of: &ConclusionChange, names: &[String]) -> String {
        let w = self.words;
        let what = match of.of.is_empty() {
            true => self.conclusion_kind(of.kind).to_owned(),
            false => with(w.conclusion_of, &[self.conclusion_kind(of.kind), &of.of]),
        };
        let mut known = of.said.iter();
        let first = known.next().and_then(Option::as_ref);
        let each = match first.filter(|first| known.all(|of| of.as_ref() == Some(*first))) {
            // All results agree word for word.
            Some(first) => self.conclusion(first),
            None => {
                let each = of.said.iter().zip(names).filter_map(|(said, name)| {
                    Some(with(w.on_result, &[&self.conclusion(said.as_ref()?), name]))
                });
                each.collect::<Vec<_>>().join(w.list_comma)
            }
        };
        let pattern = if of.differs { w.conclusion_differs } else { w.conclusion_same };
        with(pattern, &[&what, &each])
    }

    /// Name of the source of a cost: a tool or a rating.
    pub(super) fn cost_basis<'a>(&self, basis: CostBasis, series: &'a str) -> &'a str {
        match basis {
            CostBasis::Measured => series,
            CostBasis::Rated => self.words.rated,
            CostBasis::RatedReads => self.words.rated_reads,
            CostBasis::RatedWrites => self.words.rated_writes,
            CostBasis::RatedThroughput => self.words.rated_throughput,
        }
    }

    /// A need with the kind of work that it refers to.
    pub(super) fn need(&self, of: &BestResult) -> String {
        let w = self.words;
        let need = match of.need {
            BuyerNeed::Fastest => w.fastest_need,
            BuyerNeed::PerMillionIops => w.iops_need,
            BuyerNeed::PerGigabyte => w.gb_need,
            BuyerNeed::PerMillionFiles => w.files_need,
        };
        if of.basis != CostBasis::Measured {
            return with(w.need_as, &[need, self.cost_basis(of.basis, "")]);
        }
        let kind = [of.kind.0.as_str(), of.kind.1.as_str()];
        let kind: Vec<&str> = kind.into_iter().filter(|text| !text.is_empty()).collect();
        match kind.is_empty() {
            true => need.to_owned(),
            false => with(w.need_of, &[need, &kind.join(w.list_comma)]),
        }
    }

    /// The numbers of the best result and of the runner-up.
    pub(super) fn why(&self, of: &BestResult) -> String {
        let w = self.words;
        let times = times(of.factor);
        let value = |value: f64| match of.need {
            BuyerNeed::Fastest => self.unit.text(value),
            _ => digits(value),
        };
        let (best, next) = (value(of.values.0), value(of.values.1));
        match (of.need, of.series.is_empty()) {
            (BuyerNeed::Fastest, _) => with(w.why_fastest, &[&best, &next, &of.next, &times]),
            (_, true) => with(w.why_price, &[&best, &next, &of.next, &times]),
            (_, false) => with(w.why_price_with, &[&best, &next, &of.next, &of.series, &times]),
        }
    }

    /// The best result for a need.
    pub(super) fn best(&self, of: &BestResult) -> String {
        let w = self.words;
        match of.clear || of.need != BuyerNeed::Fastest {
            true => with(w.need_best, &[&self.need(of), &of.name, &self.why(of)]),
            false => {
                let values = [of.values.0, of.values.1].map(|value| self.unit.text(value));
                let values = match values[0] == values[1] {
                    true => values[0].clone(),
                    false => values.join(" / "),
                };
                with(w.need_tie, &[&self.need(of), &of.name, &of.next, &values])
            }
        }
    }
}

/// A caveat of a comparison; `of` makes sentences about each result.
pub(super) fn comparison_caveat(
    caveat: &ComparisonCaveat,
    of: &[Sentences<'_>],
    names: &[String],
    words: &ReportWords,
) -> String {
    match caveat {
        ComparisonCaveat::Noisy(at, noise) => {
            let said = with(words.noisy, &[&smallest_difference(*noise)]);
            with(words.of_result, &[names.get(*at).map_or("", String::as_str), &said])
        }
        ComparisonCaveat::NothingShared => words.nothing_shared.to_owned(),
        ComparisonCaveat::Metric(name, metric) => with(words.other_metric, &[name, metric]),
        ComparisonCaveat::Data(name, first) => with(words.other_data, &[name, first]),
        ComparisonCaveat::Of(places, own) => {
            let first = places.first().and_then(|at| of.get(*at));
            let said = first.map_or(String::new(), |of| of.caveat(own));
            let names: Vec<&str> =
                places.iter().filter_map(|at| Some(names.get(*at)?.as_str())).collect();
            with(words.of_result, &[&names.join(words.list_comma), &said])
        }
    }
}

/// Share of the best, such that 99.8% is not rounded to 100%.
fn share_of_peak(share: f64) -> String {
    match share {
        0.995..0.9995 => format!("{:.1}%", share * 100.0),
        _ => percent(share.min(1.0)),
    }
}

/// Distinct names with their counts, most frequent first, ties in order of appearance.
fn name_counts<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => found.push((name, 1)),
        }
    }
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}

/// What the analysis of results says, in a language.
#[cfg(test)]
pub(crate) struct SaidOfResults {
    pub verdict: Vec<String>,
    pub caveats: Vec<String>,
    pub proofs: Vec<String>,
    pub gains: Vec<String>,
    /// Of each cell.
    pub limiting: Vec<String>,
    /// Along each sweep.
    pub stretches: Vec<Vec<String>>,
}

/// Makes all sentences about an analysis.
#[cfg(test)]
pub(crate) fn said(
    results: &crate::results::Results,
    analysis: &crate::analysis::Analysis,
    lang: crate::report::Language,
) -> SaidOfResults {
    let facts =
        crate::report::facts::ReportFacts { results, analysis, time: None, is_sorted: false };
    let say = facts.say(crate::report::words::words_in(lang));
    SaidOfResults {
        verdict: say.verdict(&analysis.verdict),
        caveats: say.caveats(&analysis.caveats),
        proofs: analysis.proofs.iter().map(|of| say.proof(of)).collect(),
        gains: analysis.gains.iter().map(|of| say.gain(of)).collect(),
        limiting: analysis.cells.iter().map(|of| say.limiting(&of.limiting)).collect(),
        stretches: analysis
            .sweeps
            .iter()
            .map(|sweep| sweep.stretches.iter().map(|of| say.stretch(of)).collect())
            .collect(),
    }
}

/// The sentences of a comparison: needs, conclusions, caveats.
#[cfg(test)]
pub(crate) fn said_of_comparison(
    results: &[crate::results::Results],
    of: &crate::analysis::compare::ResultsComparison,
    lang: crate::report::Language,
) -> Vec<String> {
    let words = crate::report::words::words_in(lang);
    let all = crate::report::comparison::sentences(results, words);
    let Some(say) = all.first() else { return Vec::new() };
    let best = of.best.iter().map(|best| say.best(best));
    let changes = of.changes.iter().map(|change| say.conclusion_change(change, &of.names));
    let caveats =
        of.caveats.iter().map(|of_caveat| comparison_caveat(of_caveat, &all, &of.names, words));
    best.chain(changes).chain(caveats).collect()
}

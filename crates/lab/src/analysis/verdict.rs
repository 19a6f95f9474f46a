//! Verdict of a campaign as facts, most important first: the fastest tool, the sufficient number of jobs with the
//! bottleneck beyond it, conditions without effect, a prediction.

use crate::analysis::limits::{LimitingResource, XRange};
use crate::analysis::proofs::Proof;
use crate::analysis::ranking::{BaselineGain, BestCell, lead};
use crate::analysis::sweeps::Knee;
use crate::analysis::view::ResultsView;
use crate::analysis::{Analysis, Interval, Sweep};
use crate::results::Cell;
use hakobu_explain::verdict::Conclusion;

/// Most findings of a verdict.
pub(super) const FINDINGS_MAX: usize = 4;
/// Most groups of which a noisy machine's verdict names the differences; of more it would be a count of winners.
const GROUPS_MAX: usize = 2;
/// Most sweeps in a verdict.
const SWEEPS_MAX: usize = 3;
/// Noise from which on a verdict would be one about the noise.
const NOISE_MAX: f64 = 0.2;

/// A tool, at a value of the swept number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedSetting {
    /// Tool.
    pub series: String,
    /// The swept number.
    pub x: Option<f64>,
}

impl NamedSetting {
    pub(super) fn of(cell: &Cell) -> NamedSetting {
        NamedSetting { series: cell.series.clone(), x: cell.x }
    }
}

/// A setting with its median.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredSetting {
    /// The setting.
    pub setting: NamedSetting,
    /// Median of the metric.
    pub value: f64,
    /// Number of runs that count.
    pub runs: usize,
}

/// Leading tool of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupLead {
    /// Group; empty if unnamed.
    pub group: String,
    /// Best setting of all.
    pub first: MeasuredSetting,
    /// Best settings of tools that the runs cannot distinguish from it.
    pub tied: Vec<MeasuredSetting>,
    /// Best of the others, and the leader's speed relative to it.
    pub next: Option<(String, Interval)>,
    /// True if there are too few runs for any claim.
    pub is_unsure: bool,
}

/// What limits a sweep beyond its knee.
#[derive(Clone, Debug, PartialEq)]
pub enum BeyondKnee {
    /// Shown by experiments.
    Proven(Vec<Proof>),
    /// By the signals of its last settings.
    Signals(LimitingResource),
}

/// The sufficient number of jobs of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct SufficientJobs {
    /// Group, if there are several.
    pub group: String,
    /// Tool, if there are several.
    pub series: String,
    /// The knee.
    pub knee: Knee,
    /// The bottleneck from there on.
    pub beyond: Option<BeyondKnee>,
}

/// A conclusion.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// No run counts.
    Nothing,
    /// Differences below this say nothing, and those between tools are often no larger.
    Noisy(f64),
    /// The fastest tool of each group.
    Leads(Vec<GroupLead>),
    /// The sufficient number of jobs of each swept tool.
    Jobs(Vec<SufficientJobs>),
    /// The bottleneck of the best setting, if nothing is swept.
    Bottleneck(NamedSetting, LimitingResource),
    /// The bottleneck of a tool, by experiments at a setting that is not in a sweep.
    Proven(String, Vec<Proof>),
    /// Experiments without effect.
    NoEffect(Vec<Proof>),
    /// What the fit predicts for twice the largest number.
    Prediction {
        /// Tool.
        series: String,
        /// Number from which on the rate no longer rises.
        peak_x: Option<f64>,
        /// Twice the largest number.
        x: f64,
        /// The metric there.
        value: Interval,
    },
    /// The largest gain over a baseline.
    Gain(NamedSetting, BaselineGain, String),
}

/// The noise, if it is too large for a verdict.
pub(super) fn too_noisy(noise: Option<f64>) -> Option<f64> {
    noise.filter(|noise| *noise > NOISE_MAX)
}

/// The verdict: one to four findings. On a noisy machine only that it is, and the differences between tools that are
/// larger than the noise.
pub(super) fn verdict(view: &ResultsView<'_>, analysis: &Analysis) -> Vec<Finding> {
    let groups = view.groups();
    let noise = too_noisy(analysis.noise);
    let lead = |group: &&str| group_lead(view, analysis, group, noise.unwrap_or(0.0));
    let leads: Vec<GroupLead> = groups.iter().filter_map(lead).collect();
    if leads.is_empty() {
        return vec![Finding::Nothing];
    }
    if let Some(noise) = noise {
        let of_few = (leads.len() <= GROUPS_MAX).then_some(Finding::Leads(leads));
        return std::iter::once(Finding::Noisy(noise)).chain(of_few).collect();
    }
    let sweeps = sweeps_to_report(view, analysis);
    let is_alone = is_one_tool(view, &sweeps);
    let mut found = Vec::new();
    // For one tool the sufficient number of jobs says it all.
    if !is_alone {
        found.push(Finding::Leads(leads));
    }
    let (proven, refuted) = experiments(analysis);
    let of = |id: u32| view.cell(id).map_or("", |cell| cell.series.as_str());
    let jobs: Vec<SufficientJobs> = sweeps
        .iter()
        .filter_map(|sweep| {
            let own: Vec<Proof> =
                proven.iter().filter(|of| sweep.cells.contains(&of.cell)).cloned().collect();
            let several = groups.len() > 1;
            Some(SufficientJobs {
                group: if several { sweep.group.clone() } else { String::new() },
                series: if is_alone { String::new() } else { sweep.series.clone() },
                knee: sweep.knee?,
                beyond: beyond(sweep, own),
            })
        })
        .collect();
    let said = |proof: &Proof| {
        jobs.iter()
            .any(|job| matches!(&job.beyond, Some(BeyondKnee::Proven(all)) if all.contains(proof)))
    };
    let mut others: Vec<Proof> = proven.iter().filter(|proof| !said(proof)).cloned().collect();
    others.truncate(SWEEPS_MAX);
    let is_swept = !jobs.is_empty();
    if is_swept {
        // The fastest setting may choose its own number of jobs and is then not part of a sweep.
        let is_part = |id: u32| sweeps.iter().any(|sweep| sweep.cells.contains(&id));
        let group = sweeps.first().map_or("", |of| &of.group);
        found.extend(bottleneck(view, analysis, group, |id| !is_part(id)));
        found.push(Finding::Jobs(jobs));
    }
    match others.first() {
        Some(first) => found.push(Finding::Proven(of(first.cell).to_owned(), others)),
        None if !is_swept => {
            let group = groups.first().copied().unwrap_or_default();
            found.extend(bottleneck(view, analysis, group, |_| true));
        }
        None => {}
    }
    if !refuted.is_empty() {
        found.push(Finding::NoEffect(refuted));
    } else if proven.is_empty() {
        found.extend(prediction(&sweeps, is_alone));
    }
    found.truncate(FINDINGS_MAX);
    found
}

fn group_lead(
    view: &ResultsView<'_>,
    analysis: &Analysis,
    group: &str,
    noise: f64,
) -> Option<GroupLead> {
    let lead = lead(view, &analysis.cells, group, noise)?;
    let measured = |best: &BestCell<'_>| MeasuredSetting {
        setting: NamedSetting::of(best.cell),
        value: best.value,
        runs: view.values(best.cell.id).len(),
    };
    Some(GroupLead {
        group: group.to_owned(),
        first: measured(&lead.first),
        tied: lead.tied.iter().map(measured).collect(),
        next: lead.next.map(|(best, ratio)| (best.cell.series.clone(), ratio.ratio)),
        is_unsure: lead.unsure,
    })
}

/// True if all cells are sweeps of one tool.
fn is_one_tool(view: &ResultsView<'_>, sweeps: &[&Sweep]) -> bool {
    let Some(first) = sweeps.first() else { return false };
    view.cells.iter().all(|cell| cell.series == first.series)
        && sweeps.iter().all(|sweep| sweep.series == first.series)
}

/// Sweeps to report: those of the first group that has any. For one tool, those of each group.
fn sweeps_to_report<'a>(view: &ResultsView<'_>, analysis: &'a Analysis) -> Vec<&'a Sweep> {
    let with_knee = |sweep: &&Sweep| sweep.knee.is_some();
    let mut sweeps: Vec<&Sweep> = analysis.sweeps.iter().filter(with_knee).collect();
    let Some(group) = sweeps.first().map(|sweep| &sweep.group) else { return sweeps };
    if !is_one_tool(view, &sweeps) {
        sweeps.retain(|sweep| sweep.group == *group);
    }
    sweeps.truncate(SWEEPS_MAX);
    sweeps
}

/// Experiments that found the bottleneck, and those without effect; each change once.
fn experiments(analysis: &Analysis) -> (Vec<Proof>, Vec<Proof>) {
    let of = |says: Conclusion| -> Vec<Proof> {
        let mut found: Vec<Proof> = Vec::new();
        for proof in analysis.proofs.iter().filter(|proof| proof.says == Some(says)) {
            if !found.iter().any(|known| known.changed == proof.changed) {
                found.push(proof.clone());
            }
        }
        found.truncate(SWEEPS_MAX);
        found
    };
    let proven = of(Conclusion::Bottleneck);
    let mut refuted = of(Conclusion::NoEffect);
    // What limits one tool need not limit another.
    refuted.retain(|proof| !proven.iter().any(|of| of.changed == proof.changed));
    (proven, refuted)
}

/// The bottleneck at the end of a sweep.
fn beyond(sweep: &Sweep, proven: Vec<Proof>) -> Option<BeyondKnee> {
    if !proven.is_empty() {
        return Some(BeyondKnee::Proven(proven));
    }
    let last = sweep.stretches.iter().rev().find(|of| of.range != XRange::Elsewhere)?;
    Some(BeyondKnee::Signals(last.limiting.clone()))
}

/// The bottleneck of the leading setting of a group, if it is known and the setting is one of those asked for.
fn bottleneck(
    view: &ResultsView<'_>,
    analysis: &Analysis,
    group: &str,
    is_wanted: impl Fn(u32) -> bool,
) -> Option<Finding> {
    let first = lead(view, &analysis.cells, group, 0.0)?.first.cell;
    let of = analysis.cells.iter().find(|of| of.cell == first.id && is_wanted(first.id))?;
    let limiting = Some(&of.limiting).filter(|of| of.is_determined())?.clone();
    Some(Finding::Bottleneck(NamedSetting::of(first), limiting))
}

/// Prediction of the first fit for twice the largest x.
fn prediction(sweeps: &[&Sweep], is_alone: bool) -> Option<Finding> {
    let is_sure =
        |sweep: &&&Sweep| sweep.fit.is_some() && sweep.knee.is_none_or(|knee| !knee.few_runs);
    let sweep = sweeps.iter().find(is_sure)?;
    let fit = sweep.fit.as_ref()?;
    Some(Finding::Prediction {
        series: if is_alone { String::new() } else { sweep.series.clone() },
        peak_x: fit.peak_x.map(|peak| peak.mid.round()).filter(|peak| *peak <= fit.twice_x),
        x: fit.twice_x,
        value: fit.value_at_twice(),
    })
}

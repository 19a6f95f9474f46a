//! Short forms of conclusions for table cells.

use super::facts::ReportFacts;
use super::number::{digits, ratio};
use super::words::{Lang, ReportWords, with};
use crate::analysis::{
    CurveFit, FitModel, Interval, LimitingResource, SpeedClaim, SweepStretch, level_words,
    resource_words,
};
use hakobu_explain::verdict::Level;

/// ReportWords for a claim about two cells.
pub(super) fn claim(of: SpeedClaim, words: &ReportWords) -> &'static str {
    match of {
        SpeedClaim::Faster => words.faster,
        SpeedClaim::Slower => words.slower,
        SpeedClaim::Same => words.same,
        SpeedClaim::Unclear => words.unclear,
    }
}

/// Limiting resource: `the CPU (at the limit: 1.97 of 2 CPUs used)`.
pub(super) fn limit_text(of: &LimitingResource, words: &ReportWords) -> String {
    let lang = words.lang;
    if !of.is_determined() {
        return level_words(Level::NotDetermined, lang).to_owned();
    }
    let (what, sure) = (resource_words(of.resource, lang), level_words(of.level, lang));
    let evidence = of.evidence.join(lang.pick(", ", "、"));
    match (lang, evidence.is_empty()) {
        (Lang::En, true) => format!("{what} ({sure})"),
        (Lang::En, false) => format!("{what} ({sure}: {evidence})"),
        (Lang::Ja, true) => format!("{what}（{sure}）"),
        (Lang::Ja, false) => format!("{what}（{sure}: {evidence}）"),
    }
}

/// Limiting resources along a sweep.
pub(super) fn stretches_text(stretches: &[SweepStretch], words: &ReportWords) -> String {
    let each: Vec<&str> = stretches.iter().map(|stretch| stretch.sentence.as_str()).collect();
    each.join(words.lang.pick("; ", "、"))
}

/// Fit of a sweep, with its prediction.
pub(super) fn fit_text(fit: &CurveFit, facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let unit = facts.unit();
    let x_name = facts.header().x_name.as_deref().unwrap_or("x");
    let curve = match fit.model {
        FitModel::Usl => with(words.usl, &[&ratio(&fit.alpha), &ratio(&fit.beta)]),
        FitModel::Cap => {
            let at = fit.peak_x.map_or_else(String::new, |peak| ratio(&peak));
            with(words.cap, &[&format!("{x_name}={at}")])
        }
    };
    let twice = match fit.work {
        // A time is inverse to the rate, so the ends of the interval are swapped.
        Some(work) => Interval {
            low: work / fit.at_twice.high,
            mid: work / fit.at_twice.mid,
            high: work / fit.at_twice.low,
        },
        None => fit.at_twice,
    };
    let place = format!("{x_name}={}", digits(fit.twice_x));
    with(words.at_twice, &[&curve, &unit.interval(&twice), &place])
}

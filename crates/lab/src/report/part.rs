//! One part of a report: the results of a campaign with their analysis.

use super::facts::ReportFacts;
use super::words::Lang;
use crate::analysis::{Analysis, analyse_in};
use crate::results::Results;

/// Results of a campaign with their analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportPart {
    /// Results.
    pub results: Results,
    /// Analysis of the results.
    pub analysis: Analysis,
}

impl ReportPart {
    /// Analyses results with sentences in `lang`.
    pub fn new(results: Results, lang: Lang) -> ReportPart {
        let analysis = analyse_in(&results, lang);
        ReportPart { results, analysis }
    }

    /// The facts of a report about it.
    pub(super) fn facts(&self) -> ReportFacts<'_> {
        ReportFacts { results: &self.results, analysis: &self.analysis, time: None }
    }
}

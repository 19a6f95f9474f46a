//! One part of a report: the results of a campaign with their analysis.

use super::facts::Facts;
use super::words::Lang;
use crate::analysis::{Analysis, analyse_in};
use crate::results::Results;

/// Results of a campaign with their analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Results.
    pub results: Results,
    /// Analysis of the results.
    pub analysis: Analysis,
}

impl Part {
    /// Analyses results with sentences in `lang`.
    pub fn new(results: Results, lang: Lang) -> Part {
        let analysis = analyse_in(&results, lang);
        Part { results, analysis }
    }

    /// The facts of a report about it.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { results: &self.results, analysis: &self.analysis, time: None }
    }
}

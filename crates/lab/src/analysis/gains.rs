//! Compares every setting with a baseline, for example `jobs=10`.

use super::rivals::ratio;
use super::say::percent;
use super::view::ResultsView;
use super::{Analysis, Lang, SpeedClaim, SpeedRatio};
use crate::results::{Cell, Results};
use std::collections::{BTreeMap, BTreeSet};

/// Baseline of a comparison: a parameter (or the swept number) and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Name of the parameter.
    pub name: String,
    /// Value as written.
    pub value: String,
}

/// A setting compared with its baseline.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct BaselineGain {
    /// Cell of the setting.
    pub cell: u32,
    /// Cell of the baseline, equal in all other parameters.
    pub base: u32,
    /// Speed relative to the baseline.
    pub ratio: SpeedRatio,
    /// `36 % shorter`.
    pub words: String,
}

impl Baseline {
    /// Parses `NAME=VALUE`, for example `jobs=10`.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                Ok(Baseline { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err("is not NAME=VALUE, such as jobs=10".to_owned()),
        }
    }

    /// Formats it as `NAME=VALUE`.
    pub fn text(&self) -> String {
        format!("{}={}", self.name, self.value)
    }

    /// Value of this parameter in a cell.
    fn of(&self, cell: &Cell, x_name: Option<&str>) -> Option<String> {
        let x = cell.x.filter(|_| x_name == Some(self.name.as_str())).map(|x| x.to_string());
        cell.parameters.get(&self.name).cloned().or(x)
    }

    fn is(&self, value: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        value == self.value || number(value).is_some_and(|one| number(&self.value) == Some(one))
    }
}

impl Analysis {
    /// Compares every setting with the one that has this value and is otherwise equal; adds the largest gain
    /// to the verdict.
    ///
    /// # Errors
    /// No setting has this value; the message lists existing ones.
    pub fn compare_with(
        &mut self,
        results: &Results,
        baseline: &Baseline,
        lang: Lang,
    ) -> Result<(), String> {
        let view = ResultsView::new(results, lang);
        let x_name = results.header.x_name.as_deref();
        let cells = || view.settings();
        let mut bases: BTreeMap<_, u32> = BTreeMap::new();
        for cell in cells() {
            if baseline.of(cell, x_name).is_some_and(|value| baseline.is(&value)) {
                bases.insert(key(cell, baseline), cell.id);
            }
        }
        if bases.is_empty() {
            let known: BTreeSet<String> =
                cells().filter_map(|cell| baseline.of(cell, x_name)).collect();
            let known: Vec<String> = known.into_iter().collect();
            let known = match known.is_empty() {
                true => format!("nothing has a parameter {}", baseline.name),
                false => format!("{} is one of {}", baseline.name, known.join(", ")),
            };
            return Err(format!("--baseline={}: no setting has it; {known}", baseline.text()));
        }
        self.gains = cells()
            .filter_map(|cell| {
                let base = *bases.get(&key(cell, baseline)).filter(|base| **base != cell.id)?;
                let ratio = ratio(&view, cell.id, base)?;
                let words = words(&ratio, view.more_is_better(), lang);
                Some(BaselineGain { cell: cell.id, base, ratio, words })
            })
            .collect();
        let best = self.gains.iter().max_by(|a, b| a.ratio.ratio.mid.total_cmp(&b.ratio.ratio.mid));
        if let Some((gain, cell)) = best.and_then(|gain| Some((gain, view.cell(gain.cell)?))) {
            let (name, base) = (view.name(cell), baseline.text());
            let said = match lang {
                Lang::En => format!("{name}: {} than with {base}.", gain.words),
                Lang::Ja => format!("{name}: {base} より {}。", gain.words),
            };
            self.verdict.insert(1.min(self.verdict.len()), said);
            self.verdict.truncate(super::SENTENCES_MAX);
        }
        Ok(())
    }
}

/// Key that a cell shares with its baseline.
fn key(cell: &Cell, baseline: &Baseline) -> (String, String, BTreeMap<String, String>) {
    let mut rest = cell.parameters.clone();
    rest.remove(&baseline.name);
    (cell.group.clone(), cell.series.clone(), rest)
}

/// Change of the metric: `36 % shorter`, `2 to 3 times as long`; for rates `40 % more`.
fn words(ratio: &SpeedRatio, more_is_better: bool, lang: Lang) -> String {
    let of = ratio.ratio;
    // For times the metric changes inversely to speed.
    let change = |ratio: f64| if more_is_better { ratio - 1.0 } else { 1.0 / ratio - 1.0 };
    let mid = change(of.mid);
    let ends = [change(of.low), change(of.high)].map(f64::abs);
    let is_point = of.is_point() || (change(of.low) < 0.0) != (change(of.high) < 0.0);
    let span = if is_point {
        String::new()
    } else {
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let span = super::say::span(&percent(low), &percent(high), lang);
        lang.pick(format!(" ({span})"), format!("（{span}）"))
    };
    let way = match (more_is_better, mid < 0.0) {
        (true, true) => lang.pick("less", "少ない"),
        (true, false) => lang.pick("more", "多い"),
        (false, true) => lang.pick("shorter", "短い"),
        (false, false) => lang.pick("longer", "長い"),
    };
    let noise = match ratio.claim {
        SpeedClaim::Faster | SpeedClaim::Slower => "",
        SpeedClaim::Same | SpeedClaim::Unclear => lang.pick(", within noise", "、誤差の範囲"),
    };
    format!("{} {way}{span}{noise}", percent(mid.abs()))
}

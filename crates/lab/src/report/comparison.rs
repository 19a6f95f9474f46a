//! Report of a comparison of several machines or settings: best one for each need, conclusions that differ,
//! numbers, costs. All formats have the same content.

use crate::analysis::compare::{
    BestResult, ComparedRow, ComparisonCaveat, ConclusionChange, CostBasis, MachineCost,
    ResultsComparison,
};
use crate::escape::csv_line;
use crate::report::document::{NONE, ReportBlock, ReportTable, distrust, or_none};
use crate::report::number::{MetricUnit, digits, setting};
use crate::report::sentences::{Sentences, comparison_caveat};
use crate::report::tables::{claim, pairs, speed};
use crate::report::words::{Language, ReportWords, with, words_in};
use crate::report::{ReportFormat, html, markdown, tables};
use crate::results::Results;
use crate::{distinct, report};
use hakobu_core::unit::Machine;
use serde_json::json;

/// Renders the result of [`crate::analysis::compare`] over `results`. CSV has a line for each setting of each
/// result, JSON everything.
///
/// # Errors
/// A message: the format has no such report (SVG), or JSON serialisation failed.
pub fn render_comparison(
    of: &ResultsComparison,
    results: &[Results],
    format: ReportFormat,
    lang: Language,
) -> Result<String, String> {
    let words = words_in(lang);
    let headline = with(words.compared, &[&of.names.join(", ")]);
    match format {
        ReportFormat::Html => html::comparison_page(&headline, &blocks(of, results, words), words),
        ReportFormat::Markdown => {
            let mut out = String::new();
            markdown::heading(&mut out, 1, &headline);
            markdown::blocks(&mut out, &blocks(of, results, words), 2);
            Ok(out)
        }
        ReportFormat::Csv => Ok(lines(of)),
        ReportFormat::Json => json(of, results),
        ReportFormat::Svg | ReportFormat::Png => {
            Err("results side by side have no picture; report draws each".into())
        }
    }
}

/// Sentences about each result, in the unit of its metric.
pub(super) fn sentences<'a>(
    results: &'a [Results],
    words: &'static ReportWords,
) -> Vec<Sentences<'a>> {
    let each = results.iter().map(|of| {
        let metric = if of.header.metric.is_empty() { "wall_s" } else { &of.header.metric };
        Sentences { words, header: &of.header, unit: MetricUnit::of(metric) }
    });
    each.collect()
}

/// The comparison with its conclusions as sentences, in English.
#[derive(serde::Serialize)]
struct JsonComparison<'a> {
    #[serde(flatten)]
    of: &'a ResultsComparison,
    changes: Vec<serde_json::Value>,
    costs: Vec<JsonCost<'a>>,
    best: Vec<serde_json::Value>,
    caveats: Vec<String>,
}

#[derive(serde::Serialize)]
struct JsonCost<'a> {
    #[serde(flatten)]
    cost: &'a MachineCost,
    of: &'a str,
    rated: bool,
}

fn json(of: &ResultsComparison, results: &[Results]) -> Result<String, String> {
    let words = words_in(Language::English);
    let all = sentences(results, words);
    let Some(say) = all.first() else { return report::json_document(of) };
    let change = |change: &ConclusionChange| {
        let said = change.said.iter().map(|said| said.as_ref().map(|said| say.conclusion(said)));
        json!({
            "what": say.conclusion_kind(change.kind), "of": change.of,
            "said": said.collect::<Vec<_>>(), "differs": change.differs,
            "sentence": say.conclusion_change(change, &of.names),
        })
    };
    let best = |best: &BestResult| {
        json!({
            "need": say.need(best), "name": best.name, "why": say.why(best), "clear": best.clear,
        })
    };
    let caveats =
        of.caveats.iter().map(|of_caveat| comparison_caveat(of_caveat, &all, &of.names, words));
    let costs = of.costs.iter().map(|cost| JsonCost {
        cost,
        of: say.cost_basis(cost.basis, &cost.series),
        rated: cost.basis != CostBasis::Measured,
    });
    report::json_document(&JsonComparison {
        of,
        changes: of.changes.iter().map(change).collect(),
        costs: costs.collect(),
        best: of.best.iter().map(best).collect(),
        caveats: caveats.collect(),
    })
}

/// All blocks of the report.
pub(super) fn blocks(
    of: &ResultsComparison,
    results: &[Results],
    words: &'static ReportWords,
) -> Vec<ReportBlock> {
    let say = sentences(results, words);
    let Some(first) = say.first() else { return Vec::new() };
    let mut said = Vec::new();
    let caveat = |of_caveat| comparison_caveat(of_caveat, &say, &of.names, words);
    let is_noise = |of: &&ComparisonCaveat| matches!(of, ComparisonCaveat::Noisy(..));
    let noise: Vec<String> = of.caveats.iter().filter(is_noise).map(caveat).collect();
    if !noise.is_empty() {
        said.extend([ReportBlock::Heading(words.verdict.to_owned()), ReportBlock::List(noise)]);
    }
    let needs: Vec<String> = of.best.iter().map(|best| first.best(best)).collect();
    if !needs.is_empty() {
        said.extend([ReportBlock::Heading(words.needs.to_owned()), ReportBlock::List(needs)]);
    }
    let sentences = |wanted: bool| -> Vec<String> {
        // What one result alone says is no comparison.
        let is_known = |of: &ConclusionChange| of.said.iter().flatten().count() > 1;
        let chosen = |of: &&ConclusionChange| of.differs == wanted && is_known(of);
        let chosen = of.changes.iter().filter(chosen);
        chosen.map(|change| first.conclusion_change(change, &of.names)).collect()
    };
    for (title, wanted) in [(words.changed_conclusions, true), (words.same_conclusions, false)] {
        let found = sentences(wanted);
        if !found.is_empty() {
            said.extend([ReportBlock::Heading(title.to_owned()), ReportBlock::List(found)]);
        }
    }
    said.push(ReportBlock::Heading(words.machines.to_owned()));
    said.extend(studies(of, words).into_iter().map(ReportBlock::Table));
    said.push(ReportBlock::Table(all_rows(of, words)));
    if !of.costs.is_empty() {
        said.push(ReportBlock::Heading(words.costs.to_owned()));
        said.push(ReportBlock::Table(costs(&of.costs, first, words)));
    }
    let machines: Vec<&Machine> = results.iter().map(|of| &of.header.machine).collect();
    let machines = tables::machine_table(&of.names, &machines, words);
    if !machines.is_empty() {
        said.extend([ReportBlock::Heading(words.machine.to_owned()), ReportBlock::Table(machines)]);
    }
    said.push(ReportBlock::Heading(words.caveats.to_owned()));
    let caveats = of.caveats.iter().filter(|of| !is_noise(of)).map(caveat);
    said.push(distrust(caveats.collect(), words));
    said
}

/// Labels of rows besides x: the tool, and parameters that distinguish its rows.
fn labels(all: &[ComparedRow]) -> Vec<String> {
    let label = |row: &ComparedRow| {
        let same = |other: &&ComparedRow| other.group == row.group && other.series == row.series;
        let varying = row.parameters.iter().filter(|(name, value)| {
            all.iter().filter(same).any(|other| other.parameters.get(*name) != Some(*value))
        });
        let parts: Vec<String> = varying.map(|(name, value)| format!("{name}={value}")).collect();
        match parts.is_empty() {
            true => row.series.clone(),
            false => format!("{}, {}", row.series, parts.join(", ")),
        }
    };
    all.iter().map(label).collect()
}

/// Tables of sweeps in the form of published studies: x down, tools across, all results in each cell: `6,916 /
/// 28,810 (416.5%)`.
fn studies(of: &ResultsComparison, words: &ReportWords) -> Vec<ReportTable> {
    let Some(x_name) = of.x_name.as_deref() else { return Vec::new() };
    let labels = labels(&of.rows);
    let swept = || of.rows.iter().zip(&labels).filter(|(row, _)| row.x.is_some());
    let groups = distinct(swept().map(|(row, _)| row.group.as_str()));
    let unit = MetricUnit::of(&of.metric);
    let name = words.metric(&of.metric);
    let metric = words.in_unit(name, unit.name);
    let first = of.names.first().map_or(NONE, String::as_str);
    let tables = groups.into_iter().map(|group| {
        let rows: Vec<(&ComparedRow, &String)> =
            swept().filter(|(row, _)| row.group == group).collect();
        let lines = distinct(rows.iter().map(|(_, label)| *label));
        let mut places: Vec<f64> = rows.iter().filter_map(|(row, _)| row.x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let names = lines.iter().map(|line| format!("#{line}"));
        let heads: Vec<String> = [format!("#{x_name}")].into_iter().chain(names).collect();
        let names = of.names.join(" / ");
        let caption = with(words.study_caption, &[&words.group(group), &metric, &names, first]);
        let mut table = ReportTable::new(caption, &heads);
        for x in places {
            let mut texts = vec![setting(x)];
            for line in &lines {
                let at = rows.iter().find(|(row, label)| row.x == Some(x) && label == line);
                texts.push(or_none(at.map(|(row, _)| sides_text(row, &unit))));
            }
            table.push(texts);
        }
        table
    });
    tables.collect()
}

/// `6,916 / 28,810 (416.5%)`.
fn sides_text(row: &ComparedRow, unit: &MetricUnit) -> String {
    let each = row.sides.iter().map(|side| {
        let Some(side) = side else { return NONE.to_owned() };
        let value = digits(unit.scaled(side.value.mid));
        match side.ratio {
            Some(ratio) => format!("{value} ({:.1}%)", 100.0 * ratio.ratio.mid),
            None => value,
        }
    });
    each.collect::<Vec<_>>().join(" / ")
}

/// Table of all rows: medians, then speeds with what follows from them, then means.
fn all_rows(of: &ResultsComparison, words: &ReportWords) -> ReportTable {
    let first = of.names.first().map_or(NONE, String::as_str);
    let unit = MetricUnit::of(&of.metric);
    let number = |pattern: &str, name: &String| format!("#{}", with(pattern, &[name]));
    let others = || of.names.iter().skip(1);
    let mut heads = vec![words.setting.to_owned()];
    heads.extend(of.names.iter().map(|name| format!("#{name}")));
    for name in others() {
        heads.extend(match of.names.len() {
            // The caption says which one.
            2 => [format!("#{}", words.speed), words.claim.to_owned()],
            _ => [number(words.times_as_fast, name), with(words.side_claim, &[name])],
        });
    }
    heads.extend(of.names.iter().map(|name| number(words.side_mean, name)));
    let metric = words.in_unit(words.metric(&of.metric), unit.name);
    let mut table = ReportTable::new(with(words.rows_caption, &[&metric, first]), &heads);
    for (row, mut label) in of.rows.iter().zip(labels(&of.rows)) {
        if !row.group.is_empty() {
            label = format!("{}: {label}", words.group(&row.group));
        }
        if let Some(x) = row.x {
            label.push_str(&format!(", {}={}", of.x_name.as_deref().unwrap_or("x"), setting(x)));
        }
        let mut texts = vec![label];
        let medians = row.sides.iter().map(|side| side.map(|side| unit.bare(&side.value)));
        texts.extend(medians.map(or_none));
        for side in row.sides.iter().skip(1) {
            let found = side.and_then(|side| side.ratio);
            texts.push(or_none(found.map(|found| speed(&found.ratio))));
            texts.push(or_none(found.map(|found| claim(found.claim, words).to_owned())));
        }
        let means = row.sides.iter().map(|side| side.map(|side| digits(unit.scaled(side.mean))));
        texts.extend(means.map(or_none));
        table.push(texts);
    }
    table.without_empty_columns()
}

fn costs(costs: &[MachineCost], say: &Sentences<'_>, words: &ReportWords) -> ReportTable {
    let number = |name: &str| format!("#{name}");
    let heads = [
        words.result.to_owned(),
        words.setting.to_owned(),
        number(words.price_hour),
        number("IOPS"),
        number(words.per_1m_iops),
        number(words.per_million_ios),
        number(words.per_gb),
        number(words.per_million_files),
    ];
    let mut table = ReportTable::new(words.costs_caption, &heads);
    for cost in costs {
        let basis = say.cost_basis(cost.basis, &cost.series);
        let of = match cost.group.is_empty() {
            true => basis.to_owned(),
            false => format!("{}: {basis}", cost.group),
        };
        let mut texts = vec![cost.name.clone(), of, digits(cost.per_hour)];
        let prices = [
            cost.iops,
            cost.per_1m_iops,
            cost.per_million_ios,
            cost.per_gb,
            cost.per_million_files,
        ];
        texts.extend(prices.map(|price| or_none(price.map(digits))));
        table.push(texts);
    }
    table.without_empty_columns()
}

const HEAD: &str = "group,series,x,parameters,result,metric,runs,median,low,high,mean,ratio,\
                    ratio_low,ratio_high,claim";

/// CSV (RFC 4180): a line for each setting of each result; ratios are speeds relative to the first result.
fn lines(of: &ResultsComparison) -> String {
    let words = words_in(Language::English);
    let mut out = format!("{HEAD}\r\n");
    for row in &of.rows {
        for (name, side) in of.names.iter().zip(&row.sides) {
            let Some(side) = side else { continue };
            let number = |value: f64| value.to_string();
            let mut fields = vec![
                row.group.clone(),
                row.series.clone(),
                row.x.map(number).unwrap_or_default(),
                pairs(&row.parameters),
                name.clone(),
                of.metric.clone(),
                side.runs.to_string(),
                number(side.value.mid),
                number(side.value.low),
                number(side.value.high),
                number(side.mean),
            ];
            fields.extend(match side.ratio {
                Some(found) => {
                    let of = found.ratio;
                    let claim = claim(found.claim, words).to_owned();
                    [number(of.mid), number(of.low), number(of.high), claim]
                }
                None => Default::default(),
            });
            out.push_str(&csv_line(&fields));
        }
    }
    out
}

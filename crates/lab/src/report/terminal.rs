//! Results of a bench for a terminal: verdict, tables, bars.

mod bars;
mod sheet;

use self::bars::BarScale;
use self::sheet::{BOLD, ColumnOverflow, FAINT, GAP, GREEN, TerminalSheet, YELLOW, columns, cut};
use super::block::ReportBlock;
use super::compared::blocks;
use super::escape;
use super::facts::{ReportFacts, ToolLine};
use super::number::{bytes, digits, percent, ratio};
use super::sentences::stretches_text;
use super::table::{NONE, ReportTable, or_none};
use super::tables::{self, grouped_label};
use super::words::{Lang, ReportWords, with};
use crate::analysis::{Analysis, Interval, ResultsComparison};
use crate::results::markup::TimeUnit;
use crate::results::{Cell, Results};

/// Most bars; with more settings only the best one of each tool is shown.
const BARS_MAX: usize = 40;

/// Most settings in the table.
const SETTINGS_MAX: usize = 40;

/// Options of terminal output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Width in columns (40 to 160).
    pub width: usize,
    /// True to emphasise with escape sequences (SGR, ECMA-48).
    pub color: bool,
    /// Unit of times; `None` for seconds.
    pub time: Option<TimeUnit>,
    /// True to sort by the metric, best first; else in the order of description.
    pub is_sorted: bool,
}

impl TerminalOptions {
    /// Options with this width, with or without colours.
    pub fn new(width: usize, color: bool) -> TerminalOptions {
        TerminalOptions { width, color, time: None, is_sorted: false }
    }
}

/// Formats results and analysis as lines.
pub fn terminal(results: &Results, analysis: &Analysis, look: &TerminalOptions) -> String {
    let facts = ReportFacts { results, analysis, time: look.time };
    let sheet = TerminalSheet::new(look.width, look.color);
    let mut page = TerminalPage { sheet, words: Lang::En.words(), is_sorted: look.is_sorted };
    page.whole(&facts);
    page.sheet.out
}

/// Formats a comparison as lines.
pub fn compared(
    of: &ResultsComparison,
    results: &[Results],
    width: usize,
    color: bool,
    lang: Lang,
) -> String {
    let mut sheet = TerminalSheet::new(width, color);
    for block in blocks(of, results, lang.words()) {
        match block {
            ReportBlock::Heading(text) => {
                if !sheet.out.is_empty() && !sheet.out.ends_with("\n\n") {
                    sheet.out.push('\n');
                }
                sheet.text(&text, "", BOLD);
            }
            ReportBlock::Text(text) => sheet.text(&text, GAP, ""),
            ReportBlock::List(texts) => texts.iter().for_each(|text| sheet.text(text, GAP, "")),
            ReportBlock::Table(table) => {
                sheet.text(&table.caption, GAP, FAINT);
                sheet.table(&table, ColumnOverflow::Below);
                sheet.out.push('\n');
            }
        }
    }
    sheet.out
}

struct TerminalPage {
    sheet: TerminalSheet,
    words: &'static ReportWords,
    is_sorted: bool,
}

impl TerminalPage {
    fn whole(&mut self, facts: &ReportFacts<'_>) {
        self.sheet.text(facts.title(), "", BOLD);
        self.sheet.out.push('\n');
        for sentence in &facts.analysis.verdict {
            self.sheet.text(sentence, "  ", BOLD);
        }
        for group in facts.groups() {
            self.group(facts, group);
        }
        self.controls(facts);
        for proof in &facts.analysis.proofs {
            let label = facts.cell(proof.cell).map(|cell| grouped_label(facts, cell));
            let of = &proof.elasticity;
            let text = format!(
                "{}: {}: {} ({})",
                label.unwrap_or_default(),
                proof.about,
                proof.sentence,
                ratio(of)
            );
            self.sheet.text(&text, "  ", "");
        }
        for caveat in &facts.analysis.caveats {
            self.sheet.text(&format!("! {caveat}"), "  ", YELLOW);
        }
    }

    fn group(&mut self, facts: &ReportFacts<'_>, group: &str) {
        self.sheet.out.push('\n');
        if facts.groups().len() > 1 {
            self.sheet.text(self.words.group(group), "", BOLD);
        }
        let mut lines = facts.lines(group);
        if self.is_sorted {
            let turn = if facts.header().more_is_better { -1.0 } else { 1.0 };
            let best = |line: &ToolLine<'_>| {
                let cell = facts.best(&line.cells);
                let value = cell.and_then(|cell| facts.value(cell.id));
                value.map_or(f64::INFINITY, |value| turn * value.mid)
            };
            lines.sort_by(|a, b| best(a).total_cmp(&best(b)));
        }
        self.tools(facts, group, &lines);
        self.bars(facts, &lines);
        self.settings(facts, &lines);
        for line in &lines {
            let Some(sweep) = line.sweep else { continue };
            let knee = sweep.knee.as_ref().map(|knee| {
                let x_name = facts.header().x_name.as_deref().unwrap_or("x");
                let x = format!("{x_name}={}", digits(knee.x));
                if knee.at_edge {
                    return format!("knee {}", with(self.words.more_at_edge, &[&x]));
                }
                format!("knee {}", with(self.words.at_share, &[&x, &percent(knee.share)]))
            });
            let limits = stretches_text(&sweep.stretches, self.words);
            let parts = knee.into_iter().chain(Some(limits).filter(|text| !text.is_empty()));
            let parts: Vec<String> = parts.collect();
            if !parts.is_empty() {
                self.sheet.text(&format!("{}: {}", line.series, parts.join("; ")), "  ", "");
            }
        }
    }

    /// Table of the best setting of each tool.
    fn tools(&mut self, facts: &ReportFacts<'_>, group: &str, lines: &[ToolLine<'_>]) {
        let reference = facts.reference(group);
        let time = facts.time.unwrap_or(TimeUnit::Seconds);
        let [user, sys] = ["#user", "#sys"].map(|name| format!("{name}, {}", time.sign()));
        let heads = ["tool", "setting", "#median [95 %]", "#ratio [95 %]", &user, &sys, "#memory"];
        let mut table = ReportTable::new("", &heads);
        for line in lines {
            let best = facts.best(&line.cells).or(line.cells.first().copied());
            let Some((cell, of)) = best.and_then(|cell| Some((cell, facts.summary(cell.id)?)))
            else {
                continue;
            };
            let against = facts.ratio_of(cell.id).map(|found| ratio(&found.ratio));
            let against =
                if reference == Some(cell.id) { "1".to_owned() } else { or_none(against) };
            let value = of.value.as_ref().map(|value| facts.unit().interval(value));
            let mut row =
                vec![line.series.to_owned(), facts.setting(cell), or_none(value), against];
            if of.runs > 0 {
                let [user, sys] = [of.user_s, of.sys_s].map(|s| digits(time.of_seconds(s)));
                row.extend([user, sys, bytes(of.rss_bytes)]);
            } else {
                row.extend([NONE, NONE, NONE].map(str::to_owned));
            }
            table.push_as(row, line.own);
        }
        self.sheet.table(&table, ColumnOverflow::Cut);
        if let Some(cell) = reference.and_then(|id| facts.cell(id)) {
            let text = format!("ratio: {}", with(self.words.compared_with, &[&facts.label(cell)]));
            self.sheet.text(&text, "  ", FAINT);
        }
    }

    /// Table of all settings: runs, mean, spread, times. Omitted if there are too many; report files contain
    /// them.
    fn settings(&mut self, facts: &ReportFacts<'_>, lines: &[ToolLine<'_>]) {
        let cells = cells(lines);
        if cells.len() > SETTINGS_MAX {
            return;
        }
        let (unit, time) = (facts.unit(), facts.time.unwrap_or(TimeUnit::Seconds));
        let times = ["#real", "#user", "#sys"].map(|name| format!("{name}, {}", time.sign()));
        let gain_head = tables::gain_head(facts, self.words);
        let heads: Vec<&str> = ["setting", &gain_head, "#runs", "#mean", "#σ", "#min", "#max"]
            .into_iter()
            .chain(times.iter().map(String::as_str))
            .collect();
        let mut table = ReportTable::new("", &heads);
        for (line, cell) in cells {
            let Some(of) = facts.summary(cell.id).filter(|of| of.runs > 0) else { continue };
            let value = |value: Option<f64>| or_none(value.map(|value| unit.text(value)));
            let mut row = vec![facts.label(cell), tables::gain(facts, cell), of.runs.to_string()];
            row.extend([of.mean, of.deviation, of.min, of.max].map(value));
            let times = [of.wall_s.map(|wall| wall.mid), Some(of.user_s), Some(of.sys_s)];
            row.extend(times.map(|s| or_none(s.map(|s| digits(time.of_seconds(s))))));
            table.push_as(row, line.own);
        }
        self.sheet.table(&table, ColumnOverflow::Below);
        self.sheet.out.push('\n');
    }

    /// Bars of medians; the knee is marked.
    fn bars(&mut self, facts: &ReportFacts<'_>, lines: &[ToolLine<'_>]) {
        let all = cells(lines);
        let chosen: Vec<(&ToolLine<'_>, &Cell)> = if all.len() <= BARS_MAX {
            all
        } else {
            lines.iter().filter_map(|line| Some((line, facts.best(&line.cells)?))).collect()
        };
        let values: Vec<(&ToolLine<'_>, &Cell, Interval)> = chosen
            .into_iter()
            .filter_map(|(line, cell)| Some((line, cell, *facts.value(cell.id)?)))
            .filter(|(_, _, value)| value.mid.is_finite() && value.mid >= 0.0)
            .collect();
        let name = |cell: &Cell| cut(&escape::terminal(&facts.label(cell)), self.sheet.width / 3);
        let names = values.iter().map(|(_, cell, _)| columns(&name(cell))).max().unwrap_or(0);
        let unit = facts.unit();
        let texts = values.iter().map(|(_, _, value)| columns(&unit.text(value.mid)));
        let text = texts.max().unwrap_or(0);
        // Two columns before, one between each, the mark at the end.
        let room = self.sheet.width.saturating_sub(names + text + 11).clamp(4, 60);
        let intervals: Vec<Interval> = values.iter().map(|(_, _, value)| *value).collect();
        let Some(scale) = BarScale::new(&intervals, room).filter(|_| values.len() > 1) else {
            return;
        };
        let mut out = Vec::new();
        for (line, cell, value) in &values {
            let label = name(cell);
            let knee =
                line.sweep.and_then(|sweep| sweep.knee.as_ref()).filter(|knee| !knee.at_edge);
            let mark =
                if knee.is_some_and(|knee| Some(knee.x) == cell.x) { " ◂ knee" } else { "" };
            let pad = " ".repeat(names.saturating_sub(columns(&label)));
            let (bar, value) = (scale.bar(value), unit.text(value.mid));
            out.push((format!("{GAP}{label}{pad} {bar} {value}{mark}"), line.own));
        }
        self.sheet.out.push('\n');
        for (shown, own) in out {
            self.sheet.line(&shown, if own { GREEN } else { "" });
        }
        if intervals.iter().any(|of| !of.is_point()) {
            self.sheet.text(
                "bars begin at 0; ▓ and ░: the 95 % interval of the median",
                GAP,
                FAINT,
            );
        }
        self.sheet.out.push('\n');
    }

    fn controls(&mut self, facts: &ReportFacts<'_>) {
        let Some(noise) = facts.analysis.noise else { return };
        self.sheet.out.push('\n');
        self.sheet.text(&with(self.words.noise, &[&percent(noise)]), "  ", FAINT);
    }
}

/// Cells of all lines.
fn cells<'a, 'b>(lines: &'b [ToolLine<'a>]) -> Vec<(&'b ToolLine<'a>, &'a Cell)> {
    let cells = lines.iter().flat_map(|line| line.cells.iter().map(move |cell| (line, *cell)));
    cells.collect()
}

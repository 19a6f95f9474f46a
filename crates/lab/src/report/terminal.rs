//! Results of a bench for a terminal: verdict, tables that fit the width, bars.

use crate::analysis::compare::ResultsComparison;
use crate::analysis::{Analysis, Interval, Lang};
use crate::escape;
use crate::report::comparison::blocks;
use crate::report::document::{NONE, ReportBlock, ReportTable, or_none};
use crate::report::facts::{ReportFacts, ToolLine};
use crate::report::number::{bytes, digits, percent, ratio};
use crate::report::tables;
use crate::report::tables::{grouped_label, stretches_text};
use crate::report::words::{ReportWords, with};
use crate::results::hyperfine::TimeUnit;
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
pub fn comparison(
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

// Terminal layout: wrapped text, and tables that fit the width.

/// Narrowest and widest layout, in columns.
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 160;
/// Space between columns.
const GAP: &str = "  ";

const BOLD: &str = "1";
pub(super) const FAINT: &str = "2";
pub(super) const GREEN: &str = "32";
pub(super) const YELLOW: &str = "33";

/// Treatment of columns that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnOverflow {
    /// The last ones are dropped.
    Cut,
    /// They follow below, each time after the first column.
    Below,
}

/// Output of a layout.
pub(super) struct TerminalSheet {
    pub(super) out: String,
    pub(super) width: usize,
    color: bool,
}

impl TerminalSheet {
    /// Creates an empty sheet of `width` columns (40 to 160). `color` enables escape sequences (SGR,
    /// ECMA-48).
    pub(super) fn new(width: usize, color: bool) -> TerminalSheet {
        TerminalSheet { out: String::new(), width: width.clamp(WIDTH_MIN, WIDTH_MAX), color }
    }

    /// Appends a text, wrapped; unsafe characters are replaced.
    pub(super) fn text(&mut self, text: &str, indent: &str, style: &str) {
        for line in wrapped(&escape::terminal(text), self.width - indent.len()) {
            self.line(&format!("{indent}{line}"), style);
        }
    }

    /// Appends a line unchanged.
    pub(super) fn line(&mut self, text: &str, style: &str) {
        if self.color && !style.is_empty() {
            self.out.push_str(&format!("\u{1b}[{style}m{text}\u{1b}[0m\n"));
        } else {
            self.out.push_str(text);
            self.out.push('\n');
        }
    }

    /// Appends a table, without its caption, with minimal column widths; numbers are right-aligned.
    pub(super) fn table(&mut self, table: &ReportTable, overflow: ColumnOverflow) {
        let most = (self.width - 2) / if overflow == ColumnOverflow::Cut { 3 } else { 2 };
        let clean = |texts: &Vec<String>| -> Vec<String> {
            texts.iter().map(|text| cut(&escape::terminal(text), most)).collect()
        };
        let (heads, rows) = (clean(&table.head), table.rows.iter().map(clean));
        let rows: Vec<(Vec<String>, bool)> = rows.zip(table.strong.iter().copied()).collect();
        let in_column = |at: usize| rows.iter().filter_map(move |(row, _)| row.get(at));
        let widths: Vec<usize> = heads
            .iter()
            .enumerate()
            .map(|(at, head)| {
                in_column(at).map(|text| columns(text)).fold(columns(head), usize::max)
            })
            .collect();
        let says = |at: &usize| in_column(*at).any(|text| !text.is_empty() && text != NONE);
        let mut left: Vec<usize> = (1..heads.len()).filter(says).collect();
        left.reverse();
        loop {
            // As many columns as fit, but at least one.
            let mut shown = vec![0];
            let mut room = widths.first().map_or(0, |first| first + GAP.len());
            while let Some(next) = left.last().copied() {
                room += widths[next] + GAP.len();
                if room > self.width && shown.len() > 1 {
                    break;
                }
                shown.push(next);
                left.pop();
            }
            self.some_columns(&heads, &rows, &shown, &widths, &table.numbers);
            if overflow == ColumnOverflow::Cut || left.is_empty() {
                return;
            }
            self.out.push('\n');
        }
    }

    fn some_columns(
        &mut self,
        heads: &[String],
        rows: &[(Vec<String>, bool)],
        shown: &[usize],
        widths: &[usize],
        numbers: &[bool],
    ) {
        let line = |texts: &[String]| {
            let each = shown.iter().map(|at| {
                let text = texts.get(*at).map_or("", String::as_str);
                let room = " ".repeat(widths[*at].saturating_sub(columns(text)));
                match numbers.get(*at) {
                    Some(true) => room + text,
                    _ => text.to_owned() + &room,
                }
            });
            format!("{GAP}{}", each.collect::<Vec<_>>().join(GAP)).trim_end().to_owned()
        };
        self.line(&line(heads), FAINT);
        for (row, own) in rows {
            self.line(&line(row), if *own { GREEN } else { "" });
        }
    }
}

/// Display width of a text: kana, kanji and other wide characters take two columns.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn width(c: char) -> usize {
    let is_wide = matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}');
    1 + usize::from(is_wide)
}

/// Truncates a text to `most` columns.
pub(super) fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |c: &char| {
        taken += width(*c);
        taken < most
    };
    let mut out: String = text.chars().take_while(fits).collect();
    out.push('…');
    out
}

/// Wraps a text to `most` columns, between words, or inside a longer word.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_owned();
        loop {
            let last = lines.last().map_or(0, |line| columns(line));
            let gap = usize::from(last > 0);
            if last + gap + columns(&word) <= most {
                if let Some(line) = lines.last_mut() {
                    line.push_str(if last > 0 { " " } else { "" });
                    line.push_str(&word);
                }
                break;
            }
            if last > 0 {
                lines.push(String::new());
                continue;
            }
            let mut taken = 0;
            let fits = |c: &char| {
                taken += width(*c);
                taken <= most
            };
            let begin: String = word.chars().take_while(fits).collect();
            word = word[begin.len()..].to_owned();
            lines.retain(|line| !line.is_empty());
            lines.extend([begin, String::new()]);
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

// Text bars: length proportional to the value from 0, with the interval at the end.

/// Intervals are drawn up to this multiple of the largest value: a wide one would leave no room for the bars.
const REACH: f64 = 1.5;

/// Scale of bars.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarScale {
    /// Columns of the longest bar with its interval.
    room: usize,
    /// Value of that many columns.
    full: f64,
}

impl BarScale {
    /// Scale on which all values fit. `None` if no value is above 0.
    pub(super) fn new(values: &[Interval], room: usize) -> Option<BarScale> {
        let most = |of: fn(&Interval) -> f64| {
            values.iter().map(of).filter(|value| value.is_finite()).fold(0.0, f64::max)
        };
        let largest = most(|of| of.mid);
        let full = most(|of| of.high).clamp(largest, REACH * largest);
        (full > 0.0).then_some(BarScale { room, full })
    }

    /// Draws `████▓▓░░`: up to the lower end of the interval, up to the value, and up to the upper end.
    /// Without a visible interval the value is drawn with a resolution of an eighth of a column.
    pub(super) fn bar(&self, of: &Interval) -> String {
        let eighths = |value: f64| {
            let share = (value / self.full).clamp(0.0, 1.0);
            (share * self.room as f64 * 8.0).round() as usize
        };
        let (low, mid, high) = (eighths(of.low), eighths(of.mid).max(1), eighths(of.high));
        let column = |eighths: usize| (eighths + 4) / 8;
        let mut out = String::new();
        if column(low) < column(mid) {
            out.push_str(&"█".repeat(column(low)));
            out.push_str(&"▓".repeat(column(mid) - column(low)));
        } else {
            let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
            out.push_str(&"█".repeat(mid / 8));
            out.push_str(parts[mid % 8]);
        }
        let taken = out.chars().count();
        out.push_str(&"░".repeat(column(high).saturating_sub(taken)));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("一二三 四", 4), ["一二", "三", "四"]);
        assert_eq!(wrapped("  ", 4), [""; 0]);
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("一二三", 5), "一二…");
        assert_eq!(columns("a一"), 3);
    }

    #[test]
    fn columns_without_room_are_left_out_or_come_below() {
        let long = "x".repeat(12);
        let texts = ["1", long.as_str(), long.as_str(), "", long.as_str()].map(str::to_owned);
        let mut table = ReportTable::new("", &["#a", "b", "c", "d", "e"]);
        table.push(texts.to_vec());
        let mut sheet = TerminalSheet::new(40, false);
        sheet.table(&table, ColumnOverflow::Cut);
        // The empty column takes no space; the last one does not fit.
        assert_eq!(sheet.out, format!("  a  b             c\n  1  {long}  {long}\n"));
        let mut sheet = TerminalSheet::new(40, false);
        sheet.table(&table, ColumnOverflow::Below);
        let below = format!("  a  b             c\n  1  {long}  {long}\n\n  a  e\n  1  {long}\n");
        assert_eq!(sheet.out, below);
        assert!(sheet.out.lines().all(|line| line.len() <= 40));
    }

    fn bars(values: &[(f64, f64, f64)], room: usize) -> Vec<String> {
        let of =
            |(low, mid, high): &(f64, f64, f64)| Interval { low: *low, mid: *mid, high: *high };
        let values: Vec<Interval> = values.iter().map(of).collect();
        let scale = BarScale::new(&values, room).unwrap();
        values.iter().map(|of| scale.bar(of)).collect()
    }

    #[test]
    fn bars_are_as_long_as_they_say() {
        let point = |value: f64| (value, value, value);
        assert_eq!(
            bars(&[point(1.0), point(0.5), point(0.28), point(0.0)], 4),
            ["████", "██", "█▏", "▏"]
        );
        // Twice the value is twice the length, because bars begin at 0.
        assert_eq!(
            bars(&[point(100.0), point(99.0), point(50.0)], 8),
            ["████████", "███████▉", "████"]
        );
    }

    #[test]
    fn intervals_are_at_their_end() {
        assert_eq!(bars(&[(6.0, 8.0, 10.0), (2.0, 3.0, 4.0)], 10), ["██████▓▓░░", "██▓░"]);
        // A wide interval is cut and leaves room for the bar.
        assert_eq!(bars(&[(0.1, 4.0, 900.0), (2.0, 2.0, 2.0)], 6), ["▓▓▓▓░░", "██"]);
        assert!(BarScale::new(&[], 4).is_none());
        assert!(BarScale::new(&[Interval { low: 0.0, mid: 0.0, high: 0.0 }], 4).is_none());
    }
}

//! Results of a bench for a terminal: the answer, one table that fits the width, caveats.

use crate::analysis::Analysis;
use crate::analysis::caveats::Caveat;
use crate::analysis::compare::ResultsComparison;
use crate::analysis::verdict::Finding;
use crate::escape;
use crate::report::comparison::blocks;
use crate::report::document::{NONE, ReportBlock, ReportTable};
use crate::report::facts::ReportFacts;
use crate::report::number::smallest_difference;
use crate::report::tables::{TimesExtent, grouped_label, times};
use crate::report::words::{Language, with, words_in};
use crate::results::Results;
use crate::results::hyperfine::TimeUnit;
use hakobu_explain::verdict::Conclusion;

/// Most settings in the table; of more, the best one of each tool is shown. Files have them all.
const SETTINGS_MAX: usize = 40;

/// Options of terminal output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Width in columns (40 to 160).
    pub width: usize,
    /// True to emphasise with escape sequences (SGR, ECMA-48).
    pub color: bool,
    /// Unit of times; `None` to choose one.
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
    let facts = ReportFacts { results, analysis, time: look.time, is_sorted: look.is_sorted };
    let words = words_in(Language::English);
    let say = facts.say(words);
    let mut sheet = TerminalSheet::new(look.width, look.color);
    sheet.text(facts.title(), "", BOLD);
    let is_failure = |of: &&Caveat| matches!(of, Caveat::WithoutRuns(..));
    let failures: Vec<Caveat> = analysis.caveats.iter().filter(is_failure).cloned().collect();
    if analysis.verdict == [Finding::Nothing] && !failures.is_empty() {
        // Why is all there is to say.
        for sentence in say.caveats(&failures) {
            sheet.text(&sentence, GAP, BOLD);
        }
        return sheet.out;
    }
    for sentence in say.verdict(&analysis.verdict) {
        sheet.text(&sentence, GAP, BOLD);
    }
    let groups = facts.groups();
    for group in &groups {
        let cells: usize = facts.lines(group).iter().map(|line| line.cells.len()).sum();
        let is_long = cells > SETTINGS_MAX;
        let extent = if is_long { TimesExtent::Best } else { TimesExtent::Brief };
        let table = times(&facts, group, words, extent).without_one_name();
        // Settings that are compared with one another have no second baseline.
        let has_gains = !analysis.gains.is_empty();
        let table = if has_gains { table.without(&[words.speed]) } else { table };
        // Rather than continue below, the table goes without the range.
        let table = match sheet.fits(&table) {
            true => table,
            false => table.without(&[words.least, words.most]),
        };
        if table.is_empty() {
            continue;
        }
        sheet.out.push('\n');
        // With one group the caption says nothing but the baseline.
        let (group, baseline) = table.caption.split_once(". ").unwrap_or((&table.caption, ""));
        let caption = match (groups.len(), has_gains) {
            (1, true) => "",
            (1, false) => baseline,
            (_, true) => group,
            (_, false) => &table.caption,
        };
        sheet.table(&table, ColumnOverflow::Below);
        sheet.text(caption, GAP, FAINT);
    }
    let mut notes: Vec<(String, &str)> = Vec::new();
    for proof in &analysis.proofs {
        // The verdict has those with an answer.
        let is_told = matches!(proof.says, Some(Conclusion::Bottleneck | Conclusion::NoEffect));
        if let Some(cell) = facts.cell(proof.cell).filter(|_| !is_told) {
            let text =
                with(words.in_group, &[&grouped_label(&facts, cell, words), &say.proof(proof)]);
            notes.push((text, ""));
        }
    }
    let is_noisy = analysis.verdict.iter().any(|of| matches!(of, Finding::Noisy(_)));
    if let Some(noise) = analysis.noise.filter(|_| !is_noisy) {
        notes.push((with(words.noise, &[&smallest_difference(noise)]), FAINT));
    }
    let caveats = say.caveats(&analysis.caveats).into_iter();
    notes.extend(caveats.map(|caveat| (format!("! {caveat}"), YELLOW)));
    if !notes.is_empty() {
        sheet.out.push('\n');
    }
    for (text, style) in notes {
        sheet.text(&text, GAP, style);
    }
    sheet.out
}

/// Formats a comparison as lines.
pub fn comparison(
    of: &ResultsComparison,
    results: &[Results],
    width: usize,
    color: bool,
    lang: Language,
) -> String {
    let mut sheet = TerminalSheet::new(width, color);
    for block in blocks(of, results, words_in(lang)) {
        match block {
            ReportBlock::Heading(text) => {
                if !sheet.out.is_empty() && !sheet.out.ends_with("\n\n") {
                    sheet.out.push('\n');
                }
                sheet.text(&text, "", BOLD);
            }
            ReportBlock::Text(text) | ReportBlock::Note(text) => sheet.text(&text, GAP, ""),
            ReportBlock::List(texts) | ReportBlock::Code(texts) => {
                texts.iter().for_each(|text| sheet.text(text, GAP, ""));
            }
            ReportBlock::Table(table) => {
                sheet.text(&table.caption, GAP, FAINT);
                sheet.table(&table, ColumnOverflow::Below);
                sheet.out.push('\n');
            }
            ReportBlock::Chart(_) | ReportBlock::Load(_) | ReportBlock::Details(..) => {}
        }
    }
    sheet.out
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

    /// True if a table has room for all of its columns side by side.
    fn fits(&self, table: &ReportTable) -> bool {
        let rows: Vec<_> = table.rows.iter().map(|row| (row.clone(), false)).collect();
        let all = column_widths(&table.head, &rows);
        all.iter().map(|width| width + GAP.len()).sum::<usize>() <= self.width
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
        let widths = column_widths(&heads, &rows);
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

/// Width of each column.
fn column_widths(heads: &[String], rows: &[(Vec<String>, bool)]) -> Vec<usize> {
    let in_column = |at: usize| rows.iter().filter_map(move |(row, _)| row.get(at));
    let widest = |(at, head): (usize, &String)| {
        in_column(at).map(|text| columns(text)).fold(columns(head), usize::max)
    };
    heads.iter().enumerate().map(widest).collect()
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
}

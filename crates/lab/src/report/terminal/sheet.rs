//! Terminal layout: wrapped text, and tables that fit the width.

use crate::report::escape;
use crate::report::table::{NONE, ReportTable};

/// Narrowest and widest layout, in columns.
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 160;
/// Space between columns.
pub(super) const GAP: &str = "  ";

pub(super) const BOLD: &str = "1";
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

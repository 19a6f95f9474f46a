//! What a bench says at its end, for a terminal: the verdict, tables, bars.

use super::escape;
use super::facts::{Facts, Line};
use super::number::{bytes, digits, percent, ratio};
use super::sentences::stretches_text;
use super::table::{NONE, or_none};
use super::tables::grouped_label;
use super::words::{Lang, Words, with};
use crate::analysis::Analysis;
use crate::results::{Cell, Results};

/// Narrower than this nothing can be shown side by side; wider, eyes lose the line.
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 160;
/// More bars than this are a list, not a picture: then only the best of each tool has one.
const BARS_MAX: usize = 40;
/// Between columns.
const GAP: &str = "  ";

const BOLD: &str = "1";
const FAINT: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";

/// Results and what they mean as lines no wider than `width` columns (40 to 160), each with its end.
/// With `color`, escape sequences (SGR, ECMA-48) set apart what matters most; without, there are
/// none.
pub fn terminal(results: &Results, analysis: &Analysis, width: usize, color: bool) -> String {
    let facts = Facts { results, analysis };
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut page = Page { out: String::new(), width, color, words: Lang::En.words() };
    page.whole(&facts);
    page.out
}

struct Page {
    out: String,
    width: usize,
    color: bool,
    words: &'static Words,
}

impl Page {
    fn whole(&mut self, facts: &Facts<'_>) {
        let header = facts.header();
        let title = if header.title.is_empty() { &header.name } else { &header.title };
        self.text(title, "", BOLD);
        self.out.push('\n');
        for sentence in &facts.analysis.verdict {
            self.text(sentence, "  ", BOLD);
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
            self.text(&text, "  ", "");
        }
        for caveat in &facts.analysis.caveats {
            self.text(&format!("! {caveat}"), "  ", YELLOW);
        }
    }

    fn group(&mut self, facts: &Facts<'_>, group: &str) {
        self.out.push('\n');
        if facts.groups().len() > 1 {
            self.text(self.words.group(group), "", BOLD);
        }
        let lines = facts.lines(group);
        self.tools(facts, group, &lines);
        self.bars(facts, &lines);
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
            let limits = stretches_text(&sweep.stretches, facts, self.words);
            let parts = knee.into_iter().chain(Some(limits).filter(|text| !text.is_empty()));
            let parts: Vec<String> = parts.collect();
            if !parts.is_empty() {
                self.text(&format!("{}: {}", line.series, parts.join("; ")), "  ", "");
            }
        }
    }

    /// The best setting of each tool.
    fn tools(&mut self, facts: &Facts<'_>, group: &str, lines: &[Line<'_>]) {
        let reference = facts.reference(group);
        let heads =
            ["tool", "setting", "median [95 %]", "ratio [95 %]", "user, s", "sys, s", "memory"];
        let mut rows: Vec<(Vec<String>, bool)> = Vec::new();
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
                row.extend([digits(of.user_s), digits(of.sys_s), bytes(of.rss_bytes)]);
            } else {
                row.extend([NONE, NONE, NONE].map(str::to_owned));
            }
            rows.push((row, line.own));
        }
        self.table(&heads, &rows);
        if let Some(cell) = reference.and_then(|id| facts.cell(id)) {
            let text = format!("ratio: {}", with(self.words.compared_with, &[&facts.label(cell)]));
            self.text(&text, "  ", FAINT);
        }
    }

    /// Columns as wide as they have to be; the last ones go where there is no room.
    fn table(&mut self, heads: &[&str], rows: &[(Vec<String>, bool)]) {
        let most = (self.width - 2) / 3;
        let clean = |text: &str| cut(&escape::terminal(text), most);
        let rows: Vec<(Vec<String>, bool)> = rows
            .iter()
            .map(|(row, own)| (row.iter().map(|text| clean(text)).collect(), *own))
            .collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|at| {
                let cells =
                    rows.iter().filter_map(|(row, _)| row.get(at)).map(|text| columns(text));
                cells.chain([columns(heads[at])]).max().unwrap_or(0)
            })
            .collect();
        let is_empty =
            |at: usize| rows.iter().all(|(row, _)| row[at].is_empty() || row[at] == NONE);
        let mut shown: Vec<usize> =
            (0..heads.len()).filter(|at| *at == 0 || !is_empty(*at)).collect();
        let wide = |shown: &[usize]| shown.iter().map(|at| widths[*at] + GAP.len()).sum::<usize>();
        while shown.len() > 2 && wide(&shown) > self.width {
            shown.pop();
        }
        let line = |texts: &dyn Fn(usize) -> String| {
            let each = shown.iter().map(|at| {
                let text = texts(*at);
                let room = " ".repeat(widths[*at].saturating_sub(columns(&text)));
                // Names at the left, numbers at the right.
                if *at < 2 { text + &room } else { room + &text }
            });
            format!("{GAP}{}", each.collect::<Vec<_>>().join(GAP)).trim_end().to_owned()
        };
        let head = line(&|at| heads[at].to_owned());
        self.line(&head, FAINT);
        for (row, own) in &rows {
            let text = line(&|at| row[at].clone());
            self.line(&text, if *own { GREEN } else { "" });
        }
    }

    /// Medians as bars; the knee has a mark.
    fn bars(&mut self, facts: &Facts<'_>, lines: &[Line<'_>]) {
        let all: Vec<(&Line<'_>, &Cell)> = lines
            .iter()
            .flat_map(|line| line.cells.iter().map(move |cell| (line, *cell)))
            .collect();
        let chosen: Vec<(&Line<'_>, &Cell)> = if all.len() <= BARS_MAX {
            all
        } else {
            lines.iter().filter_map(|line| Some((line, facts.best(&line.cells)?))).collect()
        };
        let values: Vec<(&Line<'_>, &Cell, f64)> = chosen
            .into_iter()
            .filter_map(|(line, cell)| Some((line, cell, facts.value(cell.id)?.mid)))
            .filter(|(_, _, value)| value.is_finite() && *value >= 0.0)
            .collect();
        let largest = values.iter().map(|(_, _, value)| *value).fold(0.0, f64::max);
        if values.len() < 2 || largest <= 0.0 {
            return;
        }
        let name = |cell: &Cell| cut(&escape::terminal(&facts.label(cell)), self.width / 3);
        let names = values.iter().map(|(_, cell, _)| columns(&name(cell))).max().unwrap_or(0);
        let unit = facts.unit();
        let texts = values.iter().map(|(_, _, value)| columns(&unit.text(*value)));
        let text = texts.max().unwrap_or(0);
        // Two before, one between each, the mark behind.
        let room = self.width.saturating_sub(names + text + 11).clamp(4, 60);
        let mut out = Vec::new();
        for (line, cell, value) in &values {
            let label = name(cell);
            let knee =
                line.sweep.and_then(|sweep| sweep.knee.as_ref()).filter(|knee| !knee.at_edge);
            let mark =
                if knee.is_some_and(|knee| Some(knee.x) == cell.x) { " ◂ knee" } else { "" };
            let pad = " ".repeat(names.saturating_sub(columns(&label)));
            let bar = bar(*value / largest, room);
            let shown = format!("{GAP}{label}{pad} {bar} {}{mark}", unit.text(*value));
            out.push((shown, line.own));
        }
        self.out.push('\n');
        for (shown, own) in out {
            self.line(&shown, if own { GREEN } else { "" });
        }
        self.out.push('\n');
    }

    fn controls(&mut self, facts: &Facts<'_>) {
        let Some(noise) = facts.analysis.noise else { return };
        self.out.push('\n');
        self.text(&with(self.words.noise, &[&percent(noise)]), "  ", FAINT);
    }

    /// A text of others or ours, in as many lines as it needs.
    fn text(&mut self, text: &str, indent: &str, style: &str) {
        for line in wrapped(&escape::terminal(text), self.width - indent.len()) {
            self.line(&format!("{indent}{line}"), style);
        }
    }

    fn line(&mut self, text: &str, style: &str) {
        if self.color && !style.is_empty() {
            self.out.push_str(&format!("\u{1b}[{style}m{text}\u{1b}[0m\n"));
        } else {
            self.out.push_str(text);
            self.out.push('\n');
        }
    }
}

/// A bar of a share of `room` columns, to an eighth of one.
fn bar(share: f64, room: usize) -> String {
    let parts = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = ((share.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize).max(1);
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.push(parts[eighths % 8]);
    }
    out
}

/// How many columns a text takes: kana, kanji and other wide characters take two.
fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn width(c: char) -> usize {
    let is_wide = matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}');
    1 + usize::from(is_wide)
}

/// No more than `most` columns of a text.
fn cut(text: &str, most: usize) -> String {
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

/// Lines of at most `most` columns, broken between words, or inside of one that is longer.
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
    fn bars_are_as_long_as_they_say() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.0, 4), "▏");
        assert_eq!(bar(0.28, 4), "█▏");
    }
}

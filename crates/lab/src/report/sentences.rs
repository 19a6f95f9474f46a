//! What the analysis found, in few words of either language; and the verdict in Japanese, made from
//! the same numbers as the English one.

use super::facts::{Facts, Line};
use super::number::{digits, ratio};
use super::words::{Lang, Words, with};
use crate::analysis::{Claim, Fit, Interval, Limiting, Model, Stretch};
use crate::results::Cell;
use hakobu_transfer::verdict::{Level, Resource};

/// In a verdict no more groups are gone through than a reader can take in; tables have all.
const GROUPS_MAX: usize = 4;

/// What may be said of two cells.
pub(super) fn claim(of: Claim, words: &Words) -> &'static str {
    match of {
        Claim::Faster => words.faster,
        Claim::Slower => words.slower,
        Claim::Same => words.same,
        Claim::Unclear => words.unclear,
    }
}

/// What limited: `the CPU (at the limit of: 1.97 of 2 CPUs used)`.
pub(super) fn limit_text(of: &Limiting, words: &Words) -> String {
    if of.level == Level::NotDetermined || of.resource == Resource::None {
        return level(Level::NotDetermined, words.lang).to_owned();
    }
    let (what, sure) = (resource(of.resource, words.lang), level(of.level, words.lang));
    match (words.lang, of.evidence.is_empty()) {
        // The evidence comes in English.
        (Lang::Ja, _) => format!("{what}（{sure}）"),
        (Lang::En, true) => format!("{what} ({sure})"),
        (Lang::En, false) => format!("{what} ({sure}: {})", of.evidence.join(", ")),
    }
}

/// How what limits changes along a sweep.
pub(super) fn stretches_text(stretches: &[Stretch], facts: &Facts<'_>, words: &Words) -> String {
    let each = stretches.iter().map(|stretch| match words.lang {
        Lang::En => stretch.sentence.clone(),
        Lang::Ja => {
            let x_name = facts.header().x_name.as_deref().unwrap_or("x");
            let (from, to) = (digits(stretch.from_x), digits(stretch.to_x));
            let place = if from == to { from } else { format!("{from}–{to}") };
            format!("{x_name} {place}: {}", limit_text(&stretch.limiting, words))
        }
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The curve through a sweep, and what it predicts.
pub(super) fn fit_text(fit: &Fit, facts: &Facts<'_>, words: &Words) -> String {
    let unit = facts.unit();
    let x_name = facts.header().x_name.as_deref().unwrap_or("x");
    let curve = match fit.model {
        Model::Usl => with(words.usl, &[&ratio(&fit.alpha), &ratio(&fit.beta)]),
        Model::Cap => {
            let at = fit.peak_x.map_or_else(String::new, |peak| ratio(&peak));
            with(words.cap, &[&format!("{x_name}={at}")])
        }
    };
    let twice = match fit.work {
        // A time falls where the rate rises: its ends change places.
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

/// The verdict in Japanese, one sentence each.
pub(super) fn verdict_ja(facts: &Facts<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let groups = facts.groups();
    for group in groups.iter().take(GROUPS_MAX) {
        let lines = facts.lines(group);
        let prefix = if groups.len() > 1 { format!("{group}: ") } else { String::new() };
        let all: Vec<&Cell> = lines.iter().flat_map(|line| line.cells.iter().copied()).collect();
        let Some(best) = facts.best(&all) else {
            said.push(format!("{prefix}有効な測定がありません。"));
            continue;
        };
        let value = facts.value(best.id).map(|value| facts.unit().interval(value));
        let label = facts.label(best);
        let value = value.unwrap_or_default();
        said.push(format!("{prefix}最も良いのは {label} で、{value} です。"));
        said.extend(compared_ja(facts, &lines, best, &prefix));
        said.extend(knee_ja(facts, &lines, best, &prefix));
        if let Some(of) = facts.summary(best.id) {
            said.push(match (of.limiting.level, of.limiting.resource) {
                (Level::NotDetermined, _) | (_, Resource::None) => {
                    format!("{prefix}{label} を何が制限したかは判定できません。")
                }
                (sure, what) => format!(
                    "{prefix}{label} を制限したのは{}です（{}）。",
                    resource(what, Lang::Ja),
                    level(sure, Lang::Ja)
                ),
            });
        }
    }
    said
}

/// The best tool against the one that all are compared with, or that against the next best.
fn compared_ja(facts: &Facts<'_>, lines: &[Line<'_>], best: &Cell, prefix: &str) -> Option<String> {
    let reference = facts.cell(facts.reference(&best.group)?)?;
    let others = lines.iter().filter(|line| line.series != reference.series);
    let others: Vec<&Cell> = others.filter_map(|line| facts.best(&line.cells)).collect();
    let other = facts.best(&others)?;
    let found = facts.ratio_of(other.id)?;
    let (a, b) = (facts.label(other), facts.label(reference));
    Some(match found.claim {
        Claim::Faster | Claim::Slower => {
            let (fast, slow, of) = if found.claim == Claim::Faster {
                (a, b, found.ratio)
            } else {
                let of = found.ratio;
                (b, a, Interval { low: 1.0 / of.high, mid: 1.0 / of.mid, high: 1.0 / of.low })
            };
            format!("{prefix}{fast} の速さは {slow} の {} 倍です。", ratio(&of))
        }
        Claim::Same => format!("{prefix}{a} と {b} の差は 2 % 以内です。"),
        Claim::Unclear => format!("{prefix}{a} と {b} に差があるとは言えません。"),
    })
}

fn knee_ja(facts: &Facts<'_>, lines: &[Line<'_>], best: &Cell, prefix: &str) -> Option<String> {
    let line = lines.iter().find(|line| line.series == best.series)?;
    let knee = line.sweep?.knee.as_ref()?;
    let x_name = facts.header().x_name.as_deref().unwrap_or("x");
    let (series, x) = (line.series, digits(knee.x));
    Some(if knee.at_edge {
        format!("{prefix}{series} は {x_name}={x} まで頭打ちになりません。")
    } else {
        format!("{prefix}{series} は {x_name}={x} で頭打ちになります（最良の 97 % 以上）。")
    })
}

/// How sure.
fn level(of: Level, lang: Lang) -> &'static str {
    match (lang, of) {
        (Lang::En, Level::NotDetermined) => "not determined",
        (Lang::En, Level::Consistent) => "consistent with",
        (Lang::En, Level::AtLimit) => "at the limit of",
        (Lang::En, Level::Proven) => "proven",
        (Lang::Ja, Level::NotDetermined) => "判定できない",
        (Lang::Ja, Level::Consistent) => "矛盾なし",
        (Lang::Ja, Level::AtLimit) => "上限に到達",
        (Lang::Ja, Level::Proven) => "実験で確認",
    }
}

fn resource(of: Resource, lang: Lang) -> &'static str {
    if lang == Lang::En {
        return of.words();
    }
    match of {
        Resource::Cpu => "CPU",
        Resource::Thread => "一つのスレッド",
        Resource::DiskIops => "ディスクの操作数 (IOPS)",
        Resource::DiskBandwidth => "ディスクの帯域",
        Resource::Network => "ネットワーク",
        Resource::Server => "サーバー",
        Resource::Lock => "カーネル内のロック",
        Resource::Latency => "レイテンシー",
        Resource::Source => "コピー元",
        Resource::Target => "コピー先",
        Resource::UserLimit => "設定された制限",
        Resource::Own => "hakobu 自身",
        Resource::None => "特定できないもの",
    }
}

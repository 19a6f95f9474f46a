//! Who is ahead, in words; and who is level with whom, as far as the runs tell.

use crate::analysis::rivals::{Best, Lead, lead};
use crate::analysis::say::{Join, beside, capital, listed, sentences, span, times};
use crate::analysis::view::View;
use crate::analysis::{Analysis, Lang, Ratio};

/// Groups that have a sentence each; more are counted.
const GROUPS_MAX: usize = 2;
/// Groups that are named where others are counted.
const NAMED_MAX: usize = 3;

/// A group and who is ahead in it.
type Led<'a> = (&'a str, Lead<'a>);

/// Who is ahead: nothing where no run counts.
pub(super) fn best(view: &View<'_>, analysis: &Analysis) -> Option<String> {
    let lang = view.lang;
    let groups = view.groups();
    let leads =
        groups.iter().filter_map(|group| Some((*group, lead(view, &analysis.cells, group)?)));
    let leads: Vec<Led<'_>> = leads.collect();
    if leads.is_empty() {
        return None;
    }
    if leads.len() <= GROUPS_MAX {
        let several = leads.len() > 1;
        let each = leads.iter().map(|(group, lead)| match several {
            true => format!("{group}: {}", of_lead(view, lead)),
            false => of_lead(view, lead),
        });
        let all = sentences(&each.collect::<Vec<_>>(), lang);
        return Some(if several && lang == Lang::En { capital(&all) } else { all });
    }
    let firsts = counted(leads.iter().map(|(_, lead)| lead.first.cell.series.as_str()));
    let is_alone = |series: &str| view.cells.iter().all(|cell| cell.series == series);
    let mut said = match firsts.as_slice() {
        [(series, _)] if is_alone(series) => return Some(groups_of_one(view, &leads)),
        [(series, count)] => {
            let by = by(&leads, lang);
            match lang {
                Lang::En => format!("{series} is the fastest in all {count} groups{by}."),
                Lang::Ja => format!("{count} グループすべてで {series} が最速です{by}。"),
            }
        }
        [(series, count), rest @ ..] => {
            let rest = rest.iter().map(|(series, count)| match lang {
                Lang::En => format!("{series} in {count}"),
                Lang::Ja => format!("{series} は {count} グループ"),
            });
            let rest = listed(&rest.collect::<Vec<_>>(), Join::And, lang);
            let all = leads.len();
            match lang {
                Lang::En => {
                    format!("{series} is the fastest in {count} of {all} groups, {rest}.")
                }
                Lang::Ja => format!(
                    "{all} グループのうち、{series} は {count} グループで最速、{rest}で最速です。"
                ),
            }
        }
        [] => return None,
    };
    for sentence in ties(&leads, &firsts, lang) {
        said.push_str(lang.pick(" ", ""));
        said.push_str(&sentence);
    }
    Some(said)
}

/// Each name once with how often it came, the commonest first, equals in their order.
fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => found.push((name, 1)),
        }
    }
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}

/// What is level with each that is ahead somewhere, and where: `Level with hakobu, as far as the runs
/// tell: rsync in small and deep.`
fn ties(leads: &[Led<'_>], firsts: &[(&str, usize)], lang: Lang) -> Vec<String> {
    let mut said = Vec::new();
    for unsure in [false, true] {
        for (first, _) in firsts {
            let of_first = leads
                .iter()
                .filter(|(_, lead)| lead.first.cell.series == *first && lead.unsure == unsure);
            // Each rival with the groups in which it is level.
            let mut rivals: Vec<(&str, Vec<String>)> = Vec::new();
            for (group, lead) in of_first {
                for tied in &lead.tied {
                    let series = tied.cell.series.as_str();
                    match rivals.iter_mut().find(|(known, _)| *known == series) {
                        Some((_, groups)) => groups.push((*group).to_owned()),
                        None => rivals.push((series, vec![(*group).to_owned()])),
                    }
                }
            }
            if rivals.is_empty() {
                continue;
            }
            let each = rivals.iter().map(|(series, groups)| {
                let groups = places(groups, lang);
                match lang {
                    Lang::En => format!("{series} in {groups}"),
                    Lang::Ja => format!("{series}（{groups}）"),
                }
            });
            let each = each.collect::<Vec<_>>().join(lang.pick("; ", "、"));
            said.push(match (unsure, lang) {
                (false, Lang::En) => {
                    format!("Level with {first}, as far as the runs tell: {each}.")
                }
                (false, Lang::Ja) => format!("{first} と互角（測定では差が見えない）: {each}。"),
                (true, Lang::En) => format!("Too few runs to tell {first} from {each}."),
                (true, Lang::Ja) => {
                    format!("測定が少なく、{first} との差を断定できないもの: {each}。")
                }
            });
        }
    }
    said
}

/// Names of groups; many are counted.
fn places(groups: &[String], lang: Lang) -> String {
    let mut named: Vec<String> = groups.iter().take(NAMED_MAX).cloned().collect();
    let more = groups.len() - named.len();
    if more > 0 {
        named.push(lang.pick("{} more", "ほか {}").replace("{}", &more.to_string()));
    }
    listed(&named, Join::And, lang)
}

/// How many times as fast as the next, over groups where that is claimed.
fn by(leads: &[Led<'_>], lang: Lang) -> String {
    let ratios = || leads.iter().filter_map(|(_, lead)| Some(lead.next.as_ref()?.1.ratio.mid));
    let all = leads.iter().all(|(_, lead)| lead.tied.is_empty());
    match (ratios().reduce(f64::min), ratios().reduce(f64::max)) {
        (Some(least), Some(most)) if all => {
            let span = span(&times(least), &times(most), lang);
            match lang {
                Lang::En => format!(", {span} times as fast as the next"),
                Lang::Ja => format!("（次点の {span} 倍の速さ）"),
            }
        }
        _ => String::new(),
    }
}

/// Where there is only one tool: what it reaches where.
fn groups_of_one(view: &View<'_>, leads: &[Led<'_>]) -> String {
    let words: Vec<String> = leads
        .iter()
        .map(|(group, lead)| format!("{group}: {}", reached(view, &lead.first)))
        .collect();
    match view.lang {
        Lang::En => format!("The best of each group: {}.", words.join("; ")),
        Lang::Ja => format!("各グループの最良: {}。", words.join("、")),
    }
}

fn of_lead(view: &View<'_>, lead: &Lead<'_>) -> String {
    let lang = view.lang;
    let (name, reached) = (&lead.first.cell.series, reached(view, &lead.first));
    let next = lead.next.as_ref().map(|(best, ratio)| {
        let (by, within, than) = (times(ratio.ratio.mid), within(ratio, lang), &best.cell.series);
        match lang {
            Lang::En => format!("{by} times as fast as {than}{within}"),
            Lang::Ja => format!("{than} の {by} 倍{within}の速さ"),
        }
    });
    let tied: Vec<String> = lead.tied.iter().map(|best| best.cell.series.clone()).collect();
    match (tied.is_empty(), next, lang) {
        (true, None, Lang::En) => format!("{name} at its best: {reached}"),
        (true, None, Lang::Ja) => format!("{name} の最良は {reached} です"),
        (true, Some(next), Lang::En) => format!("{name} is the fastest ({reached}), {next}"),
        (true, Some(next), Lang::Ja) => {
            format!("最も速いのは {name}（{reached}）で、{next}です")
        }
        (false, _, _) if lead.unsure => {
            let than = listed(&tied, Join::And, lang);
            match lang {
                Lang::En => {
                    format!("{name} is ahead of {than} ({reached}), by too few runs to claim it")
                }
                Lang::Ja => format!(
                    "{name} が {than} より速い（{reached}）ものの、測定が少なく断定できません"
                ),
            }
        }
        (false, next, _) => {
            let all: Vec<String> = [name.clone()].into_iter().chain(tied).collect();
            let all = listed(&all, Join::And, lang);
            let comma = lang.pick(", ", "、");
            let next = next.map(|next| format!("{comma}{next}")).unwrap_or_default();
            match lang {
                Lang::En => {
                    format!("{all} are level, as far as the runs tell ({reached}){next}")
                }
                Lang::Ja => {
                    format!("{all} は互角です（{reached}{next}、測定では差が見えません）")
                }
            }
        }
    }
}

/// ` (2.9 to 3.4)`, `（2.9〜3.4 倍）`.
fn within(ratio: &Ratio, lang: Lang) -> String {
    let (low, high) = (times(ratio.ratio.low), times(ratio.ratio.high));
    let span = span(&low, &high, lang);
    match (low == high, lang) {
        (true, _) => String::new(),
        (false, Lang::En) => format!(" ({span})"),
        (false, Lang::Ja) => format!("（{span} 倍）"),
    }
}

/// `2.34 s with 8 jobs`, `8 ジョブで 2.34 s`.
fn reached(view: &View<'_>, best: &Best<'_>) -> String {
    let value = view.measured(best.value);
    match (best.cell.x.map(|x| view.of_x(x)), view.lang) {
        (Some(x), Lang::En) => format!("{value} with {x}"),
        (Some(x), Lang::Ja) => format!("{} {value}", beside(&x, "で")),
        (None, _) => value,
    }
}

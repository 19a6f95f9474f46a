//! Sentence about the fastest tool and the tools within noise of it.

use crate::analysis::rivals::{BestCell, LeadingTool, lead};
use crate::analysis::say::{Conjunction, beside, capital, listed, sentences, span, times};
use crate::analysis::view::ResultsView;
use crate::analysis::{Analysis, Lang, SpeedRatio};

/// Most groups with a sentence each; more are counted.
const GROUPS_MAX: usize = 2;
/// Most groups, and most rivals, that are named.
const NAMED_MAX: usize = 3;

/// A group and its leading tool.
type GroupLead<'a> = (&'a str, LeadingTool<'a>);

/// Sentence about the fastest tools; `None` if no run counts.
pub(super) fn best(view: &ResultsView<'_>, analysis: &Analysis) -> Option<String> {
    let lang = view.lang;
    let groups = view.groups();
    let leads =
        groups.iter().filter_map(|group| Some((*group, lead(view, &analysis.cells, group)?)));
    let leads: Vec<GroupLead<'_>> = leads.collect();
    if leads.is_empty() {
        return None;
    }
    let is_alone = |series: &str| view.cells.iter().all(|cell| cell.series == series);
    if leads.len() > 1 && is_alone(&leads[0].1.first.cell.series) {
        return Some(groups_of_one(view, &leads));
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
    let mut said = match firsts.as_slice() {
        [(series, count)] => {
            let by = lead_over_next(&leads, lang);
            match lang {
                Lang::En => format!("{series} was fastest in all {count} groups{by}."),
                Lang::Ja => format!("{count} グループすべてで {series} が最速です{by}。"),
            }
        }
        [(series, count), rest @ ..] => {
            let rest = rest.iter().map(|(series, count)| match lang {
                Lang::En => format!("{series} in {count}"),
                Lang::Ja => format!("{count} グループで {series}"),
            });
            let rest: Vec<String> = rest.collect();
            let rest = lang.pick(listed(&rest, Conjunction::And, lang), rest.join("、"));
            let all = leads.len();
            match lang {
                Lang::En => {
                    format!("{series} was fastest in {count} of {all} groups, {rest}.")
                }
                Lang::Ja => {
                    format!("{all} グループ中 {count} グループで {series}、{rest} が最速です。")
                }
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

/// Distinct names with their counts, most frequent first, ties in order of appearance.
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

/// Rivals within noise of each tool that is fastest somewhere: `Within noise of hakobu: rsync in small
/// and deep.` Groups with too few runs are counted.
fn ties(leads: &[GroupLead<'_>], firsts: &[(&str, usize)], lang: Lang) -> Vec<String> {
    let mut said = Vec::new();
    for (first, _) in firsts {
        let of_first =
            leads.iter().filter(|(_, lead)| lead.first.cell.series == *first && !lead.unsure);
        // Each rival with the groups in which it is within noise.
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
        let more = rivals.len().saturating_sub(NAMED_MAX);
        let each = rivals.iter().take(NAMED_MAX).map(|(series, groups)| {
            let groups = places(groups, leads.len(), lang);
            match lang {
                Lang::En => format!("{series} in {groups}"),
                Lang::Ja => format!("{series}（{groups}）"),
            }
        });
        let mut each: Vec<String> = each.collect();
        if more > 0 {
            each.push(match lang {
                Lang::En => format!("{more} more"),
                Lang::Ja => format!("ほか {more}"),
            });
        }
        let each = each.join(lang.pick("; ", "、"));
        if !each.is_empty() {
            said.push(match lang {
                Lang::En => format!("Within noise of {first}: {each}."),
                Lang::Ja => format!("{first} との差は次のツールで誤差の範囲です: {each}。"),
            });
        }
    }
    said.extend(too_few(leads, lang));
    said
}

/// Sentence about the groups in which too few runs were made for a claim.
fn too_few(leads: &[GroupLead<'_>], lang: Lang) -> Option<String> {
    let (all, unsure) = (leads.len(), leads.iter().filter(|(_, lead)| lead.unsure).count());
    match (unsure, lang) {
        (0, _) => None,
        (_, Lang::En) if unsure == all => Some("There are too few runs to be sure.".to_owned()),
        (_, Lang::Ja) if unsure == all => Some("測定が少なく、断定できません。".to_owned()),
        (_, Lang::En) => {
            Some(format!("In {unsure} of {all} groups there are too few runs to be sure."))
        }
        (_, Lang::Ja) => {
            Some(format!("{all} グループ中 {unsure} グループは測定が少なく、断定できません。"))
        }
    }
}

/// Groups in a sentence: named if they are few and short, else counted.
fn places(groups: &[String], all: usize, lang: Lang) -> String {
    let count = groups.len();
    let is_short = count <= NAMED_MAX && groups.iter().all(|group| !group.contains(','));
    match lang {
        _ if is_short && count < all => listed(groups, Conjunction::And, lang),
        Lang::En if count == all => format!("all {all} groups"),
        Lang::En => format!("{count} of {all} groups"),
        Lang::Ja if count == all => format!("{all} グループすべて"),
        Lang::Ja => format!("{count} グループ"),
    }
}

/// Speed relative to the runner-up, over groups where a difference is claimed.
fn lead_over_next(leads: &[GroupLead<'_>], lang: Lang) -> String {
    let ratios = || leads.iter().filter_map(|(_, lead)| Some(lead.next.as_ref()?.1.ratio.mid));
    let all = leads.iter().all(|(_, lead)| lead.tied.is_empty());
    match (ratios().reduce(f64::min), ratios().reduce(f64::max)) {
        (Some(least), Some(most)) if all => {
            let span = span(&times(least), &times(most), lang);
            match lang {
                Lang::En => format!(", {span} × as fast as the next"),
                Lang::Ja => format!("（2 位の {span} 倍の速さ）"),
            }
        }
        _ => String::new(),
    }
}

/// For a single tool: its value in each group.
fn groups_of_one(view: &ResultsView<'_>, leads: &[GroupLead<'_>]) -> String {
    let words: Vec<String> = leads
        .iter()
        .map(|(group, lead)| format!("{group}: {}", reached(view, &lead.first)))
        .collect();
    match view.lang {
        Lang::En => format!("Best of each group: {}.", words.join("; ")),
        Lang::Ja => format!("各グループの最良値: {}。", words.join("、")),
    }
}

fn of_lead(view: &ResultsView<'_>, lead: &LeadingTool<'_>) -> String {
    let lang = view.lang;
    let (name, reached) = (&lead.first.cell.series, reached(view, &lead.first));
    let next = lead.next.as_ref().map(|(best, ratio)| {
        let (by, within, than) = (times(ratio.ratio.mid), within(ratio, lang), &best.cell.series);
        match lang {
            Lang::En => format!("{by} × as fast as {than}{within}"),
            Lang::Ja => format!("{than} の {by} 倍{within}の速さ"),
        }
    });
    let tied: Vec<String> = lead.tied.iter().map(|best| best.cell.series.clone()).collect();
    match (tied.is_empty(), next, lang) {
        (true, None, Lang::En) => format!("{name}: {reached} at best"),
        (true, None, Lang::Ja) => format!("{name} の最良値は {reached} です"),
        (true, Some(next), Lang::En) => format!("{name} was fastest ({reached}), {next}"),
        (true, Some(next), Lang::Ja) => {
            format!("最も速いのは {name}（{reached}）で、{next}です")
        }
        (false, _, _) if lead.unsure => {
            let than = listed(&tied, Conjunction::And, lang);
            match lang {
                Lang::En => {
                    format!(
                        "{name} was ahead of {than} ({reached}), but with too few runs to be sure"
                    )
                }
                Lang::Ja => format!(
                    "{name} は {than} より速い結果（{reached}）ですが、測定が少なく断定できません"
                ),
            }
        }
        (false, next, _) => {
            let all: Vec<String> = [name.clone()].into_iter().chain(tied).collect();
            let all = listed(&all, Conjunction::And, lang);
            let comma = lang.pick(", ", "、");
            let next = next.map(|next| format!("{comma}{next}")).unwrap_or_default();
            match lang {
                Lang::En => {
                    format!("{all} were equally fast within noise ({reached}){next}")
                }
                Lang::Ja => {
                    format!("{all} の差は誤差の範囲です（{reached}{next}）")
                }
            }
        }
    }
}

/// ` (2.9 to 3.4)`, `（2.9〜3.4 倍）`.
fn within(ratio: &SpeedRatio, lang: Lang) -> String {
    let (low, high) = (times(ratio.ratio.low), times(ratio.ratio.high));
    let span = span(&low, &high, lang);
    match (low == high, lang) {
        (true, _) => String::new(),
        (false, Lang::En) => format!(" ({span})"),
        (false, Lang::Ja) => format!("（{span} 倍）"),
    }
}

/// `2.34 s with 8 jobs`, `8 ジョブで 2.34 s`.
fn reached(view: &ResultsView<'_>, best: &BestCell<'_>) -> String {
    let value = view.measured(best.value);
    match (best.cell.x.map(|x| view.of_x(x)), view.lang) {
        (Some(x), Lang::En) => format!("{value} with {x}"),
        (Some(x), Lang::Ja) => format!("{} {value}", beside(&x, "で")),
        (None, _) => value,
    }
}

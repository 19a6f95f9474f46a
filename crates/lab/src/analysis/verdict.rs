//! Verdict of a campaign in at most four sentences: the fastest tool, the sufficient number of jobs, the limit, and what
//! would help.

use crate::analysis::fit::FitModel;
use crate::analysis::limits::{LimitingResource, SweepStretch, by};
use crate::analysis::proofs::ProofFinding;
use crate::analysis::ranking::{BestCell, LeadingTool, lead};
use crate::analysis::statistics::SpeedRatio;
use crate::analysis::sweeps::Knee;
use crate::analysis::view::ResultsView;
use crate::analysis::words::{
    Conjunction, beside, capital, enumeration, is_many, percent, rate, sentences, span, times,
};
use crate::analysis::{Analysis, Lang, SENTENCES_MAX, Sweep};
use hakobu_explain::verdict::Conclusion;

/// Most sweeps named in a sentence.
const SWEEPS_MAX: usize = 3;
/// Most sweeps whose limit is stated.
const LIMITED_MAX: usize = 2;
/// Most stretches of a sweep that are stated one by one.
const STRETCHES_MAX: usize = 3;

/// The verdict: one to four sentences.
pub(super) fn verdict(
    view: &ResultsView<'_>,
    analysis: &Analysis,
    found: &[ProofFinding],
) -> Vec<String> {
    let Some(best) = best(view, analysis) else {
        let said = view.lang.pick(
            "No run succeeded, so there is no result.",
            "成功した測定がないため、結果はありません。",
        );
        return vec![said.to_owned()];
    };
    let sweeps = sweeps_to_report(view, analysis);
    let is_alone = is_one_tool(view, &sweeps);
    // For one tool the sufficient number of jobs comes first; for several the fastest tool.
    let mut said = if is_alone { Vec::new() } else { vec![best] };
    said.extend(knees(view, analysis, &sweeps, is_alone));
    said.extend(limits(view, analysis, &sweeps, found, is_alone));
    said.extend(predicts(view, &sweeps, is_alone).filter(|_| !found.iter().any(is_clear)));
    said.truncate(SENTENCES_MAX);
    said
}

/// True if all cells are sweeps of one tool.
fn is_one_tool(view: &ResultsView<'_>, sweeps: &[&Sweep]) -> bool {
    let Some(first) = sweeps.first() else { return false };
    view.cells.iter().all(|cell| cell.series == first.series)
        && sweeps.iter().all(|sweep| sweep.series == first.series)
}

/// Sweeps to report: those of the first group that has any, hakobu's first. For one tool, those of each
/// group.
fn sweeps_to_report<'a>(view: &ResultsView<'_>, analysis: &'a Analysis) -> Vec<&'a Sweep> {
    let with_knee = |sweep: &&Sweep| sweep.knee.is_some();
    let mut sweeps: Vec<&Sweep> = analysis.sweeps.iter().filter(with_knee).collect();
    let Some(group) = sweeps.first().map(|sweep| &sweep.group) else { return sweeps };
    if !is_one_tool(view, &sweeps) {
        sweeps.retain(|sweep| sweep.group == *group);
    }
    let is_own = |sweep: &Sweep| {
        sweep.cells.first().and_then(|id| view.cell(*id)).is_some_and(|cell| cell.own)
    };
    sweeps.sort_by_key(|sweep| !is_own(sweep));
    sweeps.truncate(SWEEPS_MAX);
    sweeps
}

/// Sufficient number of jobs: `8 jobs are enough (99 % of the best).`
fn knees(
    view: &ResultsView<'_>,
    analysis: &Analysis,
    sweeps: &[&Sweep],
    is_alone: bool,
) -> Option<String> {
    let several = sweeps.len() > 1;
    let each = sweeps.iter().filter_map(|sweep| {
        let knee = sweep.knee?;
        let value = || Some(view.measured(value_at(view, analysis, sweep, knee.x)?));
        let value = (is_alone && !several).then(value).flatten();
        Some((knee, &sweep.group, enough(view, &sweep.series, &knee, value, is_alone)))
    });
    let each: Vec<(Knee, &String, String)> = each.collect();
    let (first, ..) = each.first()?;
    let is_same = |knee: &Knee| (knee.x, knee.at_edge) == (first.x, first.at_edge);
    let words: Vec<String> = match is_alone && several {
        // One answer for all groups, or one for each.
        true if each.iter().all(|(knee, ..)| is_same(knee)) => {
            each.into_iter().take(1).map(|(.., words)| words).collect()
        }
        true => each.into_iter().map(|(_, group, words)| format!("{group}: {words}")).collect(),
        false => each.into_iter().map(|(.., words)| words).collect(),
    };
    let place = if is_alone { String::new() } else { place(view, sweeps) };
    let said = format!("{place}{}", sentences(&words, view.lang));
    Some(if view.lang == Lang::En { capital(&said) } else { said })
}

/// Median of a sweep at x.
fn value_at(view: &ResultsView<'_>, analysis: &Analysis, sweep: &Sweep, x: f64) -> Option<f64> {
    let id = sweep.cells.iter().find(|id| view.cell(**id).is_some_and(|cell| cell.x == Some(x)))?;
    Some(analysis.cells.iter().find(|of| of.cell == *id)?.value?.mid)
}

/// Sufficient number for one tool; `value` is the metric there.
fn enough(
    view: &ResultsView<'_>,
    series: &str,
    knee: &Knee,
    value: Option<String>,
    is_alone: bool,
) -> String {
    let at = view.of_x(knee.x);
    let (are, share) =
        (if is_many(knee.x, view.x_name()) { "are" } else { "is" }, share_of(knee.share));
    match view.lang {
        Lang::En => {
            let of = if is_alone { String::new() } else { format!(" for {series}") };
            let value = value.map(|value| format!("{value}, ")).unwrap_or_default();
            let only = value.trim_end_matches([',', ' ']);
            let only = if only.is_empty() { String::new() } else { format!(" ({only})") };
            match (knee.at_edge, knee.x < knee.best_x) {
                (true, _) => format!(
                    "{at} {are} best{of}{only}, at the end of the sweep, so more may be faster"
                ),
                (false, true) => format!("{at} {are} enough{of} ({value}{share} of the best)"),
                (false, false) => format!("{at} {are} best{of}{only}"),
            }
        }
        Lang::Ja => {
            let of = if is_alone { String::new() } else { format!("{series} は ") };
            let value = value.map(|value| format!("{value}、")).unwrap_or_default();
            let only = value.trim_end_matches('、');
            let only = if only.is_empty() { String::new() } else { format!("（{only}）") };
            match (knee.at_edge, knee.x < knee.best_x) {
                (true, _) => format!(
                    "{of}{}{only}。スイープの上限なので、さらに増やすと速くなる可能性があります",
                    beside(&at, "が最良です")
                ),
                (false, true) => {
                    format!("{of}{}（{value}最良値の {share}）", beside(&at, "で十分です"))
                }
                (false, false) => format!("{of}{}{only}", beside(&at, "が最良です")),
            }
        }
    }
}

/// Share of the best, such that `99.8 %` is not rounded to `100 %`.
fn share_of(share: f64) -> String {
    match share {
        0.995..0.9995 => format!("{:.1} %", share * 100.0),
        _ => percent(share.min(1.0)),
    }
}

/// Group of the sweeps, if there are several.
fn place(view: &ResultsView<'_>, sweeps: &[&Sweep]) -> String {
    let group = sweeps.first().map_or("", |sweep| sweep.group.as_str());
    match view.groups().len() {
        0 | 1 => String::new(),
        _ => format!("{group}: "),
    }
}

/// True if an experiment has a conclusion.
fn is_clear(found: &ProofFinding) -> bool {
    matches!(found.says, Some(Conclusion::Bottleneck | Conclusion::NoEffect))
}

/// The limit: from experiments if one found it, else from the signals; then experiments without effect.
fn limits(
    view: &ResultsView<'_>,
    analysis: &Analysis,
    sweeps: &[&Sweep],
    found: &[ProofFinding],
    is_alone: bool,
) -> Option<String> {
    let lang = view.lang;
    let mut clear: Vec<&ProofFinding> = found.iter().filter(|of| is_clear(of)).collect();
    clear.sort_by_key(|of| of.says == Some(Conclusion::NoEffect));
    let mut told: Vec<(&str, Option<Conclusion>)> = Vec::new();
    clear.retain(|of| {
        let key = (of.proof.changed.as_str(), of.says);
        let is_new = !told.contains(&key);
        told.push(key);
        is_new
    });
    clear.truncate(SWEEPS_MAX);
    let shown: Vec<String> = clear.iter().map(|of| of.short.clone()).collect();
    let shown = shown.join(lang.pick("; ", "、"));
    match clear.first() {
        Some(first) if first.says == Some(Conclusion::Bottleneck) => {
            let of =
                if is_alone { String::new() } else { view.cell(first.proof.cell)?.series.clone() };
            let follows = match (of.is_empty(), lang) {
                (true, _) => first.subject.clone(),
                (false, Lang::En) => format!("{} {of}", first.subject),
                (false, Lang::Ja) => format!("{of} の{}", first.subject),
            };
            Some(match lang {
                Lang::En => capital(&format!("{follows}: {shown}.")),
                Lang::Ja => format!("{follows}。{shown}。"),
            })
        }
        Some(_) => Some(match (signals(view, analysis, sweeps, is_alone), lang) {
            (Some(said), Lang::En) => format!("{said} {}.", capital(&shown)),
            (None, Lang::En) => format!("{}.", capital(&shown)),
            (said, Lang::Ja) => format!("{}{shown}。", said.unwrap_or_default()),
        }),
        None => signals(view, analysis, sweeps, is_alone),
    }
}

/// The limit by signals: along the sweep, or at the best cell if nothing is swept.
fn signals(
    view: &ResultsView<'_>,
    analysis: &Analysis,
    sweeps: &[&Sweep],
    is_alone: bool,
) -> Option<String> {
    let lang = view.lang;
    let of_cell = |id: u32| analysis.cells.iter().find(|of| of.cell == id).map(|of| &of.limiting);
    if sweeps.is_empty() {
        let group = *view.groups().first()?;
        let first = lead(view, &analysis.cells, group)?.first.cell;
        return Some(of_cell(first.id)?.sentence(&view.name(first), lang));
    }
    // The fastest cell may choose its own number of jobs and is then not part of a sweep.
    let group = sweeps.first().map_or("", |sweep| sweep.group.as_str());
    let ahead = lead(view, &analysis.cells, group).map(|lead| lead.first.cell);
    let alone = ahead.filter(|cell| !sweeps.iter().any(|sweep| sweep.cells.contains(&cell.id)));
    let alone = alone.and_then(|cell| {
        let of = of_cell(cell.id).filter(|of| of.is_determined())?;
        Some((view.name(cell), vec![by(of, "", lang)]))
    });
    let most = if is_alone { 1 } else { LIMITED_MAX };
    let swept = sweeps.iter().take(most).filter(|sweep| !sweep.stretches.is_empty());
    let swept = swept.map(|sweep| (sweep.series.clone(), along(&sweep.stretches, lang)));
    let each: Vec<(String, Vec<String>)> = alone.into_iter().chain(swept).collect();
    let words = each.iter().enumerate().map(|(at, (name, parts))| match (is_alone, lang) {
        (true, Lang::En) => enumeration(parts, Conjunction::And, lang),
        (false, Lang::En) if at == 0 => {
            format!("{name} is limited by {}", enumeration(parts, Conjunction::And, lang))
        }
        (false, Lang::En) => format!("{name} by {}", enumeration(parts, Conjunction::And, lang)),
        (true, Lang::Ja) => parts.join("、"),
        (false, Lang::Ja) => beside(&format!("{name} は"), &parts.join("、")),
    });
    let words: Vec<String> = words.collect();
    let place = place(view, sweeps);
    (!words.is_empty()).then(|| match (is_alone, lang) {
        (true, Lang::En) => format!("Limited by {}.", words.join("; ")),
        (true, Lang::Ja) => format!("制限要因: {}。", words.join("。")),
        (false, Lang::En) if place.is_empty() => format!("{}.", words.join("; ")),
        (false, Lang::En) => capital(&format!("{place}{}.", words.join("; "))),
        (false, Lang::Ja) => format!("{place}制限要因: {}。", words.join("。")),
    })
}

/// Limits along a sweep, in order. Of many stretches those with the same limit are joined, and the unknown ones
/// come last as one.
fn along(stretches: &[SweepStretch], lang: Lang) -> Vec<String> {
    if stretches.len() <= STRETCHES_MAX {
        return stretches.iter().map(|of| by(&of.limiting, &of.place, lang)).collect();
    }
    let mut known: Vec<(LimitingResource, Vec<String>)> = Vec::new();
    for of in stretches.iter().filter(|of| of.limiting.is_determined()) {
        match known.iter_mut().find(|(one, _)| one.resource == of.limiting.resource) {
            Some((one, places)) => {
                one.level = one.level.min(of.limiting.level);
                places.push(of.place.clone());
            }
            None => known.push((of.limiting.clone(), vec![of.place.clone()])),
        }
    }
    let mut parts: Vec<String> = known
        .iter()
        .map(|(of, places)| by(of, &enumeration(places, Conjunction::And, lang), lang))
        .collect();
    if stretches.iter().any(|of| !of.limiting.is_determined()) {
        parts.push(lang.pick("an unknown limit elsewhere", "それ以外は判定できず").to_owned());
    }
    parts
}

/// Prediction of the first fit for twice the largest x.
fn predicts(view: &ResultsView<'_>, sweeps: &[&Sweep], is_alone: bool) -> Option<String> {
    let lang = view.lang;
    let sweep = sweeps.iter().find(|sweep| sweep.fit.is_some())?;
    let fit = sweep.fit.as_ref()?;
    let (half, twice) = (view.of_x(fit.twice_x / 2.0), view.of_x(fit.twice_x));
    let value = |value: f64| rate(value, &sweep.rate_unit);
    let (at_half, then) = (value(fit.rate(fit.twice_x / 2.0)), value(fit.at_twice.mid));
    // Once is enough for the unit.
    let (low, high) = (value(fit.at_twice.low), value(fit.at_twice.high));
    let unit = high.split_once(' ').map_or("", |(_, unit)| unit);
    let span = span(low.strip_suffix(unit).unwrap_or(&low).trim_end(), &high, lang);
    let peak = fit.peak_x.filter(|peak| peak.mid <= fit.twice_x);
    let peak = peak.map(|peak| view.of_x(peak.mid.round()));
    let shape = match (fit.model, peak, lang) {
        (_, None, _) => String::new(),
        (FitModel::Cap, Some(peak), Lang::En) => format!("; flat from {peak} on"),
        (FitModel::Cap, Some(peak), Lang::Ja) => {
            format!("。{}", beside(&peak, "以上では頭打ちです"))
        }
        (FitModel::Usl, Some(peak), Lang::En) => format!("; peak at {peak}"),
        (FitModel::Usl, Some(peak), Lang::Ja) => format!("。最大は {}", beside(&peak, "です")),
    };
    let of = match (is_alone, lang) {
        (true, Lang::En) => "Prediction".to_owned(),
        (false, Lang::En) => format!("Prediction for {}", sweep.series),
        (true, Lang::Ja) => "予測".to_owned(),
        (false, Lang::Ja) => format!("{} の予測", sweep.series),
    };
    Some(match lang {
        Lang::En => format!("{of}: {then} with {twice} ({span}) and {at_half} with {half}{shape}."),
        Lang::Ja => {
            let (twice, half) = (beside(&twice, "で"), beside(&half, "で"));
            format!("{of}: {twice} {then}（{span}）、{half} {at_half}{shape}。")
        }
    })
}

// Sentence about the fastest tool and the tools within noise of it.

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
    let firsts = name_counts(leads.iter().map(|(_, lead)| lead.first.cell.series.as_str()));
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
            let rest = lang.pick(enumeration(&rest, Conjunction::And, lang), rest.join("、"));
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
fn name_counts<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
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
        _ if is_short && count < all => enumeration(groups, Conjunction::And, lang),
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
        .map(|(group, lead)| format!("{group}: {}", value_with_setting(view, &lead.first)))
        .collect();
    match view.lang {
        Lang::En => format!("Best of each group: {}.", words.join("; ")),
        Lang::Ja => format!("各グループの最良値: {}。", words.join("、")),
    }
}

fn of_lead(view: &ResultsView<'_>, lead: &LeadingTool<'_>) -> String {
    let lang = view.lang;
    let (name, reached) = (&lead.first.cell.series, value_with_setting(view, &lead.first));
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
            let than = enumeration(&tied, Conjunction::And, lang);
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
            let all = enumeration(&all, Conjunction::And, lang);
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
fn value_with_setting(view: &ResultsView<'_>, best: &BestCell<'_>) -> String {
    let value = view.measured(best.value);
    match (best.cell.x.map(|x| view.of_x(x)), view.lang) {
        (Some(x), Lang::En) => format!("{value} with {x}"),
        (Some(x), Lang::Ja) => format!("{} {value}", beside(&x, "で")),
        (None, _) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_explain::verdict::{Level, Resource};

    fn stretch(resource: Resource, level: Level, place: &str) -> SweepStretch {
        let limiting = LimitingResource { resource, level, ..LimitingResource::default() };
        SweepStretch { limiting, place: place.to_owned(), ..SweepStretch::default() }
    }

    #[test]
    fn limits_that_alternate_are_joined() {
        let unknown = |place| stretch(Resource::None, Level::NotDetermined, place);
        let latency = |level, place| stretch(Resource::Latency, level, place);
        let all = [
            latency(Level::AtLimit, "with 1 job"),
            unknown("from 4 to 8 jobs"),
            latency(Level::Consistent, "with 16 jobs"),
            unknown("from 32 jobs on"),
        ];
        let joined =
            ["latency with 1 job and with 16 jobs (consistent)", "an unknown limit elsewhere"];
        assert_eq!(along(&all, Lang::En), joined);
        let each = ["latency with 1 job (at the limit)", "an unknown limit from 4 to 8 jobs"];
        assert_eq!(along(&all[..2], Lang::En), each);
    }
}

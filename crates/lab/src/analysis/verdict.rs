//! The answer of a campaign in a few plain sentences: what is best, how many are enough, what limits,
//! what would help.

mod best;

use super::proofs::{Found, Says};
use super::rivals::lead;
use super::say::{
    beside, capital, is_many, level, percent, rate, resource, sentences, span, uncapital,
};
use super::view::View;
use super::{Analysis, Lang, Model, Sweep};

/// Sweeps that a sentence speaks of.
const SWEEPS_MAX: usize = 3;

/// One to four of them.
pub(super) fn verdict(view: &View<'_>, analysis: &Analysis, found: &[Found]) -> Vec<String> {
    let Some(best) = best::best(view, analysis) else {
        let said = view.lang.pick(
            "No run counts, so nothing can be said.",
            "有効な測定がないため、何も言えません。",
        );
        return vec![said.to_owned()];
    };
    let sweeps = chosen(view, analysis);
    let mut said = vec![best];
    said.extend(knees(view, &sweeps));
    said.extend(limits(view, analysis, &sweeps));
    said.extend(helps(found, view.lang).or_else(|| predicts(view, &sweeps)));
    said.truncate(4);
    said
}

/// The sweeps to speak of: of the first group with any, hakobu's own first.
fn chosen<'a>(view: &View<'_>, analysis: &'a Analysis) -> Vec<&'a Sweep> {
    let with_knee = |sweep: &&Sweep| sweep.knee.is_some();
    let Some(group) = analysis.sweeps.iter().find(with_knee).map(|sweep| &sweep.group) else {
        return Vec::new();
    };
    let is_own = |sweep: &Sweep| {
        sweep.cells.first().and_then(|id| view.cell(*id)).is_some_and(|cell| cell.own)
    };
    let of_group = analysis.sweeps.iter().filter(|sweep| sweep.group == *group);
    let mut sweeps: Vec<&Sweep> = of_group.filter(|sweep| sweep.knee.is_some()).collect();
    sweeps.sort_by_key(|sweep| !is_own(sweep));
    sweeps.truncate(SWEEPS_MAX);
    sweeps
}

/// How many are enough.
fn knees(view: &View<'_>, sweeps: &[&Sweep]) -> Option<String> {
    let lang = view.lang;
    let words = sweeps.iter().filter_map(|sweep| {
        let knee = sweep.knee?;
        let (at, series) = (view.of_x(knee.x), &sweep.series);
        let are = if is_many(knee.x, view.x_name()) { "are" } else { "is" };
        let (best, share) = (view.of_x(knee.best_x), percent(knee.share.min(1.0)));
        Some(match (knee.at_edge, knee.x < knee.best_x, lang) {
            (true, _, Lang::En) => {
                format!("for {series} {at} {are} best, where the sweep ends: more may be better")
            }
            (true, _, Lang::Ja) => {
                let at = beside(&at, "が最良です");
                format!(
                    "{series} は {at}が、スイープの端なので、さらに増やすと速くなるかもしれません"
                )
            }
            (false, true, Lang::En) => {
                format!("for {series} {at} {are} enough ({share} of the best, with {best})")
            }
            (false, true, Lang::Ja) => {
                let (at, best) = (beside(&at, "で十分です"), beside(&best, "の"));
                format!("{series} は {at}（最良の {best} {share}）")
            }
            (false, false, Lang::En) => format!("for {series} {at} {are} best"),
            (false, false, Lang::Ja) => format!("{series} は {}", beside(&at, "が最良です")),
        })
    });
    let words: Vec<String> = words.collect();
    let said = format!("{}{}", place(view, sweeps), sentences(&words, lang));
    (!words.is_empty()).then(|| if lang == Lang::En { capital(&said) } else { said })
}

/// Which group sweeps are of, where there are several.
fn place(view: &View<'_>, sweeps: &[&Sweep]) -> String {
    let group = sweeps.first().map_or("", |sweep| sweep.group.as_str());
    match view.groups().len() {
        0 | 1 => String::new(),
        _ => format!("{group}: "),
    }
}

/// What limits, along the sweep; without one, at the best cell.
fn limits(view: &View<'_>, analysis: &Analysis, sweeps: &[&Sweep]) -> Option<String> {
    let lang = view.lang;
    if sweeps.is_empty() {
        let group = *view.groups().first()?;
        let first = lead(view, &analysis.cells, group)?.first.cell;
        let of = analysis.cells.iter().find(|of| of.cell == first.id)?;
        let sentence = of.limiting.sentence(lang);
        return Some(format!("{}: {}", view.name(first), uncapital(&sentence)));
    }
    // Who is ahead may have found its number of jobs by itself, and is no line of a sweep then.
    let group = sweeps.first().map_or("", |sweep| sweep.group.as_str());
    let ahead = lead(view, &analysis.cells, group).map(|lead| lead.first.cell);
    let alone = ahead.filter(|cell| !sweeps.iter().any(|sweep| sweep.cells.contains(&cell.id)));
    let sure = |text: &str, of| match lang {
        Lang::En => format!("{text} ({})", level(of, lang)),
        Lang::Ja => format!("{text}（{}）", level(of, lang)),
    };
    let alone = alone.and_then(|cell| {
        let of = &analysis.cells.iter().find(|of| of.cell == cell.id)?.limiting;
        let words = sure(resource(of.resource, lang), of.level);
        of.is_determined().then(|| format!("{}: {words}", view.name(cell)))
    });
    let words = sweeps.iter().take(2).map(|sweep| {
        let parts = sweep.stretches.iter().map(|stretch| match stretch.limiting.is_determined() {
            true => sure(&stretch.sentence, stretch.limiting.level),
            false => stretch.sentence.clone(),
        });
        let parts = parts.collect::<Vec<_>>().join(lang.pick(", ", "、"));
        format!("{}: {parts}", sweep.series)
    });
    let swept = sweeps.iter().any(|sweep| !sweep.stretches.is_empty());
    let words: Vec<String> = alone.into_iter().chain(words.filter(|_| swept)).collect();
    let place = place(view, sweeps);
    (!words.is_empty()).then(|| match lang {
        Lang::En => capital(&format!("{place}what limits {}.", words.join("; "))),
        Lang::Ja => format!("{place}制限要因は、{}。", words.join("。")),
    })
}

/// What experiments showed: what changes something first.
fn helps(found: &[Found], lang: Lang) -> Option<String> {
    let mut clear: Vec<&Found> =
        found.iter().filter(|of| matches!(of.says, Says::Binds | Says::Loose)).collect();
    clear.sort_by_key(|of| of.says == Says::Loose);
    let mut told: Vec<(&str, Says)> = Vec::new();
    let mut words = Vec::new();
    for of in clear {
        let key = (of.proof.changed.as_str(), of.says);
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        words.push(of.proof.sentence.trim_end_matches(['.', '。']).to_owned());
    }
    words.truncate(SWEEPS_MAX);
    let said = sentences(&words, lang);
    (!words.is_empty()).then(|| format!("{}{said}", lang.pick("Tried out: ", "実験の結果: ")))
}

/// What the curve of the first sweep says of twice as many.
fn predicts(view: &View<'_>, sweeps: &[&Sweep]) -> Option<String> {
    let lang = view.lang;
    let sweep = sweeps.iter().find(|sweep| sweep.fit.is_some())?;
    let (fit, series) = (sweep.fit.as_ref()?, &sweep.series);
    let twice = view.of_x(fit.twice_x);
    let value = |value: f64| rate(value, &sweep.rate_unit);
    let measured = value(fit.rate(fit.twice_x / 2.0));
    let then = value(fit.at_twice.mid);
    let span = span(&value(fit.at_twice.low), &value(fit.at_twice.high), lang);
    let peak = fit.peak_x.filter(|peak| peak.mid <= fit.twice_x);
    let peak = peak.map(|peak| view.of_x(peak.mid.round()));
    let shape = match (fit.model, peak, lang) {
        (_, None, _) => String::new(),
        (Model::Cap, Some(peak), Lang::En) => format!("; it is flat from {peak} on"),
        (Model::Cap, Some(peak), Lang::Ja) => format!("。{}", beside(&peak, "から先は頭打ちです")),
        (Model::Usl, Some(peak), Lang::En) => format!("; its peak is at {peak}"),
        (Model::Usl, Some(peak), Lang::Ja) => format!("。最大は {}", beside(&peak, "です")),
    };
    Some(match lang {
        Lang::En => format!(
            "The curve through {series} predicts {then} with {twice} ({span}), against {measured} at \
             the end of the sweep{shape}."
        ),
        Lang::Ja => format!(
            "{series} の当てはめ曲線は {} {then}（{span}）と予測します（スイープの端では \
             {measured}）{shape}。",
            beside(&twice, "で"),
        ),
    })
}

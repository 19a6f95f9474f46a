//! `--only`: selects some of the cells of a plan.

use hakobu_lab::campaign::CampaignPlan;

/// Keeps the cells in a list: by number (as `--dry-run` shows them), range of numbers, name of their series, or
/// series with a swept number (`rsync@4`). A control is kept with the cell that it repeats. The remaining cells are
/// renumbered.
pub fn keep(plan: &mut CampaignPlan, wanted: &str) -> Result<(), String> {
    let mut keep = vec![false; plan.cells.len()];
    for word in wanted.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let mut found = false;
        for (at, planned) in plan.cells.iter().enumerate() {
            if is_meant(word, at, &planned.cell.series, planned.cell.x) {
                (keep[at], found) = (true, true);
            }
        }
        if !found {
            return Err(format!("--only={wanted}: there is no cell '{word}'; see --dry-run"));
        }
    }
    for (at, planned) in plan.cells.iter().enumerate() {
        if let Some(of) = planned.cell.control_of {
            keep[at] = keep.get(of as usize).copied().unwrap_or(false);
        }
    }
    if !keep.contains(&true) {
        return Err(format!("--only={wanted}: no cell is left"));
    }
    let number = |old: usize| keep[..old].iter().filter(|keep| **keep).count() as u32;
    for (at, planned) in plan.cells.iter_mut().enumerate() {
        planned.cell.id = number(at);
        planned.cell.control_of = planned.cell.control_of.map(|of| number(of as usize));
    }
    let mut kept = keep.iter();
    plan.cells.retain(|_| kept.next().copied().unwrap_or(false));
    Ok(())
}

fn is_meant(word: &str, at: usize, series: &str, x: Option<f64>) -> bool {
    if word == series || word.parse() == Ok(at) {
        return true;
    }
    let range = word
        .split_once('-')
        .and_then(|(first, last)| Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?));
    if range.is_some_and(|range| range.contains(&at)) {
        return true;
    }
    let (name, number) = word.rsplit_once('@').unwrap_or_default();
    name == series && number.parse::<f64>().ok().is_some_and(|number| Some(number) == x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_lab::campaign::PlannedCell;
    use hakobu_lab::results::Cell;

    fn plan() -> CampaignPlan {
        let cell = |id: u32, series: &str, x: f64, control_of| PlannedCell {
            cell: Cell { id, series: series.into(), x: Some(x), control_of, ..Cell::default() },
            ..PlannedCell::default()
        };
        let cells = vec![
            cell(0, "cp", 1.0, None),
            cell(1, "cp", 4.0, None),
            cell(2, "rsync", 1.0, None),
            cell(3, "rsync", 4.0, None),
            cell(4, "rsync (again)", 4.0, Some(3)),
        ];
        CampaignPlan { cells, ..CampaignPlan::default() }
    }

    fn kept(wanted: &str) -> Result<Vec<(u32, String, Option<u32>)>, String> {
        let mut plan = plan();
        keep(&mut plan, wanted)?;
        let cells = plan.cells.into_iter().map(|one| one.cell);
        Ok(cells
            .map(|cell| (cell.id, format!("{}@{}", cell.series, cell.x.unwrap()), cell.control_of))
            .collect())
    }

    #[test]
    fn cells_are_picked_and_numbered_anew() {
        let one = |id, name: &str| (id, name.to_owned(), None);
        assert_eq!(kept("cp").unwrap(), [one(0, "cp@1"), one(1, "cp@4")]);
        assert_eq!(kept("0, 2").unwrap(), [one(0, "cp@1"), one(1, "rsync@1")]);
        let with_control =
            [one(0, "cp@4"), one(1, "rsync@4"), (2, "rsync (again)@4".to_owned(), Some(1))];
        assert_eq!(kept("rsync@4,1").unwrap(), with_control);
        assert_eq!(kept("1-2").unwrap(), [one(0, "cp@4"), one(1, "rsync@1")]);
        assert!(kept("mv").unwrap_err().contains("there is no cell 'mv'"));
        assert!(kept(",").unwrap_err().contains("no cell is left"));
        assert!(kept("4").unwrap_err().contains("no cell is left"));
    }
}

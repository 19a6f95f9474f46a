//! Names in columns, filled top to bottom, as many as fit the terminal's width.

/// Spaces between two names.
const GAP: usize = 2;

/// Returns the width of a line: from the environment, the terminal, or 80.
pub fn width() -> usize {
    let variable = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    variable
        .filter(|width| *width > 0)
        .or_else(|| hakobu_sys::terminal::columns(std::io::stdout()))
        .unwrap_or(80)
}

/// Returns the number of characters of a name; wide ones count as one.
fn len(cell: &[u8]) -> usize {
    cell.utf8_chunks().map(|chunk| chunk.valid().chars().count() + chunk.invalid().len()).sum()
}

/// Appends the cells as lines.
pub fn push(cells: &[Vec<u8>], width: usize, out: &mut Vec<u8>) {
    if cells.is_empty() {
        return;
    }
    let lens: Vec<usize> = cells.iter().map(|cell| len(cell)).collect();
    let (rows, widths) = fit(&lens, width);
    for row in 0..rows {
        let line: Vec<usize> = (row..cells.len()).step_by(rows).collect();
        for (column, at) in line.iter().enumerate() {
            let (Some(cell), Some(len)) = (cells.get(*at), lens.get(*at)) else { continue };
            out.extend_from_slice(cell);
            if column + 1 < line.len() {
                let gap = widths.get(column).map_or(GAP, |width| width - len);
                out.extend(std::iter::repeat_n(b' ', gap));
            }
        }
        out.push(b'\n');
    }
}

/// Returns the minimum number of rows whose columns fit, and the widths of the columns with their gaps. As in
/// coreutils no column counts as narrower than one letter with its gap, not even the last one.
fn fit(lens: &[usize], width: usize) -> (usize, Vec<usize>) {
    const LEAST: usize = GAP + 1;
    let most = (width / LEAST).clamp(1, lens.len().max(1));
    for columns in (1..=most).rev() {
        let rows = lens.len().div_ceil(columns).max(1);
        let mut widths = vec![LEAST; columns];
        for (at, column) in lens.chunks(rows).enumerate() {
            let gap = if at + 1 == columns { 0 } else { GAP };
            let len = column.iter().max().copied().unwrap_or(0) + gap;
            if let Some(slot) = widths.get_mut(at) {
                *slot = len.max(LEAST);
            }
        }
        if widths.iter().sum::<usize>() < width {
            return (rows, widths);
        }
    }
    (lens.len(), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[&str], width: usize) -> String {
        let cells: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut out = Vec::new();
        push(&cells, width, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn columns_fill_downwards_and_fit() {
        let names = ["a", "bb", "ccc", "dddd", "eeeee"];
        assert_eq!(shown(&names, 80), "a  bb  ccc  dddd  eeeee\n");
        assert_eq!(shown(&names, 18), "a   ccc   eeeee\nbb  dddd\n");
        assert_eq!(shown(&names, 3), "a\nbb\nccc\ndddd\neeeee\n");
        assert_eq!(shown(&[], 80), "");
        assert_eq!(shown(&["é", "x"], 80), "é  x\n");
    }
}

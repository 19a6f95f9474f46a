//! Minimises a function of two variables without derivatives: the simplex method of Nelder & Mead (1965),
//! restarted once where it ended, because a simplex may collapse.

/// Most iterations; some tens are usual.
const STEPS_MAX: usize = 400;
/// Converged when the corners are this close and the function values differ by no more than this relatively,
/// or by no more than the second constant absolutely.
const NEAR: f64 = 1e-6;
const SAME: [f64; 2] = [1e-12, 1e-18];

type SimplexCorner = ([f64; 2], f64);

/// Position of the minimum of `of` near `from`; `size` is the edge of the first simplex. NaN counts as
/// infinite.
pub(super) fn least(of: impl Fn([f64; 2]) -> f64, from: [f64; 2], size: f64) -> [f64; 2] {
    let once = descend(&of, from, size);
    descend(&of, once, size / 4.0)
}

fn descend(of: &impl Fn([f64; 2]) -> f64, [u, v]: [f64; 2], size: f64) -> [f64; 2] {
    let corner = |at: [f64; 2]| -> SimplexCorner {
        let value = of(at);
        (at, if value.is_nan() { f64::INFINITY } else { value })
    };
    let mut simplex = [corner([u, v]), corner([u + size, v]), corner([u, v + size])];
    for _ in 0..STEPS_MAX {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [best, second, worst] = simplex;
        let wide = distance(best.0, worst.0).max(distance(best.0, second.0));
        if worst.1 - best.1 <= SAME[0] * best.1.abs() + SAME[1] && wide <= NEAR {
            break;
        }
        let middle = between(best.0, second.0, 0.5);
        let reflected = corner(between(worst.0, middle, 2.0));
        let next = if reflected.1 < best.1 {
            let further = corner(between(worst.0, middle, 3.0));
            Some(if further.1 < reflected.1 { further } else { reflected })
        } else if reflected.1 < second.1 {
            Some(reflected)
        } else {
            // Contract on the better side.
            let nearer = if reflected.1 < worst.1 { 1.5 } else { 0.5 };
            let inner = corner(between(worst.0, middle, nearer));
            (inner.1 < worst.1.min(reflected.1)).then_some(inner)
        };
        simplex = match next {
            Some(next) => [best, second, next],
            None => {
                let shrunk = |at: SimplexCorner| corner(between(best.0, at.0, 0.5));
                [best, shrunk(second), shrunk(worst)]
            }
        };
    }
    simplex.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or([u, v], |best| best.0)
}

/// Linear interpolation: `part` 0 is `a`, 1 is `b`, 2 as far beyond `b`.
fn between(a: [f64; 2], b: [f64; 2], part: f64) -> [f64; 2] {
    let [u, v] = a;
    [u + part * (b[0] - u), v + part * (b[1] - v)]
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

//! Digits for weights that no honest flag gives, for the tests in which a prover lies.

/// How many choices are tried.
const PATIENCE: u32 = 100_000;

/// Digits of these radices whose sum at these weights, of either sign, is a value; none if none was
/// found.
pub(super) fn digits(weights: &[i128], radices: &[u64], value: i128) -> Option<Vec<u64>> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(weights[*at].abs()));
    let mut found = vec![0; weights.len()];
    let mut patience = PATIENCE;
    search(&order, weights, radices, value, &mut found, &mut patience).then_some(found)
}

fn search(
    order: &[usize],
    weights: &[i128],
    radices: &[u64],
    left: i128,
    found: &mut [u64],
    patience: &mut u32,
) -> bool {
    let Some((at, others)) = order.split_first() else {
        return left == 0;
    };
    let reach = |negative: bool| -> i128 {
        let own = order.iter().filter(|at| (weights[**at] < 0) == negative);
        own.map(|at| weights[*at] * i128::from(radices[*at] - 1))
            .sum()
    };
    if *patience == 0 || !(reach(true)..=reach(false)).contains(&left) {
        return false;
    }
    *patience -= 1;
    (0..radices[*at]).any(|digit| {
        found[*at] = digit;
        let left = left - i128::from(digit) * weights[*at];
        search(others, weights, radices, left, found, patience)
    })
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn a_value_is_the_sum_of_digits_at_weights_of_either_sign() {
        let (weights, radices) = ([3, -5, 40], [8, 8, 2]);
        for (value, reachable) in [(0, true), (-2, true), (43, true), (-35, true), (62, false)] {
            let found = digits(&weights, &radices, value);
            assert_eq!(found.is_some(), reachable, "{value}");
            if let Some(found) = found {
                let sum = found.iter().zip(weights).map(|(n, w)| i128::from(*n) * w);
                assert_eq!(sum.sum::<i128>(), value);
                assert!(
                    found
                        .iter()
                        .zip(radices)
                        .all(|(digit, radix)| *digit < radix)
                );
            }
        }
    }
}

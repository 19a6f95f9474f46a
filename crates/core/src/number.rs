//! Numbers in human-readable form.

/// The digits of a whole number with a comma between each three: `1234567` as `1,234,567`.
pub fn grouped_digits(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A whole number with a comma between each three digits.
pub fn grouped(n: u64) -> String {
    grouped_digits(&n.to_string())
}

/// A number of things for a sentence: `1 file`, `2,000 files`.
pub fn things(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Bytes for a sentence: `3 bytes`, `2.42 MB`.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" });
    }
    let (mut rest, mut unit) = (bytes as f64, ' ');
    for letter in ['K', 'M', 'G', 'T', 'P'] {
        if rest < 1000.0 {
            break;
        }
        (rest, unit) = (rest / 1000.0, letter);
    }
    format!("{rest:.2} {unit}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_three() {
        for (digits, text) in
            [("", ""), ("0", "0"), ("999", "999"), ("1000", "1,000"), ("1234567", "1,234,567")]
        {
            assert_eq!(grouped_digits(digits), text);
        }
    }
}

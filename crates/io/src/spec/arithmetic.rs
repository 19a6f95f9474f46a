//! Arithmetic in sizes and numbers: `5*1024*$pagesize`, `(4k+8k)/2`. Whole numbers; a division leaves the
//! remainder out.

/// Terms and brackets inside of each other, at most.
const DEPTH_MAX: u32 = 32;

/// Returns whether a text is an expression.
pub fn is_one(text: &str) -> bool {
    text.contains(['(', ')', '*', '+', '/', '^'])
}

/// The unread rest of an expression, and the parser of single numbers.
struct Reader<'a> {
    rest: &'a str,
    term: &'a dyn Fn(&str) -> Result<u64, String>,
    depth: u32,
}

/// Its value: `+` and `-`, then `*`, `/` and `%`, then `^`, as usual, and brackets. `term` reads a number with its
/// unit.
///
/// # Errors
/// Not a valid expression, or its value is below 0 or too large.
pub fn value(text: &str, term: &dyn Fn(&str) -> Result<u64, String>) -> Result<u64, String> {
    let mut reader = Reader { rest: text.trim(), term, depth: 0 };
    let value = reader.sum()?;
    match reader.rest {
        "" => u64::try_from(value).map_err(|_| "is below 0 or too large".to_owned()),
        rest => Err(format!("cannot be computed from '{rest}' on")),
    }
}

fn large() -> String {
    "is too large".to_owned()
}

impl Reader<'_> {
    /// Takes one of these signs, if it comes next.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        let next = self.rest.chars().next().filter(|sign| signs.contains(sign))?;
        self.rest = self.rest[next.len_utf8()..].trim_start();
        Some(next)
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let next = self.product()?;
            let done = if sign == '+' { value.checked_add(next) } else { value.checked_sub(next) };
            value = done.ok_or_else(large)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            let next = self.power()?;
            if next == 0 && sign != '*' {
                return Err("is divided by 0".to_owned());
            }
            let done = match sign {
                '*' => value.checked_mul(next),
                '/' => value.checked_div(next),
                _ => value.checked_rem(next),
            };
            value = done.ok_or_else(large)?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.number()?;
        if self.sign(&['^']).is_none() {
            return Ok(base);
        }
        let exponent = self.power()?;
        let exponent = u32::try_from(exponent).map_err(|_| large())?;
        base.checked_pow(exponent).ok_or_else(large)
    }

    fn number(&mut self) -> Result<i128, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("has too many brackets".to_owned());
        }
        let found = match self.sign(&['(', '-']) {
            Some('-') => self.number().map(|value| -value),
            Some(_) => self.sum().and_then(|value| match self.sign(&[')']) {
                Some(_) => Ok(value),
                None => Err("has a bracket that is not closed".to_owned()),
            }),
            None => {
                let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric());
                let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest.trim_start();
                (self.term)(text).map(i128::from)
            }
        };
        self.depth -= 1;
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::units::{Base, size};

    #[test]
    fn expressions_have_values() {
        for (text, expected) in [
            ("5*1024*1024*8/8", Some(5 << 20)),
            ("8*1024*4096", Some(8 << 22)),
            ("(4k+8k)/2", Some(6 << 10)),
            ("2+3*4", Some(14)),
            ("2^3^2", Some(512)),
            ("(2+3)*4", Some(20)),
            (" 7 / 2 ", Some(3)),
            ("10-3-2+0", Some(5)),
            ("-(2)+3", Some(1)),
            ("1-2*1", None),
            ("1/0", None),
            ("2*", None),
            ("(2", None),
            ("2)", None),
            ("2**3", None),
            ("9^99", None),
            ("(((((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))))", None),
        ] {
            assert_eq!(size(text, Base::Binary).ok(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_value_or_none(text in "[-+*/^()0-9km ä]{0,40}") {
            let _ = size(&text, Base::Binary);
        }

        #[test]
        fn sums_and_products(a in 0u64..1 << 20, b in 0u64..1 << 20, c in 1u64..1 << 20) {
            proptest::prop_assert_eq!(size(&format!("{a}+{b}*{c}"), Base::Binary), Ok(a + b * c));
            proptest::prop_assert_eq!(size(&format!("({a}+{b})/{c}"), Base::Binary), Ok((a + b) / c));
        }
    }
}

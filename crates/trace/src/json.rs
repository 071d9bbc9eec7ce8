//! Text as JSON.

use core::fmt::{self, Write};

/// A string of JSON. It may stand in the script of an HTML page, too: it has no `<`.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' | '\x7f' => {
                    write!(f, "\\u{:04x}", u32::from(character))?;
                }
                plain => f.write_char(plain)?,
            }
        }
        f.write_char('"')
    }
}

/// Nanoseconds as microseconds, exactly.
pub(crate) struct Micros(pub(crate) u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_three_digits() {
        let texts = [0, 5, 1_020, 1_002_003].map(|nanoseconds| Micros(nanoseconds).to_string());
        assert_eq!(texts, ["0.000", "0.005", "1.020", "1002.003"]);
    }
}

//! PTX text as tokens.

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name, a directive, or an instruction with all its modifiers.
    Word(&'a str),
    /// A number modulo 2^64.
    Integer(u64),
    /// The bits of a floating number of four bytes, or of eight.
    Single(u32),
    Double(u64),
    /// What is between quotes.
    Text(&'a str),
    Mark(char),
}

/// Reads tokens from the front of a text, and counts its lines.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    /// The line of the token that is next, from 1.
    line: u32,
    /// That of the token that was last.
    last: u32,
}

/// The text has something that is no token there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoToken;

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, line: u32) -> Self {
        Self { rest: text, line, last: line }
    }

    /// The line of the last token.
    pub(super) fn last_line(&self) -> u32 {
        self.last
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    /// The text up to here, of one that began there.
    pub(super) fn since(&self, begin: &'a str) -> &'a str {
        begin.get(..begin.len().saturating_sub(self.rest.len())).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Result<Option<Token<'a>>, NoToken> {
        self.clone().next()
    }

    /// The next token if it is this mark.
    pub(super) fn eat(&mut self, mark: char) -> Result<bool, NoToken> {
        let mut ahead = self.clone();
        let is_it = ahead.next()? == Some(Token::Mark(mark));
        if is_it {
            *self = ahead;
        }
        Ok(is_it)
    }

    /// Leaves out what is left of the last token's line.
    pub(super) fn skip_line(&mut self) {
        if self.line == self.last {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.rest = self.rest.get(end..).unwrap_or_default();
        }
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += skipped.bytes().filter(|&byte| byte == b'\n').count() as u32;
        self.rest = rest;
        skipped
    }

    fn blanks(&mut self) -> Result<(), NoToken> {
        loop {
            let rest = self.rest;
            let blank = rest.find(|at: char| !at.is_ascii_whitespace()).unwrap_or(rest.len());
            self.skip(blank);
            if self.rest.starts_with("//") {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.skip(self.rest.find("*/").ok_or(NoToken)? + 2);
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, NoToken> {
        self.blanks()?;
        self.last = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        Ok(Some(match first {
            '0'..='9' => self.number()?,
            'A'..='Z' | 'a'..='z' | '_' | '$' | '%' | '.' => Token::Word(self.word()),
            '"' => {
                self.skip(1);
                let end = self.rest.find('"').ok_or(NoToken)?;
                let text = self.skip(end);
                self.skip(1);
                Token::Text(text)
            }
            mark if mark.is_ascii_graphic() => {
                self.skip(1);
                Token::Mark(mark)
            }
            _ => return Err(NoToken),
        }))
    }

    /// Letters, digits, and points. Two colons are part of a modifier, one ends a label.
    fn word(&mut self) -> &'a str {
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        loop {
            match bytes.get(end) {
                Some(b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'$' | b'%' | b'.') => {
                    end += 1
                }
                Some(b':') if bytes.get(end + 1) == Some(&b':') => end += 2,
                _ => break,
            }
        }
        self.skip(end)
    }

    fn number(&mut self) -> Result<Token<'a>, NoToken> {
        let bytes = self.rest.as_bytes();
        let mut end = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric());
        let word = self.rest.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let decimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let token = if let Some(digits) = word.strip_prefix("0f").or(word.strip_prefix("0F")) {
            let whole = digits.len() == 8;
            Token::Single(u32::from_str_radix(digits, 16).ok().filter(|_| whole).ok_or(NoToken)?)
        } else if let Some(digits) = word.strip_prefix("0d").or(word.strip_prefix("0D")) {
            let whole = digits.len() == 16;
            Token::Double(u64::from_str_radix(digits, 16).ok().filter(|_| whole).ok_or(NoToken)?)
        } else if let Some(at) = end.filter(|&at| bytes.get(at) == Some(&b'.') && decimal(word)) {
            // With a point, and perhaps an exponent.
            let more = |from: usize| {
                let digits = bytes.get(from..).unwrap_or_default();
                from + digits.iter().take_while(|byte| byte.is_ascii_digit()).count()
            };
            let mut last = more(at + 1);
            if matches!(bytes.get(last), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(last + 1), Some(b'+' | b'-')));
                last = more(last + 1 + sign);
            }
            end = Some(last);
            let text = self.rest.get(..last).ok_or(NoToken)?;
            Token::Double(text.parse::<f64>().map_err(|_| NoToken)?.to_bits())
        } else {
            let digits = word.strip_suffix(['u', 'U']).unwrap_or(word);
            let lower = digits.to_ascii_lowercase();
            let read =
                |digits: &str, radix| u64::from_str_radix(digits, radix).map_err(|_| NoToken);
            Token::Integer(if let Some(digits) = lower.strip_prefix("0x") {
                read(digits, 16)?
            } else if let Some(digits) = lower.strip_prefix("0b") {
                read(digits, 2)?
            } else if lower.len() > 1 && lower.starts_with('0') {
                read(&lower, 8)?
            } else {
                read(&lower, 10)?
            })
        };
        self.skip(end.unwrap_or(bytes.len()));
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<(Token<'_>, u32)>, NoToken> {
        let mut lexer = Lexer::new(text, 1);
        let mut all = Vec::new();
        while let Some(token) = lexer.next()? {
            all.push((token, lexer.last_line()));
        }
        Ok(all)
    }

    #[test]
    fn tokens_have_their_lines() {
        let text =
            "@!%p1 ld.global.v2.u32 {%r1,_}, [%rd2+-4]; // x\n/* \n */ L:\n\tmov.b32 a, 0xFFU;";
        let found = tokens(text).expect("tokens");
        use Token::{Integer, Mark, Word};
        let expected = [
            (Mark('@'), 1),
            (Mark('!'), 1),
            (Word("%p1"), 1),
            (Word("ld.global.v2.u32"), 1),
            (Mark('{'), 1),
            (Word("%r1"), 1),
            (Mark(','), 1),
            (Word("_"), 1),
            (Mark('}'), 1),
            (Mark(','), 1),
            (Mark('['), 1),
            (Word("%rd2"), 1),
            (Mark('+'), 1),
            (Mark('-'), 1),
            (Integer(4), 1),
            (Mark(']'), 1),
            (Mark(';'), 1),
            (Word("L"), 3),
            (Mark(':'), 3),
            (Word("mov.b32"), 4),
            (Word("a"), 4),
            (Mark(','), 4),
            (Integer(255), 4),
            (Mark(';'), 4),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_have_the_forms_of_ptx() {
        use Token::{Double, Integer, Single};
        for (text, expected) in [
            ("0", Integer(0)),
            ("017", Integer(15)),
            ("0b101", Integer(5)),
            ("0X1f", Integer(31)),
            ("18446744073709551615", Integer(u64::MAX)),
            ("0f3F800000", Single(0x3f80_0000)),
            ("0d3FF0000000000000", Double(0x3ff0_0000_0000_0000)),
            ("1.5", Double(1.5_f64.to_bits())),
            ("2.5e-3", Double(2.5e-3_f64.to_bits())),
        ] {
            assert_eq!(tokens(text), Ok(vec![(expected, 1)]), "{text}");
        }
        for text in ["0f3F8", "09", "0x", "12ab", "99999999999999999999", "\"open", "/* open", "é"]
        {
            assert_eq!(tokens(text), Err(NoToken), "{text}");
        }
        let modifier = tokens("st.shared::cta.u32").expect("one");
        assert_eq!(modifier, [(Token::Word("st.shared::cta.u32"), 1)]);
    }
}

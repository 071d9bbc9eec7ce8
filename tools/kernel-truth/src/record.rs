//! The log: a line for each kernel and launch, of fields `name=value` with tabs between them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Builds a line.
pub struct Line(String);

impl Line {
    pub fn new(kind: &str) -> Self {
        Self(kind.into())
    }

    pub fn field(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let value = value.to_string().replace(['\t', '\n'], " ");
        let _ = write!(self.0, "\t{name}={value}");
        self
    }

    pub fn end(mut self) -> String {
        self.0.push('\n');
        self.0
    }
}

/// A line that was read.
pub struct Read<'a> {
    pub kind: &'a str,
    fields: HashMap<&'a str, &'a str>,
}

impl<'a> Read<'a> {
    pub fn new(line: &'a str) -> Self {
        let mut parts = line.trim_end_matches('\n').split('\t');
        let kind = parts.next().unwrap_or_default();
        Self { kind, fields: parts.filter_map(|part| part.split_once('=')).collect() }
    }

    pub fn text(&self, name: &str) -> &'a str {
        self.fields.get(name).copied().unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    pub fn ranges(&self, name: &str) -> Vec<Range<u64>> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let range = |text: &str| {
            let (start, end) = text.split_once('-')?;
            Some(number(start)?..number(end)?)
        };
        self.text(name).split(',').filter_map(range).collect()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let digits = self.text(name).as_bytes().chunks(2);
        digits
            .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect()
    }

    pub fn sizes(&self, name: &str) -> [u32; 3] {
        let mut sizes = [1; 3];
        for (size, text) in sizes.iter_mut().zip(self.text(name).split(',')) {
            *size = text.parse().unwrap_or(1);
        }
        sizes
    }
}

pub fn ranges<'a>(ranges: impl IntoIterator<Item = &'a Range<u64>>) -> String {
    let mut text = String::new();
    for range in ranges {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{:x}-{:x}", range.start, range.end);
    }
    text
}

pub fn bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub fn sizes(sizes: [u32; 3]) -> String {
    format!("{},{},{}", sizes[0], sizes[1], sizes[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = Line::new("launch")
            .field("grid", sizes([3, 1, 2]))
            .field("wrote", ranges(&[0x10..0x20, 0xff00_0000_0000..0xff00_0000_0001]))
            .field("parameters", bytes(&[0, 255, 16]))
            .field("name", "a\tb")
            .field("count", 7)
            .end();
        let read = Read::new(&line);
        assert_eq!((read.kind, read.text("name"), read.number("count")), ("launch", "a b", 7));
        assert_eq!(read.sizes("grid"), [3, 1, 2]);
        assert_eq!(read.bytes("parameters"), [0, 255, 16]);
        assert_eq!(read.ranges("wrote"), [0x10..0x20, 0xff00_0000_0000..0xff00_0000_0001]);
        assert!(read.ranges("none").is_empty());
    }
}

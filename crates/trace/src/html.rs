//! One HTML file: the data, and a script that shows it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::json::Quoted;
use crate::picture::{Arrow, Kind, Picture};

const PAGE: &str = include_str!("view.html");
const SCRIPT: &str = include_str!("view.js");

pub(crate) fn write(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    let (head, rest) = PAGE.split_once("/*DATA*/").unwrap_or((PAGE, ""));
    let (between, tail) = rest.split_once("/*SCRIPT*/").unwrap_or((rest, ""));
    out.write_all(head.as_bytes())?;
    data(picture, out)?;
    out.write_all(between.as_bytes())?;
    out.write_all(SCRIPT.as_bytes())?;
    out.write_all(tail.as_bytes())
}

/// Nanoseconds, as numbers: a browser's are exact for a hundred days of them.
fn data(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{\"missing\":{},\"groups\":[", Quoted(&picture.missing))?;
    for (index, group) in picture.groups.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        write!(out, "{separator}{}", Quoted(group))?;
    }
    write!(out, "],\"rows\":[")?;
    // Names and details come again and again.
    let mut texts = Vec::new();
    let mut known = BTreeMap::new();
    for (index, row) in picture.rows.iter().enumerate() {
        let separator = if index == 0 { "\n" } else { ",\n" };
        write!(
            out,
            "{separator}{{\"group\":{},\"name\":{},\"first\":{},\"slices\":[",
            row.group,
            Quoted(&row.name),
            row.first
        )?;
        for (index, slice) in row.slices.iter().enumerate() {
            let mut number = |text: String| {
                *known.entry(text).or_insert_with_key(|text| {
                    texts.push(text.clone());
                    texts.len() - 1
                })
            };
            let category = slice.category.iter().map(|category| ("category", category));
            let args = slice.args.iter().map(|(name, value)| (&**name, value));
            let details = slice.details.iter().map(|(what, detail)| (*what, detail));
            let details = category.chain(args).chain(details);
            let details = details.map(|(what, detail)| format!("{what}: {detail}\n")).collect();
            let (name, details) = (number(slice.name.clone()), number(details));
            let kind = match slice.kind {
                Kind::Gpu => 0,
                Kind::Host => 1,
                Kind::Call => 2,
                Kind::FailedCall => 3,
            };
            let separator = if index == 0 { "" } else { "," };
            write!(
                out,
                "{separator}[{},{},{},{kind},{name},{details}",
                slice.start, slice.end, slice.depth
            )?;
            if let Some(category) = &slice.category {
                write!(out, ",{}", number(category.clone()))?;
            }
            write!(out, "]")?;
        }
        write!(out, "]}}")?;
    }
    write!(out, "],\n\"texts\":[")?;
    for (index, text) in texts.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        write!(out, "{separator}{}", Quoted(text))?;
    }
    write!(out, "]")?;
    write!(out, ",\n\"arrows\":[")?;
    arrows(&picture.arrows, out)?;
    write!(out, "],\n\"launches\":[")?;
    arrows(&picture.launches, out)?;
    write!(out, "]")?;
    write!(out, ",\n\"markers\":[")?;
    for (index, marker) in picture.markers.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        write!(out, "{separator}[{},{},{}]", marker.row, marker.at, Quoted(&marker.name))?;
    }
    write!(out, "],\n\"counters\":[")?;
    for (index, counter) in picture.counters.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        write!(out, "{separator}{{\"name\":{},\"values\":[", Quoted(&counter.name))?;
        for (index, (at, value)) in counter.values.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(out, "{separator}[{at},{value}]")?;
        }
        write!(out, "]}}")?;
    }
    write!(out, "]")?;
    if let Some((start, end)) = picture.shown_first {
        write!(out, ",\n\"first\":[{start},{end}]")?;
    }
    write!(out, "}}")
}

/// Each ends at the start of a slice.
fn arrows(arrows: &[Arrow], out: &mut impl Write) -> io::Result<()> {
    for (index, Arrow { from, to }) in arrows.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        write!(
            out,
            "{separator}[{},{},{},{},{}]",
            from.row, from.slice, from.at, to.row, to.slice
        )?;
    }
    Ok(())
}

//! Chrome trace JSON, as Perfetto reads it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::json::{Micros, Quoted};
use crate::picture::{End, Kind, Picture};

pub(crate) fn write(picture: &Picture, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"producer\":\"cuda-events-trace\"")?;
    if !picture.missing.is_empty() {
        write!(out, ",\"missing\":{}", Quoted(&picture.missing))?;
    }
    write!(out, "}},\"traceEvents\":[")?;
    let mut first = true;
    let mut next = |out: &mut dyn Write| {
        let separator = if core::mem::take(&mut first) { "\n" } else { ",\n" };
        write!(out, "{separator}")
    };
    // A process is a group, a thread is a row; both are numbered from 1 in the order of the rows.
    for (index, group) in picture.groups.iter().enumerate() {
        let process = index + 1;
        next(out)?;
        write!(
            out,
            "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
            Quoted(group)
        )?;
        next(out)?;
        write!(
            out,
            "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_sort_index\",\
             \"args\":{{\"sort_index\":{process}}}}}"
        )?;
    }
    // Each end of an arrow comes at the start of its slice and right after it. Perfetto binds it to
    // the last slice that began in the row, even if that one is done.
    let mut flows: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    let waits = picture.arrows.iter().map(|arrow| ("wait", arrow));
    let launches = picture.launches.iter().map(|arrow| ("launch", arrow));
    for (id, (category, arrow)) in waits.chain(launches).enumerate() {
        let ends = [("\"s\"", arrow.from), ("\"f\",\"bp\":\"e\"", arrow.to)];
        for (phase, End { row, slice, .. }) in ends {
            let flow = format!(
                "\"ph\":{phase},\"id\":{},\"cat\":\"{category}\",\"name\":\"{category}\"",
                id + 1
            );
            flows.entry((row, slice)).or_default().push(flow);
        }
    }
    for (index, row) in picture.rows.iter().enumerate() {
        let (process, thread) = (row.group + 1, index + 1);
        next(out)?;
        write!(
            out,
            "{{\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"name\":\"thread_name\",\
             \"args\":{{\"name\":{}}}}}",
            Quoted(&row.name)
        )?;
        next(out)?;
        write!(
            out,
            "{{\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"name\":\"thread_sort_index\",\
             \"args\":{{\"sort_index\":{thread}}}}}"
        )?;
        for (number, slice) in row.slices.iter().enumerate() {
            let category = match slice.kind {
                Kind::Gpu => "gpu",
                Kind::Host => "host",
                Kind::Call => "driver",
                Kind::FailedCall => "driver,failed",
            };
            let categories = match &slice.category {
                Some(own) => format!("{category},{own}"),
                None => category.to_owned(),
            };
            next(out)?;
            write!(
                out,
                "{{\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{},\"dur\":{},\
                 \"cat\":{},\"name\":{},\"args\":{{",
                Micros(slice.start),
                Micros(slice.end.saturating_sub(slice.start)),
                Quoted(&categories),
                Quoted(&slice.name)
            )?;
            // A name must not come twice; the program's own come first.
            let args = slice.args.iter().map(|(name, value)| (&**name, value));
            let details = slice.details.iter().map(|(name, value)| (*name, value));
            let mut fields: Vec<(&str, &String)> = Vec::new();
            for (name, value) in args.chain(details) {
                if fields.iter().all(|(other, _)| *other != name) {
                    fields.push((name, value));
                }
            }
            for (index, (name, value)) in fields.into_iter().enumerate() {
                let separator = if index == 0 { "" } else { "," };
                // Perfetto can calculate with numbers.
                let number = value.parse::<i64>().is_ok_and(|number| number.to_string() == *value);
                write!(out, "{separator}{}:", Quoted(name))?;
                if number {
                    write!(out, "{value}")?;
                } else {
                    write!(out, "{}", Quoted(value))?;
                }
            }
            write!(out, "}}}}")?;
            for flow in flows.get(&(index, number)).into_iter().flatten() {
                next(out)?;
                let ts = Micros(slice.start);
                write!(out, "{{{flow},\"pid\":{process},\"tid\":{thread},\"ts\":{ts}}}")?;
            }
        }
    }
    for marker in &picture.markers {
        let process = picture.rows.get(marker.row).map_or(1, |row| row.group + 1);
        next(out)?;
        write!(
            out,
            "{{\"ph\":\"i\",\"s\":\"t\",\"pid\":{process},\"tid\":{},\"ts\":{},\
             \"cat\":\"marker\",\"name\":{}}}",
            marker.row + 1,
            Micros(marker.at),
            Quoted(&marker.name)
        )?;
    }
    // The counters are a process after those of the groups.
    let process = picture.groups.len() + 1;
    if !picture.counters.is_empty() {
        next(out)?;
        write!(
            out,
            "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\
             \"args\":{{\"name\":\"Counters\"}}}}"
        )?;
    }
    for counter in &picture.counters {
        for (at, value) in &counter.values {
            next(out)?;
            write!(
                out,
                "{{\"ph\":\"C\",\"pid\":{process},\"ts\":{},\"name\":{},\
                 \"args\":{{\"value\":{value}}}}}",
                Micros(*at),
                Quoted(&counter.name)
            )?;
        }
    }
    writeln!(out, "\n]}}")
}

//! The ratios to C as a picture.

use core::fmt::Write;

use serde_json::Value;

use crate::report::Run;

/// Implementations in the order that they are drawn in: name in the rows, name in the picture,
/// colour.
const DRAWN: [(&str, &str, &str); 4] = [
    ("cuda.core", "cuda.core (Python)", "#999999"),
    ("torch", "torch.cuda (Python)", "#cc79a7"),
    ("cudarc", "cudarc 0.19", "#d55e00"),
    ("safe", "cuda-events", "#0072b2"),
];

const LEFT: f64 = 250.0;
const RIGHT: f64 = 30.0;
const WIDTH: f64 = 900.0;
const TOP: f64 = 86.0;
const ROW: f64 = 30.0;

/// One row for each operation that the C loop and this crate do; time on a logarithmic axis, C at
/// 1.
pub fn plot(rows: &[Value], driver: &str) -> String {
    let run = Run::new(rows, driver);
    let operations: Vec<&str> = run
        .operations()
        .into_iter()
        .filter(|operation| run.find("time", operation, "safe").is_some())
        .collect();
    let ratios = || {
        operations
            .iter()
            .flat_map(|operation| DRAWN.iter().filter_map(|(name, ..)| run.ratio(operation, name)))
    };
    let least = ratios().fold(1.0, f64::min).max(0.02);
    let most = ratios().fold(2.0, f64::max) * 1.15;
    let low = if least < 0.9 { least * 0.8 } else { 0.9 };
    let x = |ratio: f64| {
        LEFT + (WIDTH - LEFT - RIGHT) * (ratio.max(low) / low).ln() / (most / low).ln()
    };
    let height = TOP + ROW * operations.len() as f64 + 44.0;
    let bottom = height - 40.0;

    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"
            font-family="sans-serif" font-size="13">"##
    );
    let _ = writeln!(svg, r##"<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>"##);
    let about = run.of_kind("run").next();
    let of = |key: &str| about.and_then(|run| run[key].as_str()).unwrap_or("");
    let _ = writeln!(
        svg,
        r##"<text x="16" y="26" font-size="17" font-weight="bold">Time of one call, as a multiple
            of the same call in C</text>"##
    );
    let device =
        if driver == "null" { "the null driver (functions return at once)" } else { of("device") };
    let _ = writeln!(
        svg,
        r##"<text x="16" y="45" fill="#555555">{}, CUDA {}, {}. Medians; bars: 10th to 90th
            percentile.</text>"##,
        escape(device),
        escape(of("cuda")),
        escape(of("date"))
    );
    let mut at = 16.0;
    for (name, title, colour) in DRAWN.iter().rev() {
        if run.of_kind("time").any(|row| row["implementation"] == *name) {
            let _ = writeln!(svg, r##"<circle cx="{}" cy="63" r="5" fill="{colour}"/>"##, at + 5.0);
            let _ = writeln!(svg, r##"<text x="{}" y="67">{title}</text>"##, at + 15.0);
            at += 30.0 + 8.0 * title.len() as f64;
        }
    }
    for tick in [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]
    {
        if tick < low || tick > most {
            continue;
        }
        let (x, colour, width) = (
            x(tick),
            if tick == 1.0 { "#000000" } else { "#dddddd" },
            if tick == 1.0 { 1.5 } else { 1.0 },
        );
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom}" stroke="{colour}"
                stroke-width="{width}"/>"##
        );
        let label = if tick == 1.0 { "1 = C".to_owned() } else { format!("{tick} x") };
        let _ = writeln!(
            svg,
            r##"<text x="{x:.1}" y="{}" text-anchor="middle" fill="#333333">{label}</text>"##,
            bottom + 18.0
        );
    }
    for (index, operation) in operations.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        if index % 2 == 0 {
            let _ = writeln!(
                svg,
                r##"<rect x="0" y="{}" width="{WIDTH}" height="{ROW}" fill="#0072b2"
                    fill-opacity="0.05"/>"##,
                y - ROW / 2.0
            );
        }
        let _ = writeln!(
            svg,
            r##"<text x="{}" y="{}" text-anchor="end">{}</text>"##,
            LEFT - 12.0,
            y + 4.5,
            escape(operation)
        );
        for (name, _, colour) in DRAWN {
            let Some(ratio) = run.ratio(operation, name) else { continue };
            if let Some(spread) = run.find("time", operation, name).map(|row| &row["ratio"])
                && let (Some(p10), Some(p90)) = (spread["p10"].as_f64(), spread["p90"].as_f64())
            {
                let _ = writeln!(
                    svg,
                    r##"<line x1="{:.1}" y1="{y}" x2="{:.1}" y2="{y}" stroke="{colour}"
                        stroke-width="3" stroke-opacity="0.5"/>"##,
                    x(p10),
                    x(p90.min(most)),
                );
            }
            let _ = writeln!(
                svg,
                r##"<circle cx="{:.1}" cy="{y}" r="5" fill="{colour}"><title>{name}: {ratio:.2} x
                    C</title></circle>"##,
                x(ratio)
            );
        }
    }
    svg += "</svg>\n";
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

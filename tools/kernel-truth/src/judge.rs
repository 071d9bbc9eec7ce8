//! What the crate says of a launch, as sets of bytes.

use std::time::{Duration, Instant};

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::{Cubin, Kernel};
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::Touch;
use cuda_kernel_access::touch::{Span, Summary, Unknown, may_touch, summary, surely_touched};

use crate::set::Set;

/// What is said of one kernel.
pub struct Known {
    pub code: Result<Code, String>,
    pub summary: Result<Summary, Unknown>,
    /// How long decoding and the summary took.
    pub took: Duration,
}

impl Known {
    pub fn new(architecture: u32, kernel: &Kernel<'_>) -> Self {
        let start = Instant::now();
        let code = Code::new(architecture, kernel).map_err(|reason| reason.to_string());
        let summary = match &code {
            Ok(code) => summary(code),
            Err(_) => Err(Unknown::TooLong),
        };
        Self { code, summary, took: start.elapsed() }
    }

    /// Of the only kernel in a cubin that holds no other.
    pub fn only(image: &[u8], name: &str) -> Option<Self> {
        let cubin = Cubin::parse(image).ok()?;
        Some(Self::new(cubin.architecture, cubin.kernel(name)?))
    }

    /// Why nothing is known, without the numbers of places.
    pub fn reason(&self) -> Option<String> {
        let text = match (&self.code, &self.summary) {
            (Err(text), _) => text.clone(),
            (_, Err(reason)) => reason.to_string(),
            _ => return None,
        };
        let words = text.split(' ').map(|word| if word.starts_with("0x") { "AT" } else { word });
        Some(words.collect::<Vec<_>>().join(" "))
    }
}

/// What is said of one launch.
pub struct Verdict {
    pub spans: Vec<Span>,
    pub sure: Vec<Touch>,
    /// `None` if a write may be anywhere.
    pub may_write: Option<Set>,
    /// `None` if a read may be anywhere.
    pub may_read: Option<Set>,
    pub may_took: Duration,
    pub sure_took: Duration,
}

impl Verdict {
    /// # Errors
    ///
    /// When nothing is known of it.
    pub fn new(code: &Code, launch: &Launch) -> Result<Self, Unknown> {
        let start = Instant::now();
        let spans = may_touch(code, launch)?;
        let may_took = start.elapsed();
        let sure = surely_touched(code, launch);
        let sure_took = start.elapsed() - may_took;
        let all = |asked: fn(AccessKind) -> bool| {
            spans.iter().filter(|span| asked(span.kind)).map(|span| span.bytes.clone()).collect()
        };
        let may_write = all(writes);
        let may_read = all(reads);
        Ok(Self { may_write, may_read, spans, sure, may_took, sure_took })
    }

    /// How many of these bytes no write may touch, as rows leave them out.
    pub fn between_rows(&self, ranges: &[std::ops::Range<u64>]) -> u64 {
        let spans: Vec<_> = self.spans.iter().filter(|span| writes(span.kind)).collect();
        let mut outside = 0;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let ends = spans.iter().filter(|span| span.may_touch(&(at..at + 1)));
                let ends = ends.map(|span| match span.rows.is_empty() {
                    false => at + 1,
                    true => span.bytes.as_ref().map_or(range.end, |bytes| bytes.end),
                });
                let end = ends.max();
                outside += u64::from(end.is_none());
                at = end.unwrap_or(at + 1);
            }
        }
        outside
    }

    /// Bytes that are surely touched in a way.
    pub fn surely(&self, kind: AccessKind) -> Set {
        let touched = self.sure.iter().filter(|touch| touch.kind == kind);
        touched.map(range).collect()
    }
}

pub fn range(touch: &Touch) -> std::ops::Range<u64> {
    touch.address..touch.address.saturating_add(touch.bytes.into())
}

pub fn writes(kind: AccessKind) -> bool {
    !matches!(kind, AccessKind::Read | AccessKind::CopyToShared)
}

pub fn reads(kind: AccessKind) -> bool {
    !matches!(kind, AccessKind::Write)
}

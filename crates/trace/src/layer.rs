//! Spans of the crate `tracing`.

use core::cell::RefCell;
use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Field, Subscriber, field::Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::host::HostRecorder;
use crate::trace::Args;

/// A layer of `tracing-subscriber`, from [`HostRecorder::layer`].
#[derive(Clone, Debug)]
pub struct HostLayer {
    recorder: HostRecorder,
    /// The identity of this layer, as the address of the `Arc`.
    number: Arc<()>,
}

impl HostRecorder {
    /// Returns a layer of `tracing-subscriber` that records spans of the crate `tracing`.
    ///
    /// It records each time that a thread is in a span. If a future enters a span again and again,
    /// each time is recorded.
    ///
    /// ```
    /// use cuda_events_trace::HostRecorder;
    /// use tracing_subscriber::layer::SubscriberExt;
    ///
    /// let recorder = HostRecorder::new();
    /// let subscriber = tracing_subscriber::registry().with(recorder.layer());
    /// tracing::subscriber::with_default(subscriber, || {
    ///     let _span = tracing::info_span!("load", batch = 7).entered();
    ///     // ... the host works ...
    /// });
    /// let records = recorder.take();
    /// assert_eq!(records.spans[0].name, "load");
    /// assert_eq!(records.spans[0].args, [("batch".into(), "7".to_owned())]);
    /// ```
    pub fn layer(&self) -> HostLayer {
        HostLayer { recorder: self.clone(), number: Arc::new(()) }
    }
}

/// The data that a layer keeps with a span: the span's fields. Each layer keeps its own data.
struct Fields(Vec<(usize, Args)>);

thread_local! {
    /// The spans that this thread is in, by layer.
    static ENTERED: RefCell<Vec<(usize, u64, Instant)>> = const { RefCell::new(Vec::new()) };
}

impl HostLayer {
    fn number(&self) -> usize {
        Arc::as_ptr(&self.number).addr()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for HostLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.note(id, &context, |fields| attributes.record(fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.note(id, &context, |fields| values.record(fields));
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        let entered = (self.number(), id.into_u64(), Instant::now());
        // Not in the destructors of a thread's end.
        let _ = ENTERED.try_with(|all| all.borrow_mut().push(entered));
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let mine = |entered: &(usize, u64, Instant)| {
            (entered.0, entered.1) == (self.number(), id.into_u64())
        };
        let entered = ENTERED.try_with(|all| {
            let mut all = all.borrow_mut();
            let at = all.iter().rposition(mine)?;
            Some(all.remove(at).2)
        });
        let (Ok(Some(start)), Some(span)) = (entered, context.span(id)) else { return };
        let args = span.extensions().get::<Fields>().and_then(|Fields(all)| {
            let mine = all.iter().find(|(number, _)| *number == self.number());
            mine.map(|(_, args)| args.clone())
        });
        let name = Cow::Borrowed(span.name());
        self.recorder.keep_span(name, None, args.unwrap_or_default(), start);
    }
}

impl HostLayer {
    fn note<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        id: &Id,
        context: &Context<'_, S>,
        record: impl FnOnce(&mut Visited<'_>),
    ) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if extensions.get_mut::<Fields>().is_none() {
            extensions.insert(Fields(Vec::new()));
        }
        let Some(Fields(all)) = extensions.get_mut::<Fields>() else { return };
        if !all.iter().any(|(number, _)| *number == self.number()) {
            all.push((self.number(), Args::new()));
        }
        if let Some((_, args)) = all.iter_mut().find(|(number, _)| *number == self.number()) {
            record(&mut Visited(args));
        }
    }
}

/// Adds fields as arguments. A field that is recorded again has its last value.
struct Visited<'a>(&'a mut Args);

impl Visit for Visited<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        match self.0.iter_mut().find(|(name, _)| name == field.name()) {
            Some((_, last)) => *last = value,
            None => self.0.push((field.name().into(), value)),
        }
    }
}

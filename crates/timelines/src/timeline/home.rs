//! Where a timeline is at home: its context, and whether that works.

use std::sync::{Arc, Mutex, Weak};

use crate::error::{Error, Result};
use cuda_events::foundation::WeakContext;
use cuda_events::{Context, Driver, Event, EventFlags};

use crate::sync::lock;
use crate::time::note_hooks;

/// The context of a timeline, of which it holds no share. None before the first timeline.
pub(super) struct Home(Mutex<Option<Inner>>);

struct Inner {
    driver: Driver,
    context: WeakContext,
    /// An event of that context which is never recorded: a query of it shows whether the context
    /// has failed, and disturbs no capture. It is shared by all who wait.
    health: Weak<Event>,
}

impl Inner {
    fn of(context: &Context) -> Self {
        note_hooks(context.driver());
        Self { driver: context.driver(), context: context.downgrade(), health: Weak::new() }
    }
}

impl Home {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn set(&self, context: &Context) {
        let inner = Inner::of(context);
        *lock(&self.0) = Some(inner);
    }

    /// The same, unless a share of the context that it has exists.
    pub(super) fn set_unless_alive(&self, context: &Context) {
        let mut home = lock(&self.0);
        if !home.as_ref().is_some_and(|home| home.context.is_alive()) {
            *home = Some(Inner::of(context));
        }
    }

    /// The driver, and a share of the context unless the last one was dropped.
    pub(super) fn get(&self) -> Option<(Driver, Option<Context>)> {
        lock(&self.0).as_ref().map(|home| (home.driver, home.context.upgrade()))
    }

    /// The event that shows whether the context works. It has a share of the context.
    pub(super) fn health(&self) -> Result<Arc<Event>> {
        let (weak, context) = {
            let home = lock(&self.0);
            let Some(home) = home.as_ref() else { return Err(Error::ContextDropped) };
            if let Some(event) = home.health.upgrade() {
                return Ok(event);
            }
            (home.context.clone(), home.context.upgrade())
        };
        let context = context.ok_or(Error::ContextDropped)?;
        // Created with nothing locked: an observer of the driver's calls may wait for a point, too.
        let event = Arc::new(Event::new(&context, EventFlags::empty())?);
        let mut home = lock(&self.0);
        let Some(home) = home.as_mut().filter(|home| home.context.is_same(&weak)) else {
            return Ok(event);
        };
        match home.health.upgrade() {
            // Another thread was faster. All must share one, for the sake of the queue.
            Some(theirs) => Ok(theirs),
            None => {
                home.health = Arc::downgrade(&event);
                Ok(event)
            }
        }
    }
}

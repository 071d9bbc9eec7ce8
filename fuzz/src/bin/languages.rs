//! What the software driver is told in text: its settings, faults, and commands of a running
//! program.
#![no_main]

use std::sync::LazyLock;

use cuda_soft_driver::{Builder, Fault, SoftDriver};
use libfuzzer_sys::fuzz_target;

static RUNNING: LazyLock<SoftDriver> = LazyLock::new(SoftDriver::new);

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind % 3 {
        0 => {
            let read = Builder::from_text(text);
            // White space and empty pairs mean nothing.
            let spaced = format!(" ,{} ,", text.replace(',', " , "));
            assert_eq!(Builder::from_text(&spaced).is_ok(), read.is_ok(), "{text:?}");
            match read {
                // What is taken can be built. The seed is told on standard error.
                Ok(builder) if kind & 0x78 == 0 && !text.contains("seed") => drop(builder.build()),
                Ok(_) => {}
                Err(said) => assert!(!said.is_empty()),
            }
        }
        1 => {
            let read = Fault::from_text(text);
            if let Err(said) = &read {
                assert!(!said.is_empty());
            }
            // As a setting it means the same, where nothing in it ends the setting.
            if !text.contains(|at: char| at == ',' || at.is_whitespace()) {
                let setting = Builder::from_text(&format!("fault={text}"));
                assert_eq!(setting.is_ok(), read.is_ok(), "{text:?}");
            }
        }
        _ => {
            let said = RUNNING.control(text);
            if let Err(said) = said {
                assert!(!said.is_empty());
            }
            RUNNING.clear_faults();
        }
    }
});

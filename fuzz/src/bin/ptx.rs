//! PTX, whole or as the body of a kernel: what is said of it, if anything.
#![no_main]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::execute::execute;
use cuda_kernel_access::ptx::Module;
use cuda_kernel_access::touch::{may_touch, summary, surely_touched};
use libfuzzer_sys::fuzz_target;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.global .b8 v[16];\n\
    .func (.param .b64 r) f(.param .b64 x) { .reg .b64 a; ld.param.b64 a, [x]; add.u64 a, a, 1;\
    st.param.b64 [r], a; ret; }\n\
    .entry k(.param .u64 p, .param .u64 q, .param .align 8 .b8 s[24]) {\n\
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<6>; .reg .b64 %d<6>; .shared .b8 m[64];\n\
    ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q]; mov.u32 %r1, %tid.x;\n";

/// What takes longer only keeps the target from trying more.
fn clock() -> Duration {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed()
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let text = if kind % 2 == 0 { text.to_owned() } else { format!("{HEAD}{text}\nret; }}\n") };
    let module = match Module::parse(&text) {
        Ok(module) => module,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for entry in module.entries.iter().take(3) {
        let code = match Code::from_ptx(&module, entry.name) {
            Ok(code) => code.within(clock, Duration::from_millis(200)),
            Err(error) => return assert!(!error.to_string().is_empty()),
        };
        let _ = summary(&code);
        let parameters: Vec<u8> = (0..48).map(|at| u8::from(at % 8 == 5) * 0x7f + at).collect();
        let launch = Launch::new([3, 2, 1], [33, 1, 2], parameters);
        let spans = may_touch(&code, &launch);
        let _ = surely_touched(&code, &launch);
        let run = execute(&code, &launch, [1, 0, 0], [32, 0, 1], &mut |_, _| None, 2000);
        // Loops that do not end may turn more often than bounds are for.
        if let Ok(spans) = spans {
            for touch in run.touched.get(..run.known).unwrap_or_default() {
                let end = touch.address.wrapping_add(touch.bytes.into());
                let is_in = spans.iter().any(|span| {
                    span.at == touch.at
                        && span.bytes.as_ref().is_none_or(|bytes| {
                            bytes.start <= touch.address && end.wrapping_sub(1) < bytes.end
                        })
                });
                assert!(is_in, "{touch:x?} is not in {spans:x?}");
            }
        }
        assert!(code.line(0).is_some_and(|line| line as usize <= text.lines().count() + 1));
    }
});

//! PTX and machine code of the same kernels.

use cuda_kernel_access::code::Code;
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::Touch;
use cuda_kernel_access::ptx::Module;
use cuda_kernel_access::touch::{Span, Uses, may_touch, summary, surely_touched};

use crate::shapes::{self, case};

/// Whether each sure access lies in what may happen by the other code of the same kernel.
fn within(sure: &[Touch], spans: &[Span], place: &str) -> usize {
    let class = |kind| match kind {
        AccessKind::CopyToShared => AccessKind::Read,
        AccessKind::Reduce => AccessKind::Atomic,
        other => other,
    };
    for touch in sure {
        let bytes = touch.address..touch.address + u64::from(touch.bytes);
        // One access may be several in the other code.
        let is_in = |byte: u64| {
            spans.iter().any(|span| {
                class(span.kind) == class(touch.kind)
                    && span.bytes.as_ref().is_none_or(|bytes| bytes.contains(&byte))
            })
        };
        assert!(bytes.clone().all(is_in), "{place}: {touch:x?} is not in {spans:x?}");
    }
    sure.len()
}

/// Of the kernels that `tools/kernels` compiles, to machine code and to PTX: both say the same.
#[test]
fn compiled_text_is_as_its_machine_code() {
    let (mut parameters, mut words, mut touches) = (0, 0, 0);
    for path in shapes::compiled("ptx") {
        let text = std::fs::read_to_string(&path).expect("a text");
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let image = std::fs::read(path.with_extension("cubin")).expect("a file");
        let cubin = Cubin::parse(&image).expect("a cubin");
        for entry in &module.entries {
            let place = format!("{} {}", entry.name, path.display());
            let kernel = cubin.kernel(entry.name).expect(&place);
            assert_eq!(entry.parameters, kernel.parameters, "{place}");
            parameters += entry.parameters.len();
            let both = Code::from_ptx(&module, entry.name)
                .ok()
                .zip(Code::new(cubin.architecture, kernel).ok());
            let Some((own, machine)) = both else { continue };
            let class = |uses: Uses| [uses.read, uses.written, uses.atomic];
            if let (Ok(one), Ok(two)) = (summary(&own), summary(&machine)) {
                for (one, two) in one.words.iter().zip(&two.words) {
                    // Numbers from memory count there.
                    if entry.name != "branches" && entry.name != "many_tensors" {
                        assert_eq!(class(one.uses), class(two.uses), "{place} {one:?} {two:?}");
                    }
                    words += 1;
                }
            }
            for which in 0..3 {
                let Some((launch, ..)) = case(entry.name, which) else { continue };
                let spans = [&own, &machine].map(|code| may_touch(code, &launch));
                let sure = [&own, &machine].map(|code| surely_touched(code, &launch));
                if let [Ok(first), Ok(second)] = spans {
                    touches += within(&sure[0], &second, &place);
                    touches += within(&sure[1], &first, &place);
                }
            }
        }
    }
    let none = std::env::var_os("CUDA_KERNEL_ACCESS_CORPUS").is_none();
    assert!(
        none || parameters > 100 && words > 80 && touches > 500,
        "{parameters} {words} {touches}"
    );
}

//! The host's accesses to memory that kernels get addresses of.

use core::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, StreamId};

use super::corpus::{
    CALL, CONCURRENT, INPUT, MEMORY, NONE, OFFSET, REDUCTIONS, RING, WAITS, found, launch,
    possible, touch, whole, with_image,
};
use crate::call::{Call, Handle, OK};
use crate::hooks::{memory, streams};
use crate::model::copies;
use crate::pinned::protection::{PAGE, readable};
use crate::pinned::{self, protection};
use crate::state::pinned::State;
use crate::walk::{begin_call, locked};
use crate::watch::Watch;

const ALLOCATE: Call = Call { name: "cuMemAllocManaged", per_thread: false };
const THREADS: u64 = 256;

/// Four pages, which the program got as memory of this kind.
fn pages(memory: Memory) -> u64 {
    let (flags, access) = (libc::MAP_PRIVATE | libc::MAP_ANON, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: new pages, which stay.
    let first = unsafe { libc::mmap(core::ptr::null_mut(), 4 * PAGE, access, flags, -1, 0) };
    let mut first = first.expose_provenance() as u64;
    memory::allocate(&ALLOCATE, || OK, &mut first, 4 * PAGE, memory);
    first
}

/// The program reads or writes a byte: if the page is closed, the handler notes it.
fn byte(address: u64, writes: bool) {
    let place: *mut u8 = core::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: mapped by `pages`.
    unsafe {
        match writes {
            true => place.write_volatile(7),
            false => _ = place.read_volatile(),
        }
    }
}

fn read(address: u64) {
    byte(address, false);
}

fn write(address: u64) {
    byte(address, true);
}

fn regions() -> usize {
    locked(|watch| watch.pinned.regions.len()).expect("it watches")
}

fn any_call() {
    begin_call(&CALL, |_| ());
}

/// How sure each finding is, and what its two sides do.
fn kinds() -> Vec<String> {
    any_call();
    let short = |text: String| {
        let mut words = text.split(' ');
        let first = words.next().expect("how sure").to_owned();
        let last: Vec<&str> = words.skip_while(|word| word.contains("..")).collect();
        format!("{first} {}", last.join(" "))
    };
    found().into_iter().map(short).collect()
}

fn with_host(settings: &str, image: Vec<u8>) -> [Handle; 2] {
    let streams = with_image(settings, image);
    pinned::prepare();
    let on = |watch: &mut Watch| watch.pinned.state = State::On;
    begin_call(&CALL, on);
    streams
}

/// The kernel writes the first bytes of `to`, and reads the same of `from`.
fn copies(stream: Handle, from: u64, to: u64) {
    launch(OFFSET, stream, &[from, to, 0, 1, THREADS]);
}

fn done(stream: Handle) {
    streams::synchronize(&CALL, || OK, stream);
}

pub(super) fn memory_of_the_host() {
    for kind in [Memory::Managed, Memory::Host] {
        let [a, _] = with_host("", whole());
        let memory = pages(kind);
        let launched = || {
            copies(a, INPUT, memory);
            assert!(!readable(memory as usize), "a kernel writes there, as far as is known");
        };
        launched();
        read(memory);
        assert_eq!(kinds(), ["certain: writes reads"], "{kind:?}");
        done(a);
        read(memory);
        write(memory + 4);
        assert_eq!(kinds(), NONE, "after the kernel");

        // What the kernel does not touch, on the same page and on another one. Then what it does.
        launched();
        read(memory + 4 * THREADS);
        write(memory + 3 * PAGE as u64);
        assert_eq!(kinds(), NONE);
        write(memory + 4 * THREADS - 1);
        assert_eq!(kinds(), ["certain: writes writes"], "the page is closed again");
        done(a);

        // It reads only, which is known once the first finding was judged.
        let [a, _] = with_host("", whole());
        let memory = pages(kind);
        for closed in [true, false] {
            copies(a, memory, INPUT);
            assert_eq!(readable(memory as usize), !closed);
            read(memory);
            assert_eq!(kinds(), NONE);
            if closed {
                done(a);
            }
        }
        write(memory);
        assert_eq!(kinds(), ["certain: reads writes"]);
        done(a);
        assert!(!protection::any());

        // The last page, and an address within the memory.
        let [a, _] = with_host("", whole());
        let memory = pages(kind);
        let (page, last) = (PAGE as u64, 3 * PAGE as u64);
        launch(OFFSET, a, &[INPUT, memory + page, (last - page) / 4, 1, THREADS]);
        assert!(!readable(memory as usize), "the whole memory");
        read(memory + page);
        assert_eq!(kinds(), NONE);
        read(memory + last + 4 * THREADS - 1);
        assert_eq!(kinds(), ["certain: writes reads"]);
        done(a);

        // The end of the memory while it is protected.
        copies(a, INPUT, memory);
        assert!(protection::any());
        let before = regions();
        memory::free(&CALL, || OK, memory);
        assert!(!protection::any());
        assert_eq!(regions(), before - 1);
        write(memory);
        assert_eq!(kinds(), NONE);
    }
    gaps();
    flags();
    flags_of_later_kernels();
    nothing_is_protected();
}

/// Many accesses that meet nothing cost no more than so many faults.
fn gaps() {
    let [a, _] = with_host("", whole());
    let memory = pages(Memory::Managed);
    copies(a, INPUT, memory);
    for _ in 0..40 {
        read(memory + 4 * THREADS);
        assert_eq!(kinds(), NONE);
    }
    assert!(readable(memory as usize), "it is not protected any longer");
    done(a);
    // In a second that does not end, and in several memories, as each page has a bound of its own.
    begin_call(&CALL, |watch| watch.pinned.begin = Instant::now() + Duration::from_secs(3600));
    let memories = [(); 4].map(|()| pages(Memory::Managed));
    let launch_and_read = |memory: &&u64| {
        copies(a, INPUT, **memory);
        let closed = !readable(**memory as usize);
        for _ in 0..32 {
            read(**memory + 4 * THREADS);
            any_call();
        }
        done(a);
        closed
    };
    // Those above may count, too.
    let watched = memories.iter().cycle().take(40).filter(launch_and_read).count();
    assert!((29..=32).contains(&watched), "{watched}");
    let lines = locked(|watch| watch.pinned.lines()).expect("it watches");
    assert!(lines.iter().any(|line| line.contains("accessed 1000 times within a second")));
}

/// What a flag's accesses are may be on purpose.
fn flags() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-access/tests/order.ptx");
    let text = std::fs::read_to_string(path).expect("the kernels");
    let weak = text.replace("ld.volatile.global", "ld.global");
    let strong = weak.replace("st.global.f32 [%out]", "st.release.sys.global.f32 [%out]");
    assert!(text != weak && weak != strong);
    let why = "waits: its accesses are those of a flag";
    // An atomic operation writes, too: the memory stays closed once the kernel is known.
    let atomic = weak.replace("st.global.f32 [%out]", "red.global.add.u32 [%out]");
    let sum = weak.replace("st.global.f32 [%out]", "red.global.add.f32 [%out]");
    for (text, certain) in [(weak, true), (strong, false), (atomic, false), (sum, true)] {
        let [a, _] = with_host("", (text + "\0").into_bytes());
        let memory = pages(Memory::Managed);
        launch(WAITS, a, &[INPUT, INPUT + 1024, memory]);
        read(memory);
        let all = kinds();
        let expected: &[&str] = if certain { &["certain: writes reads"] } else { &[] };
        assert_eq!(all, expected);
        assert_eq!(possible().get(1).is_some_and(|line| line.contains(why)), !certain);
        done(a);
        launch(WAITS, a, &[INPUT, INPUT + 1024, memory]);
        assert!(!readable(memory as usize));
        done(a);
    }
    // What it writes before a fence, or before a flag elsewhere, may have been waited for.
    let weak = text.replace("ld.volatile.global", "ld.global");
    let ret = "    st.global.f32 [%out], %value;\n";
    assert!(weak.contains(ret));
    for more in [
        "    membar.sys;\n    st.global.u32 [%flag], 1;\n",
        "    st.volatile.global.u32 [%flag], 1;\n",
    ] {
        let text = weak.replacen(ret, &format!("{ret}{more}"), 1);
        let [a, _] = with_host("", (text + "\0").into_bytes());
        let memory = pages(Memory::Host);
        launch(WAITS, a, &[memory + PAGE as u64, INPUT + 1024, memory]);
        read(memory);
        assert_eq!(kinds(), NONE, "{more}");
        assert!(possible()[1].contains("the host may see in memory"), "{:?}", possible());
        done(a);
    }
    let [a, _] = with_host("", whole());
    let memory = pages(Memory::Managed);
    launch(REDUCTIONS, a, &[memory, memory + 64, memory + 128, memory + 192, INPUT, 1]);
    write(memory);
    assert_eq!(kinds(), NONE);
    assert!(
        possible().get(1).is_some_and(|line| line.contains("its accesses are those of a flag"))
    );
    done(a);
}

/// A later kernel sets a flag that the host polls: it is after all work before that.
fn flags_of_later_kernels() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-access/tests/order.ptx");
    let text = std::fs::read_to_string(path).expect("the kernels");
    let weak = text.replace("ld.volatile.global", "ld.global");
    let strong = weak.replace("st.global.u32 [%slots]", "st.release.sys.global.u32 [%slots]");
    assert!(text != weak && weak != strong);
    let writes = |stream, memory| launch(WAITS, stream, &[INPUT, INPUT + 1024, memory]);
    let signals = |stream, memory: u64| launch(RING, stream, &[INPUT, memory + 2 * PAGE as u64]);
    let sees = "the host may see in memory how far it is";
    let is_seen = |expected: &str| {
        assert_eq!(kinds(), NONE, "{expected}");
        let lines = possible();
        let is_it = |line: &String| line.contains(&format!("{expected}: {sees}"));
        assert!(lines.len() == 2 && is_it(&lines[1]), "{lines:?}");
    };
    let with = |text: &str| {
        let streams = with_host("", format!("{text}\0").into_bytes());
        (streams, pages(Memory::Host))
    };
    for (text, first, is_certain) in
        [(&weak, false, true), (&strong, true, true), (&strong, false, false)]
    {
        let ([a, _], memory) = with(text);
        if first {
            signals(a, memory);
        }
        writes(a, memory);
        if !first {
            signals(a, memory);
        }
        read(memory);
        match is_certain {
            true => assert_eq!(kinds(), ["certain: writes reads"]),
            false => is_seen("waits"),
        }
        done(a);
    }
    // The host has looked at what the kernel stores in a plain way, or the system did not say so.
    for is_watched in [true, false] {
        let ([a, _], memory) = with(&weak);
        writes(a, memory);
        signals(a, memory);
        match is_watched {
            true => read(memory + 2 * PAGE as u64),
            false => crate::code::signals::unwatched(),
        }
        read(memory);
        let found = kinds();
        assert!(!found.contains(&"certain: writes reads".to_owned()), "{found:?}");
        assert!(possible().iter().any(|line| line.contains(&format!("waits: {sees}"))));
        done(a);
    }
    // In another stream, which may be after it, and in a graph that was captured before.
    let ([a, b], memory) = with(&strong);
    writes(a, memory);
    signals(b, memory);
    read(memory);
    is_seen("waits");
    [a, b].into_iter().for_each(done);
    let ([a, b], memory) = with(&strong);
    streams::capture_begin(&CALL, || OK, b);
    signals(b, memory);
    streams::capture_end(&CALL, || OK, b, &mut 300);
    writes(a, memory);
    read(memory);
    is_seen("waits");
    done(a);
    // A node that was added to a graph before.
    let ([a, _], memory) = with(&strong);
    let values = [INPUT, memory + 2 * PAGE as u64];
    let parameters = values.each_ref().map(|value| core::ptr::from_ref(value).expose_provenance());
    begin_call(&CALL, |watch| {
        let Watch { kernels, feed, questions, .. } = watch;
        let (sizes, parameters) = ([1, 1, 1, 256, 1, 1], parameters.as_ptr());
        kernels.pointed_to(feed, questions, RING.0, sizes, parameters, core::ptr::null());
    });
    writes(a, memory);
    read(memory);
    is_seen("waits");
    done(a);
    // The host sees the flag, and goes on with another stream: with a kernel, or with a copy.
    for (text, is_ordered) in [(&weak, false), (&strong, true)] {
        for other in [0, 1, 2] {
            let ([a, b], memory) = with(text);
            match other {
                2 => touch(a, "cuMemcpyDtoDAsync_v2", Access::write(MEMORY, 64)),
                _ => writes(a, MEMORY),
            }
            signals(a, memory);
            match other {
                0 => launch(WAITS, b, &[INPUT, INPUT + 2048, MEMORY]),
                _ => touch(b, "cuMemcpyDtoDAsync_v2", Access::write(MEMORY, 64)),
            }
            let found = found();
            let possible = possible();
            assert_eq!(found.len(), usize::from(!is_ordered), "{other} {found:?} {possible:?}");
            let is_it = |line: &String| line.contains(sees);
            assert_eq!(possible.iter().any(is_it), is_ordered, "{other}");
            [a, b].into_iter().for_each(done);
        }
    }
    // A kernel that waits for the host holds back what is behind it, and not what is before.
    for (text, first, is_held) in [(&text, true, true), (&text, false, false), (&weak, true, false)]
    {
        let ([a, _], memory) = with(text);
        let waits = || launch(WAITS, a, &[memory + 2 * PAGE as u64, INPUT, INPUT + 2048]);
        let reads = || launch(RING, a, &[memory, INPUT]);
        match first {
            true => [&waits as &dyn Fn(), &reads],
            false => [&reads as &dyn Fn(), &waits],
        }
        .iter()
        .for_each(|launch| launch());
        write(memory);
        match is_held {
            false => assert_eq!(kinds(), ["certain: reads writes"]),
            true => {
                assert_eq!(kinds(), NONE);
                let lines = possible();
                let holds = "ring: a kernel before it may wait for the host";
                assert!(lines.len() == 2 && lines[1].contains(holds), "{lines:?}");
            }
        }
        done(a);
    }
    // A copy that was submitted before the kernel.
    for (text, is_possible) in [(&weak, false), (&strong, true)] {
        let ([a, _], memory) = with(text);
        let copy = Call { name: "cuMemcpyDtoHAsync_v2", per_thread: false };
        begin_call(&copy, |watch| {
            copies::submitted(watch, StreamId(a as u64), None, &[Access::write(memory, 64)]);
        });
        signals(a, memory);
        read(memory);
        match is_possible {
            true => is_seen("cuMemcpyDtoHAsync_v2"),
            false => assert_eq!(kinds(), ["certain: writes reads"]),
        }
        done(a);
    }
}

/// Without the class, where the system says when the host may access managed memory, and in a capture.
fn nothing_is_protected() {
    let [a, _] = with_host(",class=-host", whole());
    let memory = pages(Memory::Managed);
    begin_call(&CALL, |watch| watch.pinned.state = State::Unused);
    copies(a, INPUT, memory);
    assert!(readable(memory as usize));

    let [a, _] = with_host("", whole());
    CONCURRENT.store(false, Ordering::Relaxed);
    let memory = pages(Memory::Managed);
    CONCURRENT.store(true, Ordering::Relaxed);
    copies(a, INPUT, memory);
    assert!(readable(memory as usize));

    let [a, _] = with_host("", whole());
    let memory = pages(Memory::Managed);
    streams::capture_begin(&CALL, || OK, a);
    copies(a, INPUT, memory);
    assert!(readable(memory as usize));
    read(memory);
    assert_eq!(kinds(), NONE);
    pinned::give_up();
}

//! Threads that touch given bytes are found, and no others.

mod common;
#[path = "common/shapes.rs"]
mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::{Touch, execute};
use cuda_kernel_access::ptx::Module;
use cuda_kernel_access::threads::{Every, Sought, Touched, every_touch, seek};
use cuda_kernel_access::touch::{may_touch, surely_touched};
use shapes::case;

const STEPS: usize = 1 << 19;

/// Machine code of one architecture, and PTX.
fn some_shapes() -> impl Iterator<Item = shapes::Shape> {
    shapes::shapes().into_iter().filter(|shape| [90, shapes::PTX].contains(&shape.architecture))
}

/// What each thread touches, run one after the other, and what may be missing.
fn one_by_one(code: &Code, launch: &Launch) -> (Vec<Touch>, BTreeSet<usize>) {
    let places = |[x, y, z]: [u32; 3]| {
        (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
    };
    let (mut touched, mut missing) = (Vec::new(), BTreeSet::new());
    for block in places(launch.grid) {
        for thread in places(launch.block) {
            let run = execute(code, launch, block, thread, &mut |_, _| None, 20_000);
            touched.extend(run.touched);
            missing.extend(run.missing);
        }
    }
    (touched, missing)
}

fn every_byte<'a>(all: impl Iterator<Item = &'a Touched>) -> BTreeMap<usize, BTreeSet<u64>> {
    let mut bytes = BTreeMap::<usize, BTreeSet<u64>>::new();
    for one in all {
        bytes.entry(one.at).or_default().extend(one.bytes.clone());
    }
    bytes
}

fn is_certain(kind: AccessKind) -> bool {
    !matches!(kind, AccessKind::CopyToShared | AccessKind::Unknown)
}

#[test]
fn all_threads_touch_what_each_does() {
    let (mut launches, mut atomics) = (0, 0);
    for shape in some_shapes() {
        for which in 0..2 {
            let Some((launch, ..)) = case(&shape.name, which) else { continue };
            let place = format!("{} sm_{} {which}", shape.name, shape.architecture);
            let Some(every) = every_touch(&shape.code, &launch, STEPS) else { continue };
            let (touched, missing) = one_by_one(&shape.code, &launch);
            assert_eq!(every.missing, missing, "{place}");
            let mut expected = BTreeMap::<usize, BTreeSet<u64>>::new();
            for touch in &touched {
                let bytes = touch.address..touch.address + u64::from(touch.bytes);
                expected.entry(touch.at).or_default().extend(bytes);
            }
            let all = every_byte(every.sure.iter().chain(&every.perhaps));
            assert_eq!(all, expected, "{place}");
            // Of some it is only the first byte that is sure, or none.
            for touch in touched {
                let is_sure = |at: u64| {
                    every.sure.iter().any(|one| one.at == touch.at && one.bytes.contains(&at))
                };
                let first = is_sure(touch.address);
                let last = is_sure(touch.address + u64::from(touch.bytes) - 1);
                match touch.kind {
                    // Of PTX reads that are of no use are not.
                    AccessKind::Read if shape.architecture == shapes::PTX => {
                        assert_eq!(first, last)
                    }
                    AccessKind::Read | AccessKind::Write => assert!(first && last, "{place}"),
                    AccessKind::Atomic | AccessKind::Reduce => {
                        assert!(first, "{place}");
                        atomics += usize::from(!last);
                    }
                    kind => assert!(!first && !is_certain(kind), "{place}"),
                }
            }
            launches += 1;
        }
    }
    assert!(launches > 50 && atomics > 50, "{launches} {atomics}");
}

/// Bytes that a thread in the middle touches are found, though few threads are run.
#[test]
fn threads_are_found_by_their_bytes() {
    let (mut found, mut lost) = (0, BTreeSet::new());
    for shape in some_shapes() {
        for which in [0, 1] {
            let Some((launch, ..)) = case(&shape.name, which) else { continue };
            let place = format!("{} sm_{} {which}", shape.name, shape.architecture);
            let middle = |sizes: [u32; 3]| sizes.map(|size| size * 5 / 11);
            let [block, thread] = [launch.grid, launch.block].map(middle);
            let run = execute(&shape.code, &launch, block, thread, &mut |_, _| None, 20_000);
            let Some(every) = every_touch(&shape.code, &launch, STEPS) else { continue };
            for touch in run.touched {
                let wanted = touch.address..touch.address + 1;
                let is_sure =
                    |one: &Touched| one.at == touch.at && one.bytes.contains(&wanted.start);
                let mut steps = 1 << 20;
                match seek(&shape.code, &launch, touch.at, &wanted, &mut steps) {
                    Sought::Touched(one) => {
                        assert_eq!((one.at, &one.bytes), (touch.at, &wanted), "{place}");
                        assert!(every.sure.iter().any(is_sure), "{place}");
                        found += 1;
                    }
                    _ if every.sure.iter().any(is_sure) => {
                        lost.insert(shape.name.clone());
                    }
                    // It is there only perhaps.
                    other => assert_eq!(other, Sought::Unknown, "{place}"),
                }
                assert!(steps < 1 << 20, "it counts what it runs");
            }
        }
    }
    // Those of quotients, and of tables that have another array for each block or thread.
    let expected = ["changed_copy", "divided", "many_tensors", "remainders"].map(str::to_owned);
    assert!(lost.is_subset(&expected.into()), "{lost:?}");
    assert!(found > 100, "{found}");
}

fn kernel(body: &str) -> Code {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.entry kernel(.param .u64 to, .param .u32 n)\n\
         {{ .reg .b64 %a, %w; .reg .b32 %i, %b, %s, %n, %v; .reg .pred %p, %q;\n\
         ld.param.u64 %a, [to]; ld.param.u32 %n, [n];\n\
         mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %b, %s, %i;\n\
         {body}\nDONE: ret; }}\n"
    );
    let module = Module::parse(&text).expect("it is PTX");
    Code::from_ptx(&module, "kernel").expect("it is known")
}

const TO: u64 = 0x7f00_0000_0000;

fn launched(blocks: u32, threads: u32, n: u32) -> Launch {
    let parameters = [&TO.to_le_bytes()[..], &n.to_le_bytes()].concat();
    Launch::new([blocks, 1, 1], [threads, 1, 1], parameters)
}

/// Where the only access may be.
fn span(code: &Code, launch: &Launch) -> (usize, Range<u64>) {
    let spans = may_touch(code, launch).expect("it is known");
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    (span.at, span.bytes.clone().expect("bounds"))
}

fn every(code: &Code, launch: &Launch) -> Every {
    every_touch(code, launch, STEPS).expect("few threads")
}

const STORE: &str = "mul.wide.u32 %w, %i, 4; add.u64 %a, %a, %w; st.global.u32 [%a], %i;";

/// Bounds have all that is between the first and the last element; threads do not touch it.
#[test]
fn the_ends_of_an_array_are_not_its_middle() {
    let body = "sub.u32 %v, %n, 1; setp.eq.u32 %p, %i, 0; setp.eq.u32 %q, %i, %v;\n\
        or.pred %p, %p, %q; @!%p bra DONE;";
    let code = kernel(&format!("{body} {STORE}"));
    let (few, many) = (launched(4, 64, 200), launched(1 << 20, 256, 200 << 20));
    for (launch, last) in [(&few, 199), (&many, (200 << 20) - 1)] {
        let (at, bytes) = span(&code, launch);
        assert!(bytes.start == TO && bytes.end > TO + 4 * last, "bounds leave nothing out");
        let sought = |element: u64| {
            let wanted = TO + 4 * element..TO + 4 * element + 4;
            seek(&code, launch, at, &wanted, &mut { 1 << 18 })
        };
        assert!(matches!(sought(0), Sought::Touched(_)), "the first of {last}");
        for element in [1, last / 2, last - 1] {
            assert_eq!(sought(element), Sought::NotFound, "{element} of {last}");
        }
    }
    let every = every(&code, &few);
    assert!(every.missing.is_empty() && every.perhaps.is_empty());
    let all: Vec<_> = every.sure.iter().map(|one| one.bytes.clone()).collect();
    assert_eq!(all, [TO..TO + 4, TO + 796..TO + 800]);
    let at = every.sure[0].at;
    assert!(
        every.may_touch(at, &(TO + 796..TO + 797)) && !every.may_touch(at, &(TO + 4..TO + 796))
    );
    assert!(!every.may_touch(at + 16, &(TO..TO + 4)));
    assert_eq!(every_touch(&code, &many, STEPS), None);
}

/// Only what a loaded value decides counts as that: not what comes before it, nor what a clock decides.
#[test]
fn a_condition_is_of_memory_if_a_value_from_there_decides() {
    let late = "mul.wide.u32 %w, %i, 4; add.u64 %a, %a, %w; st.global.u8 [%a], %i;";
    let by = |value: &str| {
        kernel(&format!(
            "st.global.u32 [%a+4096], %i; {value} setp.eq.u32 %p, %v, 0; @%p bra DONE; {late}"
        ))
    };
    for (value, expected) in [
        ("ld.global.u32 %v, [%a+8192]; add.u32 %v, %v, %i;", true),
        ("mov.u32 %v, %clock; add.u32 %v, %v, %i;", false),
        ("ld.global.u32 %v, [%a+8192]; mov.u32 %v, %clock;", false),
    ] {
        let code = by(value);
        let launch = launched(2, 32, 40);
        let every = every(&code, &launch);
        let spans = may_touch(&code, &launch).expect("it is known");
        let stores = spans.iter().filter(|span| span.kind == AccessKind::Write);
        let [first, last] = Vec::from_iter(stores.map(|span| span.at))[..] else { panic!() };
        assert!(every.missing.contains(&last) && !every.conditional.contains(&first), "{value}");
        assert_eq!(every.conditional.contains(&last), expected, "{value}");
        let found = seek(&code, &launch, last, &(TO..TO + 1), &mut { 1 << 18 });
        assert_eq!(found == Sought::Conditional, expected, "{value} {found:?}");
    }
}

/// What a thread does where memory says it may do is neither found nor denied.
#[test]
fn what_memory_decides_is_unknown() {
    let code = kernel(&format!(
        "ld.global.u32 %v, [%a]; setp.eq.u32 %p, %v, 0; @%p bra DONE; setp.ge.u32 %p, %i, %n;\n\
         @%p bra DONE; {STORE}"
    ));
    let launch = launched(2, 32, 40);
    let every = every(&code, &launch);
    let spans = may_touch(&code, &launch).expect("it is known");
    let store = spans.iter().find(|span| span.kind == AccessKind::Write).expect("a store").at;
    assert!(every.missing.contains(&store) && every.sure.iter().all(|one| one.at != store));
    assert!(every.may_touch(store, &(TO + 80..TO + 84)));
    let seek = |bytes| seek(&code, &launch, store, &bytes, &mut { 1 << 18 });
    assert_eq!(seek(TO + 80..TO + 84), Sought::Conditional);
    assert!(every.conditional.contains(&store));
    // Without threads, bytes, or time.
    assert_eq!(seek(TO..TO), Sought::NotFound);
}

/// What the caller says that memory holds, threads read: a table of places leads to these and no others. What
/// it does not say, or of which a word is missing, is unknown as before.
#[test]
fn what_memory_holds_is_read() {
    let table = 0x7e00_0000_0000_u64;
    let code = kernel(&format!(
        "mul.wide.u32 %w, %i, 4; add.u64 %w, %w, {table};\n\
         ld.global.u32 %i, [%w]; {STORE}"
    ));
    let places = [7_u32, 100, 100_000, 3];
    let bytes: Vec<u8> = places.into_iter().flat_map(u32::to_le_bytes).collect();
    let mut launch = launched(1, 4, 0);
    let stores = |launch: &Launch| {
        let every = every(&code, launch);
        let all = every.sure.iter().filter(|one| one.kind == AccessKind::Write);
        let all: Vec<u64> = all.map(|one| (one.bytes.start - TO) / 4).collect();
        (all, every.missing.len())
    };
    assert_eq!(stores(&launch), (vec![], 1));
    launch.memory = vec![(table - 64, [0; 64].into()), (table, bytes.clone().into())];
    assert_eq!(stores(&launch), (vec![3, 7, 100, 100_000], 0));
    let corners: Vec<u64> = surely_touched(&code, &launch)
        .iter()
        .filter(|touch| touch.kind == AccessKind::Write)
        .map(|touch| (touch.address - TO) / 4)
        .collect();
    assert_eq!(corners, [3, 7]);
    for (first, bytes) in [(table, &bytes[..15]), (table + 1, &bytes[1..])] {
        launch.memory = vec![(first, bytes.into())];
        let (known, missing) = stores(&launch);
        assert_eq!((known.len(), missing), (3, 1), "{first:x}");
    }
}

#[test]
fn without_time_nothing_is_denied() {
    let code = kernel(STORE);
    let launch = launched(1 << 20, 256, 0);
    let (at, bytes) = span(&code, &launch);
    let middle = bytes.start + (bytes.end - bytes.start) / 2 / 4 * 4;
    let wanted = middle..middle + 4;
    assert_eq!(seek(&code, &launch, at, &wanted, &mut 3), Sought::Unknown);
    let found = seek(&code, &launch, at, &wanted, &mut { 1 << 12 });
    assert!(matches!(found, Sought::Touched(one) if one.bytes == wanted));
    assert_eq!(every_touch(&code, &launched(2, 32, 0), 64 * 5), None);
    assert!(every_touch(&code, &launched(0, 32, 0), 64).is_some_and(|every| every.sure.is_empty()));
}

/// Addresses that fall with the thread's number, rows behind each other, and a step in between.
#[test]
fn addresses_lead_to_their_threads() {
    let flipped = "sub.u32 %i, %n, %i; ";
    let rows =
        "shr.u32 %v, %i, 10; mul.lo.u32 %v, %v, 5000; and.b32 %i, %i, 1023; add.u32 %i, %i, %v; ";
    let far = "setp.gt.u32 %p, %i, 100000; @%p add.u32 %i, %i, 7000000; ";
    for (body, element) in [
        (flipped, (1 << 24) - 12345),
        (rows, 5000 * 3000 + 1000),
        (far, 50_000),
        (far, 7_000_000 + 200_000),
    ] {
        let code = kernel(&format!("{body}{STORE}"));
        let launch = launched(1 << 16, 256, 1 << 24);
        let (at, _) = span(&code, &launch);
        let wanted = TO + 4 * element..TO + 4 * element + 4;
        let found = seek(&code, &launch, at, &wanted, &mut { 1 << 14 });
        assert!(matches!(&found, Sought::Touched(one) if one.bytes == wanted), "{body} {found:?}");
    }
    // Between the rows there is nothing.
    let code = kernel(&format!("{rows}{STORE}"));
    let launch = launched(1 << 16, 256, 0);
    let (at, _) = span(&code, &launch);
    let wanted = TO + 4 * (5000 * 3000 + 1024)..TO + 4 * (5000 * 3001);
    assert_eq!(seek(&code, &launch, at, &wanted, &mut { 1 << 16 }), Sought::NotFound);
}

/// Rows of 1 000 numbers make the way to a thread longer than it seems, and behind the last there are
/// threads without an access.
#[test]
fn threads_without_an_access_are_not_the_end() {
    let body = "setp.ge.u32 %p, %i, %n; @%p bra DONE; div.u32 %v, %i, 1000; mul.lo.u32 %v, %v, 24; \
                add.u32 %i, %i, %v; ";
    let code = kernel(&format!("{body}{STORE}"));
    let launch = launched(2000, 256, 501_000);
    let (at, _) = span(&code, &launch);
    for thread in [300_000_u64, 500_000, 500_999] {
        let element = thread + thread / 1000 * 24;
        let wanted = TO + 4 * element..TO + 4 * element + 4;
        let found = seek(&code, &launch, at, &wanted, &mut { 1 << 14 });
        assert!(
            matches!(&found, Sought::Touched(one) if one.bytes == wanted),
            "{thread} {found:?}"
        );
    }
    let behind = TO + 4 * 501 * 1024;
    assert_eq!(
        seek(&code, &launch, at, &(behind..behind + 4000), &mut { 1 << 16 }),
        Sought::NotFound
    );
}

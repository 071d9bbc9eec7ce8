use std::sync::Arc;

use cuda_order_check_engine::{Access, Launched, StreamId};

use super::{
    GONE, HOLDS, KERNELS, SEEN, SIGNALS, Side, WAITED, Waiting, any, forget, launched, may_order,
    may_set_flag, polled, touched, unwatched, waiting, wrote_few,
};
use crate::code::kernel::KernelCode;
use crate::code::launch::Values;
use crate::code::launches::STREAMS;
use crate::lock::TURN;

/// A kernel of which nothing is known, so it may signal what is before it, and hold back what is behind.
fn code() -> Arc<KernelCode> {
    Arc::new(KernelCode::new("kernel".to_owned(), 90, None))
}

fn in_stream(code: &Arc<KernelCode>, stream: u64, number: u64) {
    launched(code, Some((StreamId(stream), number)), None, false);
}

fn with_host(code: &Arc<KernelCode>, number: u64) {
    launched(code, Some((StreamId(9), number)), None, true);
}

fn side(stream: u64, number: u64) -> Side<'static> {
    Side { stream: Some(stream), number, launch: None }
}

fn beside_host(number: u64) -> Option<&'static str> {
    may_order(side(1, number), Side { stream: None, number: 20_000, launch: None })
}

#[test]
fn launches_count_from_their_calls_on() {
    let _turn = TURN.lock();
    forget();
    assert!(!any() && beside_host(1).is_none());
    let first = code();
    for number in [5, 7, 6] {
        with_host(&first, number);
    }
    assert!(any());
    assert_eq!([4, 7, 8].map(beside_host), [Some(SIGNALS), Some(SIGNALS), Some(HOLDS)]);
    // It may wait for what the host does after the work of another stream, and before it sets the flag.
    let of_streams = |one, two| may_order(side(1, one), side(2, two));
    assert_eq!([of_streams(8, 9), of_streams(1, 4)], [Some(HOLDS), Some(SIGNALS)]);
    forget();
    let first = code();
    launched(&first, None, None, true);
    assert_eq!(beside_host(1), Some(SIGNALS));
    forget();
    let all: Vec<_> = (0..KERNELS as u64).map(|at| (code(), 10 + at)).collect();
    all.iter().for_each(|(code, at)| with_host(code, *at));
    assert_eq!(beside_host(5000), Some(HOLDS));
    with_host(&code(), 4500);
    assert_eq!(beside_host(5000), Some(SIGNALS), "there are more than it knows");
    forget();
}

/// Kernels of modules that are gone are forgotten, and so is what they were launched with. What they ordered is
/// not known any more; what comes after them they do not order.
#[test]
fn kernels_that_are_gone_are_forgotten() {
    let _turn = TURN.lock();
    forget();
    let listed = || SEEN.lock().expect("no panic").codes.len();
    let lasting = code();
    in_stream(&lasting, 1, 1);
    let gone: Vec<_> = (2..GONE as u64 + 1)
        .map(|at| {
            let one = code();
            let values = Values::new(one.clone(), [1; 6], &[1], false);
            let launch = Launched::new(Arc::new(values));
            launched(&one, Some((StreamId(1), at)), Some(&launch), true);
            Arc::downgrade(&one)
        })
        .collect();
    assert_eq!(listed(), GONE);
    assert!(gone.iter().all(|one| one.strong_count() > 0));
    with_host(&lasting, 100);
    assert_eq!(beside_host(200), Some(HOLDS));
    // Nothing is known of a code without an image, so that which remains may hold back what is behind.
    let next = code();
    in_stream(&next, 1, 150);
    assert_eq!(listed(), 2);
    assert!(gone.iter().all(|one| one.strong_count() == 0));
    let between = |one, two| may_order(side(1, one), side(2, two));
    assert_eq!([between(149, 500), between(500, 150)], [Some(SIGNALS); 2]);
    assert_eq!(between(151, 500), Some(HOLDS));
    let waits = |number| waiting([side(1, number), side(2, 500)]).into_iter().find(|it| it.at == 0);
    assert!(waits(150).is_some_and(|it| it.streams.contains(&None) && it.ordered().is_some()));
    assert!(waits(151).is_some_and(|it| it.streams == [Some(9)] && it.ordered().is_none()));
    // One of a graph stays.
    forget();
    launched(&code(), None, None, false);
    (1..=GONE as u64).for_each(|at| in_stream(&code(), 1, at));
    assert_eq!(listed(), 2);
    forget();
}

/// A copy after a launch may be how the host polls its flag.
#[test]
fn what_the_host_polls_by_a_copy_is_before_what_comes_later() {
    let _turn = TURN.lock();
    forget();
    polled(5, 8);
    let all =
        [(5, 9), (5, 8), (6, 9), (1, 9)].map(|(one, two)| may_order(side(1, one), side(2, two)));
    assert_eq!(all, [Some(SIGNALS), None, None, Some(SIGNALS)]);
    forget();
}

/// A kernel in the second stream waits, and a signal comes in the first one.
#[test]
fn a_wait_is_an_order_once_there_is_a_signal() {
    let _turn = TURN.lock();
    type Submit = fn(&[Arc<KernelCode>]);
    let cases: [(&str, Submit, &[usize], &[usize]); 16] = [
        ("nothing", |_| (), &[], &[]),
        ("no signal", |all| in_stream(&all[0], 2, 5), &[0], &[]),
        (
            "a kernel",
            |all| {
                in_stream(&all[0], 2, 5);
                in_stream(&all[1], 1, 7);
            },
            &[0],
            &[0],
        ),
        (
            "a kernel before",
            |all| {
                in_stream(&all[0], 2, 5);
                in_stream(&all[1], 1, 3);
            },
            // It may wait, too, for a signal behind the second side.
            &[0, 1],
            &[],
        ),
        (
            "a kernel behind the second side",
            |all| {
                in_stream(&all[0], 2, 5);
                in_stream(&all[1], 2, 7);
            },
            &[0],
            &[],
        ),
        (
            "behind the kernel that waits",
            |all| {
                in_stream(&all[0], 3, 5);
                in_stream(&all[1], 3, 7);
            },
            &[0],
            &[],
        ),
        (
            "a few bytes",
            |all| {
                in_stream(&all[0], 2, 5);
                wrote_few(Some((StreamId(1), 4)));
            },
            &[0],
            &[0],
        ),
        (
            "a few bytes before",
            |all| {
                in_stream(&all[0], 2, 5);
                wrote_few(Some((StreamId(1), 3)));
            },
            &[0],
            &[],
        ),
        // Calls of two threads may come in either order.
        (
            "a few bytes, and some before that come later",
            |all| {
                in_stream(&all[0], 2, 5);
                wrote_few(Some((StreamId(1), 4)));
                wrote_few(Some((StreamId(1), 3)));
            },
            &[0],
            &[0],
        ),
        (
            "a few bytes of a graph",
            |all| {
                in_stream(&all[0], 2, 5);
                wrote_few(None);
            },
            &[0],
            &[0],
        ),
        ("a wait in the first stream", |all| in_stream(&all[0], 1, 5), &[], &[]),
        ("a wait behind both", |all| in_stream(&all[0], 2, 7), &[], &[]),
        ("before both, in another stream", |all| in_stream(&all[0], 3, 1), &[0, 1], &[]),
        (
            "the same with a signal",
            |all| {
                in_stream(&all[0], 3, 1);
                in_stream(&all[1], 1, 7);
            },
            &[0, 1],
            &[0],
        ),
        ("in a graph", |all| launched(&all[0], None, None, false), &[0, 1], &[0, 1]),
        (
            "in too many streams",
            |all| (0..=STREAMS as u64).for_each(|at| in_stream(&all[0], 10 + at, 5)),
            &[0],
            &[0],
        ),
    ];
    for (what, submit, waits, ordered) in cases {
        forget();
        let codes = [(); 2].map(|()| code());
        submit(&codes);
        let all = waiting([side(1, 4), side(2, 6)]);
        let found: Vec<usize> = all.iter().map(|one| one.at).collect();
        assert_eq!(found, waits, "{what}");
        let found: Vec<_> = all.iter().filter_map(Waiting::ordered).collect();
        let expected: Vec<_> = ordered.iter().map(|at| (*at, WAITED)).collect();
        assert_eq!(found, expected, "{what}");
    }
    forget();
}

/// A kernel whose store is plain: `kernel` writes a number.
const PLAIN: &str = "
    .version 8.0
    .target sm_80
    .address_size 64
    .entry kernel(.param .u64 to)
    { .reg .b64 a; ld.param.u64 a, [to]; st.global.u32 [a], 1; ret; }\0";

#[test]
fn a_plain_store_is_a_signal_if_the_host_has_looked() {
    let _turn = TURN.lock();
    let plain = || {
        let image = Arc::new(crate::code::image::Image::at(PLAIN.as_ptr().addr()));
        let code = Arc::new(KernelCode::new("kernel".to_owned(), 90, Some(image)));
        assert!(!code.has_flags(super::CANDIDATES).signals);
        code
    };
    let host = Side { stream: None, number: 9, launch: None };
    type Look = fn();
    let looks: [(&str, Look, bool); 7] = [
        ("not at all", || (), false),
        ("only now", || touched(9), false),
        ("before", || touched(3), false),
        ("later", || [9, 11, 12].into_iter().for_each(touched), false),
        ("meanwhile, and often later", || (7..20_000).for_each(touched), true),
        ("meanwhile", || [7, 9].into_iter().for_each(touched), true),
        ("as nobody knows", unwatched, true),
    ];
    for (what, look, is_signal) in looks {
        forget();
        let code = plain();
        with_host(&code, 5);
        look();
        let expected = is_signal.then_some(SIGNALS);
        assert_eq!(may_order(side(1, 4), host), expected, "{what}");
        // It is the one, or before it, or the other one.
        assert_eq!(may_order(side(1, 5), host), None, "{what}");
        assert_eq!(may_order(side(1, 6), host), None, "{what}");
        assert_eq!(may_order(side(1, 4), side(2, 5)), None, "{what}");
        with_host(&code, 9);
        assert_eq!(may_order(side(1, 4), side(2, 9)), expected, "{what}: the one before it");
        assert_eq!(may_order(side(1, 5), side(2, 9)), None, "{what}: none between them");
    }
    forget();
}

#[test]
fn a_flag_is_written_in_few_bytes() {
    let writes = |bytes| may_set_flag(&[Access::read(0x100, 4), Access::write(0x1000, bytes)]);
    assert_eq!([1, 64, 65].map(writes), [true, true, false]);
    assert!(may_set_flag(&[Access::write(0x1000, 4096), Access::write(0x3000, 4)]));
    assert!(!may_set_flag(&[Access::read(0x1000, 4)]));
}

//! Settings and commands by text.

use crate::common;

use std::time::Duration;

use common::*;
use cuda_events::sys::CUresult;
use cuda_soft_driver::{
    Builder, Fault, HostOrder, OnDeadlock, OnMisuse, OrderCheck, OrderWarnings, Rules, Scheduler,
    SoftDriver, Time,
};

/// Each text means what the method for it means.
#[test]
fn texts_set_what_the_methods_set() {
    let new = SoftDriver::builder;
    let checked = || new().check_order(OrderCheck::Report);
    for (text, builder) in [
        ("version=12.4", new().version(12, 4)),
        ("devices=3", new().devices(3)),
        ("visible=all", new().visible_from_environment(false)),
        ("visible=environment", new().visible_from_environment(true)),
        ("memory=5", new().memory(5)),
        ("memory=5K", new().memory(5 << 10)),
        ("memory=5M", new().memory(5 << 20)),
        ("memory=5G", new().memory(5 << 30)),
        ("misuse=abort", new().on_misuse(OnMisuse::Abort)),
        ("misuse=error", new().on_misuse(OnMisuse::Error)),
        ("rules=faithful", new().rules(Rules::Faithful)),
        ("rules=strict", new().rules(Rules::Strict)),
        ("time=real", new().time(Time::Real)),
        ("time=virtual", new().time(Time::Virtual)),
        ("seed=7", new().scheduler(Scheduler::Seeded(7))),
        ("latency=9", new().latency(Duration::from_micros(9))),
        ("connections=3", new().connections(3)),
        ("deadlock=misuse", new().on_deadlock(OnDeadlock::Misuse)),
        ("deadlock=hang", new().on_deadlock(OnDeadlock::Hang)),
        ("order=off", new().check_order(OrderCheck::Off)),
        ("order=report", checked()),
        ("order=abort", new().check_order(OrderCheck::Abort)),
        ("order=report order_warnings=all", checked().order_warnings(OrderWarnings::all())),
        ("order=report order_backtraces=on", checked().order_backtraces(true)),
        ("order=report order_backtraces=off", checked().order_backtraces(false)),
        ("order=report order_host=reported", checked().order_host(HostOrder::Reported)),
        ("order=report order_host=submission", checked().order_host(HostOrder::Submission)),
        ("order=report order_log=a%p", checked().order_log("a%p")),
        ("order=report order_format=json", checked().order_json(true)),
        ("order=report order_format=text", checked().order_json(false)),
        ("order=report order_suppress=call:cuM*", checked().order_suppress("call:cuM*")),
        ("order=report order_exitcode=3", checked().order_exitcode(3)),
        ("ipc=on", new().ipc(true)),
        ("ipc=off", new().ipc(false)),
        ("ipc_slots=5", new().ipc_slots(5)),
        ("log=12", new().log(12)),
        ("log_lookups=on", new().log_lookups(true)),
        ("log_lookups=off", new().log_lookups(false)),
        ("leaks=report", new().report_leaks(true)),
        ("leaks=ignore", new().report_leaks(false)),
        ("leaks_log=b%p", new().leaks_log("b%p")),
        ("without=cuStreamGetId", new().without("cuStreamGetId")),
        ("null=cuStreamGetId", new().null_lookup("cuStreamGetId")),
        ("init=100", new().init_result(CUresult(100))),
        ("fault=cuInit:code=2", new().fault(Fault::on("cuInit").answer(CUresult(2)))),
    ] {
        let parsed = Builder::from_text(text).expect(text);
        assert_eq!(format!("{parsed:?}"), format!("{builder:?}"), "{text}");
    }
    for text in ["memory=5T", "memory=K", "memory=99999999999G", "leaks_log=", "devices=-1"] {
        assert!(Builder::from_text(text).is_err(), "{text}");
    }
}

/// Each command does or says what the method of its name does.
#[test]
fn commands_do_what_the_methods_do() {
    let raw = Raw::with(SoftDriver::builder().log(8));
    let raw = &raw;
    let (stream, event) = (raw.stream(1), raw.event(0));
    let soft = &raw.soft;
    let run = |command: &str| soft.control(command).expect(command);
    assert_eq!(run("calls"), soft.calls().to_string());
    assert_eq!(run("live"), soft.live().to_string());
    assert_eq!(run("leaks"), soft.leak_report());
    assert!(run("leaks").contains("stream 0x") && run("leaks").contains("event 0x"));
    let log: String = soft.log().iter().map(|call| format!("{call}\n")).collect();
    assert_eq!(run("log"), log);
    assert!(log.contains("cuEventCreate"));
    assert_eq!(
        (run("misuses"), run("deadlocks"), run("pending"), run("order")),
        Default::default()
    );

    // Host functions wait while they are held.
    assert_eq!(run("hold"), "");
    let (ran, done) = std::sync::mpsc::channel();
    raw.host(stream, move || ran.send(()).expect("the test waits"));
    raw.record(event, stream);
    assert!(raw.busy(stream));
    assert!(done.recv_timeout(Duration::from_millis(20)).is_err());
    assert!(!run("pending").is_empty());
    assert_eq!(run("run"), "");
    raw.sync(stream);
    assert_eq!(done.try_recv(), Ok(()));

    // What a fault blocks goes on with the command, which says how many calls did.
    run("fault=cuEventQuery:block");
    std::thread::scope(|scope| {
        let event = event.expose_provenance();
        let blocked = scope.spawn(move || raw.query(std::ptr::with_exposed_provenance_mut(event)));
        let released = std::iter::repeat_with(|| run("release")).find(|count| count != "0");
        assert_eq!(released.as_deref(), Some("1"));
        assert_eq!(blocked.join().expect("it returns"), OK);
    });
    assert_eq!(run("injected"), soft.injected().to_string());
    run("clear");
    assert_eq!(raw.query(std::ptr::null_mut()), INVALID_HANDLE);
    run("forked");
    assert_eq!(unsafe { (raw.cuMemGetInfo_v2)(&mut 0, &mut 0) }.0, NOT_INITIALIZED);
    run("shutdown");
    assert_eq!(raw.query(event), DEINITIALIZED);
}

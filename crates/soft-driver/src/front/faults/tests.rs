use super::*;

#[test]
fn patterns() {
    assert!(matches("cuEventRecord", "cuEventRecord"));
    assert!(!matches("cuEventRecord", "cuEventRecord_ptsz"));
    assert!(matches("cuEvent*", "cuEventRecord_ptsz"));
    assert!(matches("*", "cuInit"));
    assert!(matches("cu*Destroy*", "cuStreamDestroy_v2"));
    assert!(!matches("cu*Destroy", "cuStreamDestroy_v2"));
    assert!(matches("*_v2", "cuStreamDestroy_v2"));
    assert!(matches("cu*Event*Record*", "cuGraphAddEventRecordNode"));
    assert!(!matches("cu*Record*Event*", "cuGraphAddEventRecordNode"));
    assert!(!matches("cuInit*Init", "cuInit"), "no letter is taken twice");
    assert!(matches("*", "") && matches("**", "cuInit"));
    // This takes forever if each star tries all places.
    assert!(!matches(&format!("cu{}jjjj", "*".repeat(90)), "cuGraphAddEventRecordNode"));
}

#[test]
fn text() {
    let fault = Fault::from_text("cuEvent*:nth=3:code=2:on:thread=main").unwrap();
    assert_eq!((fault.when, fault.code, fault.after), (When::Nth(3), Some(CUresult(2)), false));
    assert!(fault.persistent);
    assert_eq!(fault.thread.as_deref(), Some("main"));
    assert!(Fault::from_text("").is_err());
    assert!(Fault::from_text("cuInit:sometimes").is_err());
    assert!(Fault::from_text("cuInit:nth=x").is_err());
    assert!(Fault::from_text("cuInit:once=3").is_err());
    assert!(Fault::from_text("cuInit:nth").is_err());
}

#[test]
fn what_can_never_strike_is_refused() {
    let wrong = |text: &str| Fault::from_text(text).unwrap_err();
    assert!(wrong("cuEvntRecord").contains("no entry point matches `cuEvntRecord`"));
    assert!(wrong("cuEvent*Recrd:once").contains("no entry point matches"));
    assert!(wrong("cuInit:nth=0").contains("counted from 1"));
    assert!(wrong("cuInit:every=0").contains("use 1 or more"));
    for chance in ["7", "-0.1", "NaN", "0", "0.0000001/3"] {
        assert!(
            wrong(&format!("cuInit:chance={chance}")).contains("use 0.000001 to 1"),
            "{chance}"
        );
    }
    assert!(wrong("cuInit:thread=").contains("the thread's name"));
    for text in ["cuInit:nth=3:every=2", "cuInit:every=2:nth=3", "cuInit:chance=0.5:nth=1"] {
        assert!(wrong(text).contains("at most one of nth, every and chance"), "{text}");
    }
    for text in ["cuInit:once:on", "cuInit:on:once", "cuInit:nth=2:once:on"] {
        assert!(wrong(text).contains("not both"), "{text}");
    }
    assert!(wrong("cuInit:code=1:code=2").contains("`code=` is set twice"));
    assert!(wrong("cuInit:sometimes").contains("use `nth=3`"));
    assert!(wrong("cuInit:code=CUDA_ERROR_NONE").contains("a number like 2 or a name like"));
    assert_eq!(
        Fault::from_text("cuInit:code=CUDA_ERROR_NO_DEVICE").unwrap().code,
        Some(CUresult(100))
    );
    for good in [
        "*",
        "cu*",
        "cuImportExternalMemory",
        "cuEventRecord_ptsz",
        "cuLaunchHostFunc_v2",
        "cuInit:chance=1/0",
        "cuInit:chance=0.000001",
    ] {
        assert!(Fault::from_text(good).is_ok(), "{good}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (text, message) in [
        ("cuEventQuery:block:poison", "needs a result code"),
        ("cuEventQuery:poison:block", "needs a result code"),
        ("cuEventQuery:block:context", "needs a result code"),
        ("cuEventQuery:context:once:block", "needs a result code"),
        ("cuEventQuery:code=0", "cannot return CUDA_SUCCESS"),
        ("cuEventQuery:block:poison:code=0", "cannot return CUDA_SUCCESS"),
        ("cuEventQuery:after:code=CUDA_SUCCESS", "cannot return CUDA_SUCCESS"),
        ("cuEventQuery:code=600:context", "cannot fail with CUDA_ERROR_NOT_READY"),
        ("cuEventQuery:kill:code=2", "no caller is left to see it"),
        ("cuEventQuery:block:kill", "no caller is left to see it"),
        ("cuEventQuery:kill:poison", "needs a result code"),
    ] {
        let error = Fault::from_text(text).expect_err(text);
        assert!(error.contains(message), "{text}: {error}");
        assert!(
            crate::Builder::from_text(&format!("fault={text}"))
                .is_err_and(|error| error.contains(message)),
            "{text}"
        );
    }
    let inject = |fault: Fault| {
        let soft = crate::SoftDriver::new();
        std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| soft.inject(fault))).is_err()
    };
    assert!(inject(Fault::on("cuEventCreate").block().poison()));
    assert!(inject(Fault::on("cuEventCreate").poison().block()));
    for good in [
        "cuEventQuery:block:poison:code=2",
        "cuEventQuery:poison:block:after",
        "cuEventQuery:context:block:code=2",
        "cuEventQuery:kill:nth=3",
        "*:kill:after:thread=main",
    ] {
        assert!(Fault::from_text(good).is_ok(), "{good}");
    }
    assert!(!inject(Fault::on("cuEventCreate").poison()));
}

#[test]
fn blocking_and_answering_go_together() {
    let codes = |fault: Fault| (fault.block, fault.code().map(|code| code.0), fault.after);
    for text in ["cuInit:block:code=7", "cuInit:code=7:block"] {
        assert_eq!(codes(Fault::from_text(text).unwrap()), (true, Some(7), false));
    }
    assert_eq!(codes(Fault::on("cuInit").block()), (true, None, false));
    assert_eq!(codes(Fault::on("cuInit").after_the_work().block()), (true, Some(999), true));
    assert_eq!(codes(Fault::on("cuInit")), (false, Some(999), false));
}

#[test]
fn every_seed_has_its_own_sequence() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let mut fault = Fault::on("cuInit").probability(0.5, seed);
        assert!(seen.insert([0; 64].map(|_| fault.strikes_by_count())), "the seed {seed}");
    }
}

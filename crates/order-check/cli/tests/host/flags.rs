//! Values that streams write, for which the host polls.

use std::ffi::c_void;

use super::{LARGE, PAGE, Program};

/// A word of pinned memory on a page of its own, as a flag of the stream.
pub(super) struct Flag<'a> {
    p: &'a Program,
    word: *mut u64,
}

impl<'a> Flag<'a> {
    /// The last one but so many.
    pub(super) fn new(p: &'a Program, back: usize) -> Self {
        let flag = Self { p, word: p.at(2 * LARGE - 8 - 8 * back).cast() };
        flag.store(0);
        flag
    }

    pub(super) fn store(&self, value: u64) {
        // SAFETY: pinned memory, of which no copy is under way.
        unsafe { self.word.write_volatile(value) };
    }

    /// The stream writes a value.
    pub(super) fn write(&self, value: u64) {
        let (p, address) = (self.p, self.word.expose_provenance() as u64);
        p.cuda.cuStreamWriteValue64_v2(p.stream, address, value, 0);
    }

    /// The stream waits for it.
    pub(super) fn holds(&self) {
        let (p, address) = (self.p, self.word.expose_provenance() as u64);
        p.cuda.cuStreamWaitValue64_v2(p.stream, address, 1, 0);
    }

    /// The host polls the word until it has the value.
    pub(super) fn poll(&self, value: u64) {
        // SAFETY: as above; the stream writes it in one piece.
        while unsafe { self.word.read_volatile() } != value {
            std::thread::yield_now();
        }
    }
}

/// The host sees a value that the stream writes after the copy.
pub(super) fn polled_value(p: &Program) {
    let flag = Flag::new(p, 0);
    p.download(0, LARGE);
    flag.write(1);
    flag.poll(1);
    p.read(5);
}

/// It does not look: the stream comes to the value later.
pub(super) fn value_not_polled(p: &Program) {
    let [flag, goes_on] = [Flag::new(p, 0), Flag::new(p, PAGE / 8)];
    p.download(0, LARGE);
    goes_on.holds();
    flag.write(1);
    if p.good {
        goes_on.store(1);
        flag.poll(1);
    }
    p.any_call();
    p.read(5);
    // The next call looks whether the value is there.
    p.any_call();
    goes_on.store(1);
}

/// The stream counts up, and the host has seen the first value alone.
pub(super) fn counter(p: &Program) {
    let [flag, begins, goes_on] = [0, PAGE / 8, PAGE / 4].map(|back| Flag::new(p, back));
    begins.holds();
    flag.write(1);
    p.download(0, LARGE);
    goes_on.holds();
    flag.write(2);
    begins.store(1);
    if p.good {
        goes_on.store(1);
        flag.poll(2);
    } else {
        flag.poll(1);
    }
    p.any_call();
    p.read(5);
    p.any_call();
    goes_on.store(1);
}

/// The host has filled, and read, the buffers when it stores the values that the stream waits for.
pub(super) fn released(p: &Program) {
    let [begins, goes_on] = [0, PAGE / 8].map(|back| Flag::new(p, back));
    begins.holds();
    p.upload(0, 100);
    goes_on.holds();
    p.download(0, 100);
    p.write(0);
    begins.store(1);
    p.read(PAGE);
    p.any_call();
    goes_on.store(1);
}

/// More than are looked at.
pub(super) fn many_values(p: &Program) {
    let goes_on = Flag::new(p, PAGE / 8);
    goes_on.holds();
    let flags: Vec<Flag<'_>> = (0..70).map(|at| Flag::new(p, at)).collect();
    flags.iter().for_each(|flag| flag.write(1));
    goes_on.store(1);
    p.synchronize();
}

/// The host sets the flag back before its next call: one of two flags of a page, one of a graph,
/// and one on a page that cannot be protected.
pub(super) fn flags_set_back(p: &Program) {
    let flags = [Flag::new(p, 0), Flag::new(p, 1)];
    p.download(0, LARGE);
    flags.iter().for_each(|flag| flag.write(1));
    for flag in &flags {
        flag.poll(1);
        flag.store(0);
    }
    p.read(5);
    let [flag, _] = flags;
    p.cuda.cuGraphLaunch(p.graph(|| flag.write(1)), p.stream);
    p.synchronize();
    flag.store(0);
    let exec = p.graph(|| {
        p.download(0, LARGE);
        flag.write(1);
    });
    p.cuda.cuGraphLaunch(exec, p.stream);
    flag.poll(1);
    flag.store(0);
    p.read(5);
    let mut part = vec![0_u64; 8];
    let word = part.as_mut_ptr();
    p.cuda.cuMemHostRegister_v2(word.cast(), 64, 0);
    let flag = Flag { p, word };
    p.download(0, LARGE);
    flag.write(1);
    flag.poll(1);
    flag.store(0);
    p.read(5);
    p.synchronize();
    p.cuda.cuMemHostUnregister(word.cast());
}

/// Another process sees a flag, sets it back and tells the host. Here a second mapping of the
/// memory stands for the process.
pub(super) fn flag_set_back_by_another_mapping(p: &Program) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a file of four pages, and new mappings of it.
    let [own, theirs] = unsafe {
        let file = libc::memfd_create(c"shared".as_ptr(), 0);
        assert_eq!(libc::ftruncate(file, 4 * PAGE as libc::off_t), 0);
        let map = || libc::mmap(std::ptr::null_mut(), 4 * PAGE, access, libc::MAP_SHARED, file, 0);
        [map(), map()].map(<*mut c_void>::cast::<u64>)
    };
    let flag = Flag { p, word: theirs };
    p.cuda.cuMemHostRegister_v2(own.cast(), 4 * PAGE, 0);
    let write = |value| Flag { p, word: own }.write(value);
    let copy = |_| p.cuda.cuMemcpyDtoHAsync_v2(own.cast(), p.device, 8, p.stream);
    let ways: [(&dyn Fn(u64), u64); 2] = [(&write, 1), (&copy, 0x0707_0707_0707_0707)];
    for (comes, value) in ways {
        p.download(0, LARGE);
        comes(value);
        flag.poll(value);
        flag.store(0);
        p.read(5);
        p.synchronize();
    }
    p.cuda.cuMemHostUnregister(own.cast());
}

/// The result and the flag are on one page. The host reads the result before the stream comes to
/// the flag, or waits for it and sets it back.
pub(super) fn flag_beside_the_result(p: &Program) {
    let goes_on = Flag::new(p, 0);
    let flag = Flag { p, word: p.at(0).cast() };
    flag.store(0);
    p.download(64, 1024);
    goes_on.holds();
    flag.write(1);
    if p.good {
        goes_on.store(1);
        flag.poll(1);
        flag.store(0);
    }
    p.read(70);
    p.any_call();
    goes_on.store(1);
}

/// Two streams work in turn, by a flag that the host sets back without a call in between.
pub(super) fn flag_for_another_stream(p: &Program) {
    let [ready, done] = [Flag::new(p, 0), Flag::new(p, 1)];
    let mut other = 0;
    p.cuda.cuStreamCreate(&mut other, 1);
    let address = |flag: &Flag<'_>| flag.word.expose_provenance() as u64;
    for _ in 0..4 {
        p.cuda.cuMemsetD8Async(p.device, 1, LARGE, p.stream);
        ready.write(1);
        p.cuda.cuStreamWaitValue64_v2(other, address(&ready), 1, 0);
        p.cuda.cuMemsetD8Async(p.device, 2, LARGE, other);
        p.cuda.cuStreamWriteValue64_v2(other, address(&done), 1, 0);
        done.poll(1);
        ready.store(0);
        done.store(0);
    }
}

/// A page is as it was once the host has waited for the stream, also if the value was there before.
pub(super) fn flag_without_news(p: &Program) {
    let flag = Flag::new(p, 0);
    flag.write(0);
    p.synchronize();
    // SAFETY: memory of the program. The library does not see this call.
    let read = unsafe { libc::syscall(libc::SYS_getrandom, flag.word, 8, 0) };
    assert_eq!(read, 8, "{}", std::io::Error::last_os_error());
    // As are those of two copies.
    p.download(0, 8);
    p.download(LARGE, 8);
    p.synchronize();
    for at in [0, LARGE] {
        // SAFETY: as above.
        let read = unsafe { libc::syscall(libc::SYS_getrandom, p.at(at), 8, 0) };
        assert_eq!(read, 8, "{at}: {}", std::io::Error::last_os_error());
    }
}

/// A batch sets its flag back, once the host lets it.
pub(super) fn flag_set_back_in_a_batch(p: &Program) {
    let [flag, goes_on] = [Flag::new(p, 0), Flag::new(p, PAGE / 8)];
    p.download(0, LARGE);
    let address = |flag: &Flag<'_>| flag.word.expose_provenance() as u64;
    let [wait, write] = [4, 5];
    let mut batch = [
        [write, address(&flag), 1, 0, 0, 0],
        [wait, address(&goes_on), 1, 0, 0, 0],
        [write, address(&flag), 0, 0, 0, 0],
    ];
    p.cuda.cuStreamBatchMemOp_v2(p.stream, 3, &mut batch, 0);
    flag.poll(1);
    goes_on.store(1);
    flag.poll(0);
    p.read(5);
}

/// The stream itself sets the flag back once it may.
pub(super) fn flag_set_back_by_the_stream(p: &Program) {
    let [flag, goes_on] = [Flag::new(p, 0), Flag::new(p, PAGE / 8)];
    p.download(0, LARGE);
    flag.write(1);
    goes_on.holds();
    flag.write(0);
    flag.poll(1);
    goes_on.store(1);
    flag.poll(0);
    p.read(5);
}

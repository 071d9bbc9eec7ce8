//! A driver whose calls are written down, by the thread that makes them.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex};

use cuda_events::sys::*;
use cuda_events::{Context, Device, Driver, LoadOptions};

/// A call that was made: the entry point, and its arguments as numbers.
pub type Made = (Function, Vec<u64>);

thread_local! {
    static REAL: RefCell<Option<Driver>> = const { RefCell::new(None) };
    static CALLS: RefCell<Vec<Made>> = const { RefCell::new(Vec::new()) };
    static FAIL: RefCell<Option<(Function, CUresult)>> = const { RefCell::new(None) };
}

/// The newest that any thread has made: for the crate's own thread. A test for which that calls the
/// driver is alone in its process, or it might be another test's.
static NEWEST: Mutex<Option<Driver>> = Mutex::new(None);

/// A driver that counts what this thread calls, in front of `real`.
pub fn counting(real: Driver) -> Driver {
    REAL.set(Some(real));
    *NEWEST.lock().expect("no panic") = Some(real);
    // SAFETY: each address is either one of `real`'s table or a function below of the same type.
    unsafe { Driver::from_resolver(&mut |name| resolve(real, name), &LoadOptions::new()) }
        .expect("the same table")
}

/// The primary context of the first device, by a driver that counts what this thread calls.
pub fn counted_context(real: Driver) -> Context {
    Device::new(counting(real), 0).and_then(Context::primary).expect("the primary context")
}

/// The calls that `work` makes on this thread through counting drivers.
pub fn calls<T>(work: impl FnOnce() -> T) -> (T, Vec<Function>) {
    let (result, made) = calls_with_arguments(work);
    (result, made.into_iter().map(|(function, _)| function).collect())
}

/// As `calls`, with what the driver was given: an integer, or the address that a handle or pointer
/// is.
pub fn calls_with_arguments<T>(work: impl FnOnce() -> T) -> (T, Vec<Made>) {
    CALLS.take();
    let result = work();
    let mut made = CALLS.take();
    // After an unexpected code the library reads what the driver logged:
    // tests/events/driver_log.rs.
    let log = [Function::cuLogsDumpToMemory, Function::cuLogsCurrent];
    made.retain(|(function, _)| !log.contains(function));
    (result, made)
}

/// Lets the next call of `function` on this thread fail with `code`, without doing its work.
pub fn fail_next(function: Function, code: CUresult) {
    FAIL.set(Some((function, code)));
}

/// A driver whose calls are written down, whatever their entry point: for what must make none.
pub struct Watched {
    pub driver: Driver,
    made: Arc<Mutex<Vec<Function>>>,
}

impl Watched {
    /// In front of `real`. It takes a place for observers, of which a process has a few.
    pub fn new(real: Driver) -> Self {
        let made: Arc<Mutex<Vec<Function>>> = Arc::default();
        let note = made.clone();
        let driver = real.observe(move |call| note.lock().expect("no panic").push(call.function));
        Self { driver: driver.expect("there is room"), made }
    }

    /// The primary context of the first device, through this.
    pub fn context(&self) -> Context {
        Device::new(self.driver, 0).and_then(Context::primary).expect("the primary context")
    }

    /// The calls that were made since this was last asked.
    pub fn made(&self) -> Vec<Function> {
        std::mem::take(&mut *self.made.lock().expect("no panic"))
    }
}

fn resolve(real: Driver, name: &CStr) -> *mut c_void {
    // The library is known by this one's address, and this is to be the library of `real`.
    if name == c"cuDriverGetVersion" {
        return real.symbols().address(Function::cuDriverGetVersion);
    }
    // Without cuGetProcAddress every entry point is asked for by its exported name.
    if name.to_bytes().starts_with(b"cuGetProcAddress") {
        return std::ptr::null_mut();
    }
    let Some(entry) = ENTRY_POINTS.iter().find(|entry| entry.name == name) else {
        return std::ptr::null_mut();
    };
    let address = real.symbols().address(entry.function);
    if address.is_null() { address } else { counted(entry.function) }
}

/// An argument as a number: its first eight bytes, which of all but interprocess handles is the
/// whole.
fn word<T: Copy>(argument: &T) -> u64 {
    let mut word = [0; 8];
    let length = size_of::<T>().min(word.len());
    // SAFETY: `length` bytes are within both; arguments are integers, pointers and the handle,
    // which have no padding.
    unsafe {
        std::ptr::copy_nonoverlapping(
            std::ptr::from_ref(argument).cast(),
            word.as_mut_ptr(),
            length,
        )
    };
    u64::from_le_bytes(word)
}

fn enter(function: Function, arguments: &[u64]) -> Result<&'static Symbols, CUresult> {
    CALLS.with_borrow_mut(|calls| calls.push((function, arguments.to_vec())));
    if let Some((_, code)) =
        FAIL.with_borrow_mut(|fail| fail.take_if(|(failing, _)| *failing == function))
    {
        return Err(code);
    }
    let newest = || *NEWEST.lock().expect("no panic");
    let real = REAL.with_borrow(|real| *real).or_else(newest);
    Ok(real.expect("a counting driver was made").symbols())
}

/// A function type that is counted. The entry point is told by its place in the list: a C function
/// carries no data.
trait Counted {
    fn counted<const FUNCTION: usize>() -> *mut c_void;
}

macro_rules! counted {
    ($($argument:ident: $type:ident),*) => {
        impl<$($type: Copy + 'static),*> Counted for unsafe extern "C" fn($($type),*) -> CUresult {
            fn counted<const FUNCTION: usize>() -> *mut c_void {
                unsafe extern "C" fn call<const FUNCTION: usize, $($type: Copy + 'static),*>(
                    $($argument: $type),*
                ) -> CUresult {
                    let function = ENTRY_POINTS[FUNCTION].function;
                    let address = match enter(function, &[$(word(&$argument)),*]) {
                        Ok(symbols) => symbols.address(function),
                        Err(code) => return code,
                    };
                    // SAFETY: the table's address of this entry point, which is counted only where
                    // there is one, and its type, which the list of entry points gives; with the
                    // caller's arguments, passed on.
                    unsafe {
                        let real =
                            std::mem::transmute::<*mut c_void,
                            unsafe extern "C" fn($($type),*) -> CUresult>(address);
                        real($($argument),*)
                    }
                }
                call::<FUNCTION, $($type),*> as unsafe extern "C" fn($($type),*)
                    -> CUresult as *mut c_void
            }
        }
    };
}

counted!();
counted!(a: A);
counted!(a: A, b: B);
counted!(a: A, b: B, c: C);
counted!(a: A, b: B, c: C, d: D);
counted!(a: A, b: B, c: C, d: D, e: E);
counted!(a: A, b: B, c: C, d: D, e: E, f: F);
counted!(a: A, b: B, c: C, d: D, e: E, f: F, g: G);

macro_rules! table {
    ($($page:ident { $(
        $need:ident $function:ident $(($header:ident))? $typedef:ident $($twin:ident)?
            $(, $creates:ident)?;
    )* })*) => {
        /// The function that counts the calls of an entry point.
        fn counted(function: Function) -> *mut c_void {
            match function {
                $($(Function::$function => {
                    <<$typedef as EntryPointType>::Pointer as Counted>::counted::<{
                        Function::$function.place() }>()
                })*)*
                _ => unreachable!("the list has every one"),
            }
        }
    };
}

cuda_events::for_each_entry_point!(table);

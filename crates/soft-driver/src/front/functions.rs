//! The C functions behind the list of exports, one instance for each machine, and their addresses.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::NonNull;
use std::sync::OnceLock;

use cuda_events::sys::more::types;

use crate::abi::*;
use crate::arg::{Arg, In, Ptr};
use crate::front::arguments::{Arguments, code};
use crate::front::declared::CalledAs;
use crate::front::entry::enter;
use crate::front::exports::{COUNT, EXPORTS, HAS_BODY, Id, for_each_body};
use crate::front::lookup;
use crate::machine::call_frame::{CallFrame, EntryPoint, Words, words};
use crate::machine::places::SLOTS;
use crate::machine::{MACHINES, Machine};

exports! { $ [front::functions]
    cuGetProcAddress => get_proc_address_v1;
    cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz => get_proc_address;
}

/// The machine that a C function calls.
pub trait Slot {
    /// The slot in which the machine is.
    fn slot() -> usize;
}

struct InProcess<const SLOT: usize>;

impl<const SLOT: usize> Slot for InProcess<SLOT> {
    #[inline]
    fn slot() -> usize {
        SLOT
    }
}

/// The address of a C function.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Address(*const ());

// SAFETY: the address of code, which nobody writes to.
unsafe impl Sync for Address {}

/// The parameters of a body.
trait Parameters: Copy {
    /// The parameters of the C function.
    type C;

    /// # Safety
    ///
    /// As for [`Arg::take`].
    unsafe fn take(arguments: Self::C) -> Self;
}

/// The body of an entry point: a function of a call and of the parameters `P`, a tuple.
#[allow(dead_code, reason = "Rust 1.88 counts no uses in unnamed constants")]
trait Body<P>: Copy {
    /// The type of the C function.
    type C;
}

/// A body as a C function: that of the export `ID`, on the machine `S`.
trait Exported<P, S, const ID: usize>: Copy {
    const ADDRESS: Address;
}

/// A call of a body with its arguments.
#[derive(Clone, Copy)]
struct Call<B, P> {
    body: B,
    arguments: P,
}

/// Calls a body for a C function.
///
/// # Safety
///
/// The arguments must be valid for the C declaration of the export `ID`.
unsafe fn run<B: Copy, P: Parameters, const ID: usize>(slot: usize, arguments: P::C) -> CUresult
where
    Call<B, P>: Arguments,
{
    const { assert!(size_of::<B>() == 0, "a body is a function, and captures nothing") };
    // SAFETY: the type has no bytes, and is that of a function, which can be copied at any time.
    let body = unsafe { NonNull::<B>::dangling().read() };
    let entry = const {
        &EntryPoint {
            id: Id(ID as u16),
            name: EXPORTS[ID].name,
            per_thread: EXPORTS[ID].per_thread,
        }
    };
    // SAFETY: the caller's.
    let arguments = unsafe { P::take(arguments) };
    enter(&MACHINES[slot], entry, Call { body, arguments })
}

/// Defines all this for bodies of a number of parameters.
macro_rules! parameters {
    ($($c_function:ident($($argument:ident: $ty:ident),*);)*) => {$(
        impl<$($ty: Arg),*> Parameters for ($($ty,)*) {
            type C = ($($ty::C,)*);

            #[allow(clippy::unused_unit, reason = "there may be no parameter")]
            unsafe fn take(($($argument,)*): Self::C) -> Self {
                // SAFETY: the caller's.
                ($(unsafe { $ty::take($argument) },)*)
            }
        }

        impl<B, $($ty: Arg),*> Body<($($ty,)*)> for B
        where
            B: Fn(&CallFrame, $($ty),*) -> Answer + Copy,
        {
            type C = unsafe extern "C" fn($($ty::C),*) -> CUresult;
        }

        impl<B, S: Slot, $($ty: Arg,)* const ID: usize> Exported<($($ty,)*), S, ID> for B
        where
            B: Fn(&CallFrame, $($ty),*) -> Answer + Copy,
        {
            const ADDRESS: Address = Address($c_function::<B, S, $($ty,)* ID> as *const ());
        }

        impl<B, $($ty: Arg),*> Arguments for Call<B, ($($ty,)*)>
        where
            B: Fn(&CallFrame, $($ty),*) -> Answer + Copy,
        {
            fn words(&self) -> Words {
                let ($($argument,)*) = self.arguments;
                words(&[$($argument.word()),*])
            }

            fn poison(&self) {
                let ($($argument,)*) = self.arguments;
                $($argument.poison();)*
            }

            fn given(&self) -> Option<u64> {
                let ($($argument,)*) = self.arguments;
                // No closures: there would be one for each parameter of each function.
                $(if let Some(given) = $argument.given() {
                    return Some(given);
                })*
                None
            }

            #[inline]
            fn run(&self, call: &CallFrame) -> CUresult {
                let ($($argument,)*) = self.arguments;
                code(call, (self.body)(call, $($argument),*))
            }
        }

        /// # Safety
        ///
        /// The arguments must be valid for the C declaration of the export `ID`.
        unsafe extern "C" fn $c_function<B, S: Slot, $($ty: Arg,)* const ID: usize>(
            $($argument: $ty::C),*
        ) -> CUresult
        where
            B: Fn(&CallFrame, $($ty),*) -> Answer + Copy,
        {
            // SAFETY: the arguments of a C call of this very function.
            unsafe { run::<B, ($($ty,)*), ID>(S::slot(), ($($argument,)*)) }
        }
    )*};
}

parameters! {
    call_0();
    call_1(a: P0);
    call_2(a: P0, b: P1);
    call_3(a: P0, b: P1, c: P2);
    call_4(a: P0, b: P1, c: P2, d: P3);
    call_5(a: P0, b: P1, c: P2, d: P3, e: P4);
    call_6(a: P0, b: P1, c: P2, d: P3, e: P4, f: P5);
    call_7(a: P0, b: P1, c: P2, d: P3, e: P4, f: P5, g: P6);
    call_8(a: P0, b: P1, c: P2, d: P3, e: P4, f: P5, g: P6, h: P7);
    call_10(a: P0, b: P1, c: P2, d: P3, e: P4, f: P5, g: P6, h: P7, i: P8, j: P9);
    call_11(a: P0, b: P1, c: P2, d: P3, e: P4, f: P5, g: P6, h: P7, i: P8, j: P9, k: P10);
}

/// The address of the C function of the export `ID`.
const fn address_of<P, S: Slot, const ID: usize, B: Exported<P, S, ID>>(_: B) -> Address {
    B::ADDRESS
}

/// The body of what makes no sense in software.
fn unsupported(call: &CallFrame) -> Answer {
    call.refuse(NOT_SUPPORTED)
}

// The lookup gives addresses from here.

fn get_proc_address(
    call: &CallFrame,
    symbol: In<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: cuuint64_t,
    status: Ptr<CUdriverProcAddressQueryResult>,
) -> Answer {
    lookup::get_proc_address(address, call, symbol, function, version, flags, status)
}

fn get_proc_address_v1(
    call: &CallFrame,
    symbol: In<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: cuuint64_t,
) -> Answer {
    lookup::get_proc_address_v1(address, call, symbol, function, version, flags)
}

/// The address that a dynamic linker would find under an exported name.
pub(crate) fn resolve(machine: &'static Machine, name: &[u8]) -> *mut c_void {
    lookup::resolve(address, machine, name)
}

/// The path of a body.
macro_rules! body {
    ([$($module:tt)+] $body:ident) => {
        crate::$($module)+::$body
    };
    ([$($module:tt)+] ($body:ident::<$($form:tt),+>)) => {
        crate::$($module)+::$body::<$($form),+>
    };
}

macro_rules! unsupported {
    ($($name:ident $($version:literal)?),*) => {
        /// The addresses of the C functions of a machine, with one for each export without a body.
        const fn addresses_without_bodies<S: Slot>() -> [Address; COUNT] {
            let mut addresses = [Address(core::ptr::null()); COUNT];
            $(if !HAS_BODY[Id::$name.place()] {
                addresses[Id::$name.place()] =
                    address_of::<_, S, { Id::$name.place() }, _>(unsupported);
            })*
            addresses
        }
    };
}

cuda_events::__for_each_export!(unsupported);

/// The addresses of the C functions of a machine, in the order of [`EXPORTS`].
pub const fn addresses<S: Slot>() -> [Address; COUNT] {
    let mut addresses = addresses_without_bodies::<S>();
    macro_rules! set {
        ($module:tt $($name:ident $(, $twin:ident)? => $body:tt;)*) => {$(
            addresses[Id::$name.place()] =
                address_of::<_, S, { Id::$name.place() }, _>(body!($module $body));
            $(addresses[Id::$twin.place()] =
                address_of::<_, S, { Id::$twin.place() }, _>(body!($module $body));)?
        )*};
    }
    for_each_body!(set);
    addresses
}

// Each body is called as the driver's function is. The type of a twin is that of its function.
const _: fn() = || {
    fn is_called_as<P, B: Body<P, C: CalledAs<F>>, F>(_: B) {}
    macro_rules! check {
        ($module:tt $($name:ident $(, $twin:ident)? => $body:tt;)*) => {
            $(is_called_as::<_, _, types::$name>(body!($module $body));)*
        };
    }
    for_each_body!(check);
};

/// For each slot, the addresses of its functions.
static ADDRESSES: [[Address; COUNT]; SLOTS] = [
    addresses::<InProcess<0>>(),
    addresses::<InProcess<1>>(),
    addresses::<InProcess<2>>(),
    addresses::<InProcess<3>>(),
    addresses::<InProcess<4>>(),
    addresses::<InProcess<5>>(),
    addresses::<InProcess<6>>(),
    addresses::<InProcess<7>>(),
    addresses::<InProcess<8>>(),
    addresses::<InProcess<9>>(),
    addresses::<InProcess<10>>(),
    addresses::<InProcess<11>>(),
    addresses::<InProcess<12>>(),
    addresses::<InProcess<13>>(),
    addresses::<InProcess<14>>(),
    addresses::<InProcess<15>>(),
];

/// The addresses under which the shared library exports everything: there a lookup gives the very
/// address that the dynamic linker does.
static EXPORTED: OnceLock<Vec<usize>> = OnceLock::new();

pub(crate) fn exported_as(addresses: Vec<usize>) {
    assert_eq!(addresses.len(), COUNT, "the shared library exports what the list says");
    let _ = EXPORTED.set(addresses);
}

/// The C function `id` of the machine in `slot`.
pub(crate) fn address(slot: usize, id: usize) -> *mut c_void {
    match EXPORTED.get() {
        Some(exported) => core::ptr::with_exposed_provenance_mut(exported[id]),
        None => ADDRESSES[slot][id].0.cast_mut().cast(),
    }
}

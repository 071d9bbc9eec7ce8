//! The C functions behind the list of exports, one instance for each machine, and their addresses.

use core::ffi::{c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};
use std::sync::OnceLock;

use crate::abi::*;
use crate::arg::{Arg, Ptr};
use crate::front::arguments::{Arguments, code};
use crate::front::entry::enter;
use crate::front::exports::{COUNT, Id, OWN_COUNT};
use crate::front::foreign::{FOREIGN, for_each_foreign};
use crate::front::lookup;
use crate::machine::call_frame::{CallFrame, EntryPoint, Words, words};
use crate::machine::places::SLOTS;
use crate::machine::{MACHINES, Machine};

/// What pointers to arrays are called in the list: their room is another argument's, and may be
/// none. A fault leaves them alone.
const ARRAYS: &[&str] =
    &["nodes", "from", "to", "edges", "operations", "attributes", "values", "log"];

/// The bodies by the names that the list gives them: the core, then the courtesy, then the lookup,
/// which gives addresses from here.
mod named {
    use super::*;

    pub(super) use crate::capture::calls::*;
    pub(super) use crate::context::primary::*;
    pub(super) use crate::context::whole::*;
    pub(super) use crate::context::*;
    pub(super) use crate::device::*;
    pub(super) use crate::event::*;
    pub(super) use crate::external::*;
    pub(super) use crate::graph::events::*;
    pub(super) use crate::graph::exec::*;
    pub(super) use crate::graph::*;
    pub(super) use crate::green_context::*;
    pub(super) use crate::host_function::*;
    pub(super) use crate::init::*;
    pub(super) use crate::ipc::event::*;
    pub(super) use crate::ipc::memory::*;
    pub(super) use crate::memory::alloc::*;
    pub(super) use crate::memory::copy::*;
    pub(super) use crate::stream::*;
    pub(super) use crate::values::*;

    pub(super) use crate::courtesy::allocations::*;
    pub(super) use crate::courtesy::contexts::*;
    pub(super) use crate::courtesy::copies::*;
    pub(super) use crate::courtesy::devices::*;
    pub(super) use crate::courtesy::graph_edits::*;
    pub(super) use crate::courtesy::graph_nodes::*;
    pub(super) use crate::courtesy::graph_updates::*;
    pub(super) use crate::courtesy::managed::*;
    pub(super) use crate::courtesy::modules::*;
    pub(super) use crate::courtesy::pools::*;
    pub(super) use crate::courtesy::rows::*;
    pub(super) use crate::courtesy::user_objects::*;
    pub(super) use crate::courtesy::value_nodes::*;

    pub(super) fn get_proc_address(
        call: &CallFrame,
        symbol: Ptr<c_uchar>,
        function: Ptr<*mut c_void>,
        version: c_int,
        flags: cuuint64_t,
        status: Ptr<CUdriverProcAddressQueryResult>,
    ) -> Answer {
        lookup::get_proc_address(address, call, symbol, function, version, flags, status)
    }

    pub(super) fn get_proc_address_v1(
        call: &CallFrame,
        symbol: Ptr<c_uchar>,
        function: Ptr<*mut c_void>,
        version: c_int,
        flags: cuuint64_t,
    ) -> Answer {
        lookup::get_proc_address_v1(address, call, symbol, function, version, flags)
    }
}

/// The address that a dynamic linker would find under an exported name.
pub(crate) fn resolve(machine: &'static Machine, name: &[u8]) -> *mut c_void {
    lookup::resolve(address, machine, name)
}

/// Defines one generic C function, and under `bodies` what it does without the slot number.
macro_rules! function {
    ($name:ident, $per_thread:literal, $body:ident, ($($argument:ident: $ty:ty),*)) => {
        /// # Safety
        ///
        /// The arguments must be valid for the C declaration of this function.
        pub unsafe extern "C" fn $name<const SLOT: usize>($($argument: $ty),*) -> CUresult {
            // SAFETY: the same arguments, for which the caller answers.
            unsafe { bodies::$name(SLOT, $($argument),*) }
        }
    };
}

macro_rules! body {
    ($name:ident, $per_thread:literal, $body:ident, ($($argument:ident: $ty:ty),*)) => {
        #[allow(clippy::too_many_arguments)]
        pub(super) unsafe fn $name(slot: usize, $($argument: $ty),*) -> CUresult {
            #[derive(Clone, Copy)]
            struct Given {
                $($argument: $ty,)*
            }

            impl Arguments for Given {
                fn words(&self) -> Words {
                    words(&[$(Arg::word(&self.$argument)),*])
                }

                fn poison(&self) {
                    $(if !ARRAYS.contains(&stringify!($argument)) {
                        // SAFETY: as for the arguments themselves.
                        unsafe { Arg::poison(&self.$argument) };
                    })*
                }

                fn given(&self) -> Option<u64> {
                    // SAFETY: as for the arguments themselves; it is asked after a call that
                    // succeeded.
                    None$(.or_else(|| unsafe { Arg::given(&self.$argument) }))*
                }

                #[inline]
                fn run(&self, call: &CallFrame) -> CUresult {
                    // SAFETY: the arguments come from a C call of this very function.
                    code(named::$body(call, $(unsafe { Arg::take(self.$argument) }),*))
                }
            }

            const OF: EntryPoint = EntryPoint { id: Id::$name, name: stringify!($name),
                per_thread: $per_thread };
            enter(&MACHINES[slot], &OF, Given { $($argument),* })
        }
    };
}

macro_rules! define {
    ($($name:ident $($version:literal)? $(, $twin:ident $($twin_version:literal)?)?
        => $body:ident $arguments:tt;)*) => {
        /// The C functions, one instance for each slot.
        #[allow(non_snake_case)]
        pub mod functions {
            use super::*;
            $(
                function!($name, false, $body, $arguments);
                $(function!($twin, true, $body, $arguments);)?
            )*
        }

        #[allow(non_snake_case)]
        mod bodies {
            use super::*;
            $(
                body!($name, false, $body, $arguments);
                $(body!($twin, true, $body, $arguments);)?
            )*
        }

        // The types of the functions are those of the raw layer, where it declares them.
        const _: fn(&Symbols) = |symbols| {
            fn is<F>(_: impl Into<Option<F>>) {}
            $(bound!(symbols is $name $($version)? $arguments);)*
        };

        const fn addresses<const SLOT: usize>() -> [Address; OWN_COUNT] {
            [
                $(
                    Address(functions::$name::<SLOT> as *const ()),
                    $(Address(functions::$twin::<SLOT> as *const ()),)?
                )*
            ]
        }
    };
}

/// Compares the parameters of a function that the raw layer declares; the others have a version.
macro_rules! bound {
    ($symbols:ident $is:ident $name:ident $version:literal $arguments:tt) => {};
    ($symbols:ident $is:ident $name:ident ($($argument:ident: $ty:ty),*)) => {
        $is::<unsafe extern "C" fn($($ty),*) -> CUresult>($symbols.$name)
    };
}

/// The body of what makes no sense in software.
fn unsupported(call: &CallFrame) -> Answer {
    // Before `cuInit` as well: the CUDA runtime asks for tables first of all.
    call.lock()?.say_unsupported(call.name());
    call.refuse(NOT_SUPPORTED)
}

/// The call of a function without a body: it looks at no argument.
#[derive(Clone, Copy)]
struct Nothing;

impl Arguments for Nothing {
    fn words(&self) -> Words {
        words(&[])
    }

    fn poison(&self) {}

    fn given(&self) -> Option<u64> {
        None
    }

    fn run(&self, call: &CallFrame) -> CUresult {
        code(unsupported(call))
    }
}

fn answer(slot: usize, of: &'static EntryPoint) -> CUresult {
    enter(&MACHINES[slot], of, Nothing)
}

macro_rules! define_foreign {
    ($($name:ident $($version:literal)?;)*) => {
        #[allow(non_camel_case_types)]
        enum Index { $($name,)* }

        static FOREIGN_ENTRY_POINTS: [EntryPoint; FOREIGN.len()] =
            [$(EntryPoint { id: Id::foreign(Index::$name as usize), name: stringify!($name),
                per_thread: false },)*];

        /// The foreign C functions, one instance for each slot. They look at no argument, so that
        /// all have the same type.
        #[allow(non_snake_case)]
        pub mod foreign_functions {
            use super::*;
            $(
                /// # Safety
                ///
                /// There is nothing that a caller could do wrong.
                pub unsafe extern "C" fn $name<const SLOT: usize>() -> CUresult {
                    answer(SLOT, &FOREIGN_ENTRY_POINTS[Index::$name as usize])
                }
            )*
        }

        /// Their addresses, in the same order.
        const fn foreign_addresses<const SLOT: usize>() -> [Address; FOREIGN.len()] {
            [$(Address(foreign_functions::$name::<SLOT> as *const ()),)*]
        }
    };
}

/// The address of a C function.
#[derive(Clone, Copy)]
struct Address(*const ());

// SAFETY: the address of code, which nobody writes to.
unsafe impl Sync for Address {}

crate::for_each_export!(define);
for_each_foreign!(define_foreign);

type Addresses = ([Address; OWN_COUNT], [Address; FOREIGN.len()]);

const fn all_addresses<const SLOT: usize>() -> Addresses {
    (addresses::<SLOT>(), foreign_addresses::<SLOT>())
}

/// For each slot, the addresses of what has a body, and of what is foreign.
static ADDRESSES: [Addresses; SLOTS] = [
    all_addresses::<0>(),
    all_addresses::<1>(),
    all_addresses::<2>(),
    all_addresses::<3>(),
    all_addresses::<4>(),
    all_addresses::<5>(),
    all_addresses::<6>(),
    all_addresses::<7>(),
    all_addresses::<8>(),
    all_addresses::<9>(),
    all_addresses::<10>(),
    all_addresses::<11>(),
    all_addresses::<12>(),
    all_addresses::<13>(),
    all_addresses::<14>(),
    all_addresses::<15>(),
];

/// The addresses under which the shared library exports everything, in the order of
/// [`EXPORTS`](crate::exports::EXPORTS): there a lookup gives the very address that the dynamic
/// linker does.
static EXPORTED: OnceLock<Vec<usize>> = OnceLock::new();

pub(crate) fn exported_as(addresses: Vec<usize>) {
    assert_eq!(addresses.len(), COUNT, "the shared library exports what the list says");
    let _ = EXPORTED.set(addresses);
}

/// The C function `id` of the machine in `slot`.
pub(crate) fn address(slot: usize, id: usize) -> *mut c_void {
    if let Some(exported) = EXPORTED.get() {
        return core::ptr::with_exposed_provenance_mut(exported[id]);
    }
    let (own, foreign) = &ADDRESSES[slot];
    let address = match id.checked_sub(OWN_COUNT) {
        None => own[id],
        Some(at) => foreign[at],
    };
    address.0.cast_mut().cast()
}

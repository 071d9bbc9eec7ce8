//! The symbol table: the one list of the entry points that this crate resolves.
//!
//! A line has: `required` or `optional`; the exported function; in parentheses, the name that the
//! headers give to this entry point, if it is another one; the typedef of `wrapper.h`, which
//! carries the base name and the version to ask [`cuGetProcAddress`] for; if there is one, the
//! typedef of the per-thread-default-stream twin; `creates`, if the call returns a new handle. The
//! heading of a group is NVIDIA's page: `EVENT` stands for `group__CUDA__EVENT.html`. The struct of
//! pointers, [`Function`], [`ENTRY_POINTS`], the resolver and the links of the documentation are
//! generated from that list.

use core::ffi::{CStr, c_void};
use core::fmt;
use core::ptr::null_mut;

use super::bindings::*;
use crate::Version;
use crate::growing_list::List;
use crate::sync::global;

#[cfg(doc)]
use calls::*;

/// The plain function pointer behind a `PFN_*` typedef, which is an `Option` of it.
///
/// ```
/// use cuda_events::sys::{EntryPointType, PFN_cuEventQuery_v2000};
///
/// // The type of the field `cuEventQuery` of `Symbols`.
/// type EventQuery = <PFN_cuEventQuery_v2000 as EntryPointType>::Pointer;
/// ```
///
/// It is implemented for C functions of up to 16 arguments, and sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a driver function",
    note = "write `unsafe extern \"C\" fn(...) -> CUresult`, or an `Option` of it, as the typedefs \
        `PFN_*` are"
)]
pub trait EntryPointType: sealed::Sealed {
    /// The function pointer without the `Option`.
    type Pointer: Copy;

    /// The pointer at an address; `None` for NULL.
    ///
    /// # Safety
    ///
    /// The address is NULL, or that of a function of this type that stays valid for the rest of the
    /// process.
    #[doc(hidden)]
    unsafe fn at(address: *mut c_void) -> Option<Self::Pointer>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! entry_point_types {
    ($($first:ident $($rest:ident)*)?) => {
        impl<$($first, $($rest,)*)? R> sealed::Sealed
            for unsafe extern "C" fn($($first, $($rest),*)?) -> R {}

        impl<$($first, $($rest,)*)? R> EntryPointType
            for unsafe extern "C" fn($($first, $($rest),*)?) -> R {
            type Pointer = Self;

            unsafe fn at(address: *mut c_void) -> Option<Self> {
                // SAFETY: NULL is `None`; otherwise as the caller says.
                unsafe { core::mem::transmute::<*mut c_void, Option<Self>>(address) }
            }
        }

        $(entry_point_types!($($rest)*);)?
    };
}

entry_point_types!(A B C D E F G H I J K L M N O P);

impl<F: EntryPointType> sealed::Sealed for Option<F> {}

impl<F: EntryPointType> EntryPointType for Option<F> {
    type Pointer = F::Pointer;

    unsafe fn at(address: *mut c_void) -> Option<F::Pointer> {
        // SAFETY: as the caller says.
        unsafe { F::at(address) }
    }
}

/// The properties of one entry point.
///
/// ```
/// use cuda_events::sys::Function;
///
/// let destroy = Function::cuEventDestroy_v2.entry_point();
/// assert_eq!(destroy.base, "cuEventDestroy");
/// assert_eq!(destroy.version.to_string(), "4.0");
/// assert!(destroy.required);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryPoint {
    /// The entry point.
    pub function: Function,
    /// The exported name, such as [`cuEventDestroy_v2`]. The per-thread twin has the suffix
    /// `_ptsz`.
    pub name: &'static CStr,
    /// The name that [`cuGetProcAddress`] takes, such as [`cuEventDestroy`].
    pub base: &'static str,
    /// The version that introduced this ABI, which is the version to ask for.
    pub version: Version,
    /// The version to ask for with the per-thread flag; `None` without a per-thread twin.
    pub per_thread_version: Option<Version>,
    /// Whether loading fails if the driver lacks this entry point. Each driver of CUDA 11.0 or newer
    /// has the required ones, and no compatible version of this crate requires another.
    pub required: bool,
    /// Whether a successful call writes the handle of a new object, or of a newly retained one, to
    /// the place that an argument points to.
    pub creates: bool,
}

/// Splits `PFN_cuEventRecord_v7000_ptsz` into ([`cuEventRecord`], 7000).
#[allow(
    clippy::indexing_slicing,
    reason = "called in const blocks only, where a bad index does not compile"
)]
pub(super) const fn parse_typedef(typedef: &'static str) -> (&'static str, Version) {
    let (_, rest) = typedef.as_bytes().split_at("PFN_".len());
    // The version follows the last `_v` that has digits after it.
    let mut at = rest.len() - 1;
    while !(rest[at] == b'_' && rest[at + 1] == b'v' && rest[at + 2].is_ascii_digit()) {
        at -= 1;
    }
    let (base, tail) = rest.split_at(at);
    let mut version = 0;
    let mut digit = 2;
    while digit < tail.len() && tail[digit].is_ascii_digit() {
        version = version * 10 + (tail[digit] - b'0') as u32;
        digit += 1;
    }
    match core::str::from_utf8(base) {
        Ok(base) => (base, Version::from_raw(version)),
        Err(_) => ("", Version::from_raw(0)),
    }
}

const fn required(need: &str) -> bool {
    matches!(need.as_bytes(), b"required")
}

const fn creates(word: &[&str]) -> bool {
    matches!(word, [word] if matches!(word.as_bytes(), b"creates"))
}

macro_rules! exported {
    ($name:ident) => {
        // `concat!` adds the terminator that `from_bytes_with_nul` requires.
        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
}

macro_rules! field_type {
    (required $typedef:ident) => {
        <$typedef as EntryPointType>::Pointer
    };
    (optional $typedef:ident) => {
        $typedef
    };
}

/// The field's value from a resolved address.
macro_rules! field_value {
    (required $typedef:ident $address:ident $missing:ident $function:ident) => {{
        // SAFETY: the address is NULL, which is `None`, or the resolver's result for exactly this
        // name and version, which has the typedef's type (tools/abi-proof proves it against
        // NVIDIA's headers).
        let pointer = unsafe { core::mem::transmute::<*mut c_void, $typedef>($address) };
        match pointer {
            Some(pointer) => Some(pointer),
            None => {
                $missing.push(Function::$function);
                None
            }
        }
    }};
    (optional $typedef:ident $address:ident $missing:ident $function:ident) => {
        // SAFETY: as for a required entry point; NULL is `None`.
        Some(unsafe { core::mem::transmute::<*mut c_void, $typedef>($address) })
    };
}

macro_rules! field_address {
    (required $field:expr) => {
        $field as *mut c_void
    };
    (optional $field:expr) => {
        match $field {
            Some(pointer) => pointer as *mut c_void,
            None => null_mut(),
        }
    };
}

/// The documentation of an entry point: its type and NVIDIA's page. The fragment of the address
/// makes the browser show the place with the name.
macro_rules! page {
    ($page:ident $function:ident $header:ident; $typedef:ident) => {
        concat!(
            "`",
            stringify!($function),
            "`, type [`",
            stringify!($typedef),
            "`]: [NVIDIA's page](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__",
            stringify!($page),
            ".html#:~:text=",
            stringify!($header),
            ")."
        )
    };
    ($page:ident $function:ident; $typedef:ident) => {
        page!($page $function $function; $typedef)
    };
}

/// The documentation of a field of the table: what [`page!`] has, the declaration in C, and a plain
/// call.
macro_rules! field_page {
    ($page:ident $need:ident $function:ident $($header:ident)?; $typedef:ident) => {
        concat!(
            page!($page $function $($header)?; $typedef),
            "\n\n```c\nCUresult ",
            stringify!($function),
            "(",
            parameters!($typedef),
            ");\n```\n```text\n",
            plain_call!($need $function $typedef),
            "\n```"
        )
    };
}

macro_rules! plain_call {
    (required $function:ident $typedef:ident) => {
        concat!(
            "let code = unsafe { (symbols.",
            stringify!($function),
            ")(",
            parameters!($typedef names),
            ") };\nFunction::",
            stringify!($function),
            ".check(code)?;"
        )
    };
    (optional $function:ident $typedef:ident) => {
        concat!(
            "if let Some(function) = symbols.",
            stringify!($function),
            " {\n    let code = unsafe { function(",
            parameters!($typedef names),
            ") };\n    Function::",
            stringify!($function),
            ".check(code)?;\n}"
        )
    };
}

macro_rules! symbols {
    ($($page:ident { $(
        $need:ident $function:ident $(($header:ident))? $typedef:ident $($twin:ident)?
            $(, $creates:ident)?;
    )* })*) => {
        /// The driver's entry points, each with its type and a link to its description by NVIDIA.
        ///
        /// The number in the type's name is the CUDA version that introduced the entry point:
        /// `v2000` is CUDA 2.0, `v12080` is CUDA 12.8. A suffix such as `_v2` belongs to the
        /// exported name. NVIDIA's pages usually leave it out: their [`cuEventDestroy`] is
        /// [`cuEventDestroy_v2`].
        #[allow(non_upper_case_globals)]
        pub mod functions {
            use super::{Function, Place};
            #[cfg(doc)]
            use super::super::bindings::*;

            $($(
                #[doc = page!($page $function $($header)?; $typedef)]
                pub const $function: Function = Function(Place::$function as u16);
            )*)*
        }

        /// The places of the entry points in [`ENTRY_POINTS`].
        #[repr(u16)]
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Place {
            $($($function,)*)*
        }

        #[allow(non_upper_case_globals)]
        impl Function {
            $($(
                #[doc = concat!("[`functions::", stringify!($function), "`].")]
                pub const $function: Self = functions::$function;
            )*)*
        }

        /// All entry points of this crate's table.
        pub const ENTRY_POINTS: &[EntryPoint] = &[$($(EntryPoint {
            function: Function::$function,
            name: exported!($function),
            base: const { parse_typedef(stringify!($typedef)).0 },
            version: const { parse_typedef(stringify!($typedef)).1 },
            per_thread_version: const {
                let twins: &[&'static str] = &[$(stringify!($twin))?];
                match twins {
                    [twin, ..] => Some(parse_typedef(twin).1),
                    [] => None,
                }
            },
            required: const { required(stringify!($need)) },
            creates: const { creates(&[$(stringify!($creates))?]) },
        },)*)*];

        /// The resolved entry points of one loaded driver: a plain struct of function pointers.
        ///
        /// A required entry point is the function pointer itself; an optional one is an `Option`,
        /// `None` when the driver is too old for it. The field's name is the exported name with the
        /// legacy default stream; a driver that was loaded with
        /// [`per_thread_default_stream`](crate::LoadOptions::per_thread_default_stream) holds the
        /// `_ptsz` twins in the same fields. Each field names its type, which ends in the CUDA
        /// version that introduced it (`v12080` is CUDA 12.8), and NVIDIA's page of the call. Below
        /// these are its declaration in C and a plain call in Rust.
        /// [`call!`](crate::foundation::call) is shorter than a plain call, and also checks for a
        /// forked process.
        ///
        /// The page of [the module](crate::sys) has an example of a required entry point. Before a
        /// call of an optional one, check whether the driver has it:
        ///
        /// ```
        /// # use cuda_soft_driver::examples::Driver;
        /// let driver = Driver::load()?;
        /// match driver.symbols().cuStreamGetId {
        ///     Some(_get_id) => println!("streams have ids"),
        ///     None => println!("CUDA {} has no ids of streams", driver.version()),
        /// }
        /// # Ok::<(), cuda_events::Error>(())
        /// ```
        #[derive(Clone, Copy)]
        #[allow(non_snake_case)]
        #[non_exhaustive]
        pub struct Symbols {
            $($(
                #[doc = field_page!($page $need $function $($header)?; $typedef)]
                pub $function: field_type!($need $typedef),
            )*)*
        }

        impl Symbols {
            /// Fills the table from `resolve`, or returns every required entry point that is
            /// missing.
            ///
            /// # Safety
            ///
            /// For each entry point `resolve` must return NULL or the address of a function with
            /// that entry point's ABI that stays valid for the rest of the process.
            #[allow(non_snake_case)]
            pub(crate) unsafe fn resolve(
                resolve: &mut dyn FnMut(&EntryPoint) -> *mut c_void,
            ) -> Result<Self, Vec<Function>> {
                let mut missing = Vec::new();
                $($(
                    let address = resolve(&Function::$function.entry_point());
                    let $function = field_value!($need $typedef address missing $function);
                )*)*
                if !missing.is_empty() {
                    return Err(missing);
                }
                Ok(Self {
                    $($($function: match $function {
                        Some(pointer) => pointer,
                        None => return Err(missing),
                    },)*)*
                })
            }

            /// Whether both tables have the same addresses.
            #[cfg(feature = "observe")]
            pub(crate) fn is_same(&self, other: &Self) -> bool {
                ENTRY_POINTS.iter().all(|entry|
                    self.address(entry.function) == other.address(entry.function))
            }

            /// Returns the address of an entry point; NULL if the driver lacks it.
            ///
            /// It is for code that builds its own table from a loaded one, such as a counter or a
            /// fault injector (see [`Driver::from_resolver`](crate::Driver::from_resolver)). The
            /// table has no function that only [`Driver::entry_point`](crate::Driver::entry_point)
            /// was asked for.
            pub fn address(&self, function: Function) -> *mut c_void {
                match function {
                    $($(Function::$function => field_address!($need self.$function),)*)*
                    _ => null_mut(),
                }
            }
        }

        /// The type of each function by its exported name.
        #[cfg(feature = "__abi")]
        #[allow(missing_docs, non_camel_case_types)]
        pub(super) mod types {
            $($(pub type $function = super::$typedef;)*)*
        }

        // The twin takes the same arguments, or it could not stand in the same field.
        $($($(const _: fn($typedef) -> $twin = |pointer| pointer;)?)*)*

        /// The driver's calls under the names that documentation uses. A module that imports them
        /// can write the name of a call in brackets, and it is a link.
        #[cfg(doc)]
        pub(crate) mod calls {
            pub(crate) use super::functions::*;
            $($($(pub(crate) use super::functions::$function as $header;)?)*)*
        }
    };
}

/// Calls `$callback!` with the list, for code that needs a line for each entry point: the table
/// here and the tests. The grammar of the list is no promise, and what is published expands it
/// nowhere else: the tests have the feature that exports the macro.
#[cfg_attr(feature = "__entry_points", macro_export)]
#[doc(hidden)]
macro_rules! for_each_entry_point {
    ($callback:ident) => {
        $callback! {
            INITIALIZE {
                required cuInit PFN_cuInit_v2000;
            }
            VERSION {
                required cuDriverGetVersion PFN_cuDriverGetVersion_v2020;
            }
            DRIVER__ENTRY__POINT {
                optional cuGetProcAddress PFN_cuGetProcAddress_v11030;
                optional cuGetProcAddress_v2 PFN_cuGetProcAddress_v12000;
            }
            ERROR {
                required cuGetErrorName PFN_cuGetErrorName_v6000;
                required cuGetErrorString PFN_cuGetErrorString_v6000;
            }
            LOGS {
                optional cuLogsCurrent PFN_cuLogsCurrent_v12090;
                optional cuLogsDumpToFile PFN_cuLogsDumpToFile_v12090;
                optional cuLogsDumpToMemory PFN_cuLogsDumpToMemory_v12090;
                optional cuLogsRegisterCallback PFN_cuLogsRegisterCallback_v12090, creates;
                optional cuLogsUnregisterCallback PFN_cuLogsUnregisterCallback_v12090;
            }
            DEVICE {
                required cuDeviceGet PFN_cuDeviceGet_v2000;
                required cuDeviceGetCount PFN_cuDeviceGetCount_v2000;
                required cuDeviceGetName PFN_cuDeviceGetName_v2000;
                required cuDeviceGetAttribute PFN_cuDeviceGetAttribute_v2000;
                required cuDeviceTotalMem_v2 (cuDeviceTotalMem) PFN_cuDeviceTotalMem_v3020;
                required cuDeviceGetUuid PFN_cuDeviceGetUuid_v9020;
                optional cuDeviceGetUuid_v2 PFN_cuDeviceGetUuid_v11040;
                optional cuDeviceGetLuid PFN_cuDeviceGetLuid_v10000;
                optional cuDeviceGetHostAtomicCapabilities
                    PFN_cuDeviceGetHostAtomicCapabilities_v13000;
            }
            PEER__ACCESS {
                optional cuDeviceGetP2PAtomicCapabilities
                    PFN_cuDeviceGetP2PAtomicCapabilities_v13000;
            }
            PRIMARY__CTX {
                required cuDevicePrimaryCtxRetain PFN_cuDevicePrimaryCtxRetain_v7000, creates;
                required cuDevicePrimaryCtxRelease_v2 (cuDevicePrimaryCtxRelease)
                    PFN_cuDevicePrimaryCtxRelease_v11000;
                required cuDevicePrimaryCtxGetState PFN_cuDevicePrimaryCtxGetState_v7000;
            }
            CTX {
                required cuCtxCreate_v2 (cuCtxCreate) PFN_cuCtxCreate_v3020, creates;
                optional cuCtxCreate_v4 PFN_cuCtxCreate_v12050, creates;
                required cuCtxDestroy_v2 (cuCtxDestroy) PFN_cuCtxDestroy_v4000;
                required cuCtxGetCurrent PFN_cuCtxGetCurrent_v4000;
                required cuCtxSetCurrent PFN_cuCtxSetCurrent_v4000;
                required cuCtxPushCurrent_v2 (cuCtxPushCurrent) PFN_cuCtxPushCurrent_v4000;
                required cuCtxPopCurrent_v2 (cuCtxPopCurrent) PFN_cuCtxPopCurrent_v4000;
                required cuCtxGetDevice PFN_cuCtxGetDevice_v2000;
                optional cuCtxGetDevice_v2 PFN_cuCtxGetDevice_v13000;
                required cuCtxSynchronize PFN_cuCtxSynchronize_v2000;
                optional cuCtxSynchronize_v2 PFN_cuCtxSynchronize_v13000;
                required cuCtxGetStreamPriorityRange PFN_cuCtxGetStreamPriorityRange_v5050;
                required cuCtxGetFlags PFN_cuCtxGetFlags_v7000;
                optional cuCtxGetId PFN_cuCtxGetId_v12000;
                optional cuCtxRecordEvent PFN_cuCtxRecordEvent_v12050;
                optional cuCtxWaitEvent PFN_cuCtxWaitEvent_v12050;
            }
            GREEN__CONTEXTS {
                optional cuDeviceGetDevResource PFN_cuDeviceGetDevResource_v12040;
                optional cuCtxGetDevResource PFN_cuCtxGetDevResource_v12040;
                optional cuGreenCtxGetDevResource PFN_cuGreenCtxGetDevResource_v12040;
                optional cuDevSmResourceSplitByCount PFN_cuDevSmResourceSplitByCount_v12040;
                optional cuDevSmResourceSplit PFN_cuDevSmResourceSplit_v13010;
                optional cuDevResourceGenerateDesc PFN_cuDevResourceGenerateDesc_v12040;
                optional cuGreenCtxCreate PFN_cuGreenCtxCreate_v12040, creates;
                optional cuGreenCtxDestroy PFN_cuGreenCtxDestroy_v12040;
                optional cuGreenCtxGetId PFN_cuGreenCtxGetId_v12090;
                optional cuCtxFromGreenCtx PFN_cuCtxFromGreenCtx_v12040, creates;
                optional cuGreenCtxRecordEvent PFN_cuGreenCtxRecordEvent_v12040;
                optional cuGreenCtxWaitEvent PFN_cuGreenCtxWaitEvent_v12040;
                optional cuGreenCtxStreamCreate PFN_cuGreenCtxStreamCreate_v12050, creates;
                optional cuStreamGetGreenCtx PFN_cuStreamGetGreenCtx_v12040;
                optional cuStreamGetDevResource PFN_cuStreamGetDevResource_v13010
                    PFN_cuStreamGetDevResource_v13010_ptsz;
            }
            EVENT {
                required cuEventCreate PFN_cuEventCreate_v2000, creates;
                required cuEventDestroy_v2 (cuEventDestroy) PFN_cuEventDestroy_v4000;
                required cuEventRecord PFN_cuEventRecord_v2000 PFN_cuEventRecord_v7000_ptsz;
                optional cuEventRecordWithFlags PFN_cuEventRecordWithFlags_v11010
                    PFN_cuEventRecordWithFlags_v11010_ptsz;
                required cuEventQuery PFN_cuEventQuery_v2000;
                required cuEventSynchronize PFN_cuEventSynchronize_v2000;
                required cuEventElapsedTime PFN_cuEventElapsedTime_v2000;
                optional cuEventElapsedTime_v2 PFN_cuEventElapsedTime_v12080;
            }
            MEM {
                required cuIpcGetEventHandle PFN_cuIpcGetEventHandle_v4010;
                required cuIpcOpenEventHandle PFN_cuIpcOpenEventHandle_v4010, creates;
                required cuMemGetInfo_v2 (cuMemGetInfo) PFN_cuMemGetInfo_v3020;
                required cuMemAlloc_v2 (cuMemAlloc) PFN_cuMemAlloc_v3020;
                required cuMemFree_v2 (cuMemFree) PFN_cuMemFree_v3020;
                required cuIpcGetMemHandle PFN_cuIpcGetMemHandle_v4010;
                optional cuIpcOpenMemHandle_v2 (cuIpcOpenMemHandle) PFN_cuIpcOpenMemHandle_v11000;
                required cuIpcCloseMemHandle PFN_cuIpcCloseMemHandle_v4010;
                required cuMemHostAlloc PFN_cuMemHostAlloc_v2020;
                required cuMemFreeHost PFN_cuMemFreeHost_v2000;
                required cuMemHostRegister_v2 (cuMemHostRegister) PFN_cuMemHostRegister_v6050;
                required cuMemHostGetDevicePointer_v2 (cuMemHostGetDevicePointer)
                    PFN_cuMemHostGetDevicePointer_v3020;
                required cuMemsetD8Async PFN_cuMemsetD8Async_v3020 PFN_cuMemsetD8Async_v7000_ptsz;
                required cuMemsetD32Async PFN_cuMemsetD32Async_v3020
                    PFN_cuMemsetD32Async_v7000_ptsz;
                required cuMemcpyHtoDAsync_v2 (cuMemcpyHtoDAsync) PFN_cuMemcpyHtoDAsync_v3020
                    PFN_cuMemcpyHtoDAsync_v7000_ptsz;
                required cuMemcpyDtoHAsync_v2 (cuMemcpyDtoHAsync) PFN_cuMemcpyDtoHAsync_v3020
                    PFN_cuMemcpyDtoHAsync_v7000_ptsz;
                required cuMemcpyDtoDAsync_v2 (cuMemcpyDtoDAsync) PFN_cuMemcpyDtoDAsync_v3020
                    PFN_cuMemcpyDtoDAsync_v7000_ptsz;
                optional cuDeviceRegisterAsyncNotification
                    PFN_cuDeviceRegisterAsyncNotification_v12040, creates;
                optional cuDeviceUnregisterAsyncNotification
                    PFN_cuDeviceUnregisterAsyncNotification_v12040;
            }
            STREAM {
                required cuStreamCreate PFN_cuStreamCreate_v2000, creates;
                required cuStreamCreateWithPriority PFN_cuStreamCreateWithPriority_v5050, creates;
                required cuStreamDestroy_v2 (cuStreamDestroy) PFN_cuStreamDestroy_v4000;
                required cuStreamQuery PFN_cuStreamQuery_v2000 PFN_cuStreamQuery_v7000_ptsz;
                required cuStreamSynchronize PFN_cuStreamSynchronize_v2000
                    PFN_cuStreamSynchronize_v7000_ptsz;
                required cuStreamWaitEvent PFN_cuStreamWaitEvent_v3020
                    PFN_cuStreamWaitEvent_v7000_ptsz;
                required cuStreamGetPriority PFN_cuStreamGetPriority_v5050
                    PFN_cuStreamGetPriority_v7000_ptsz;
                required cuStreamGetFlags PFN_cuStreamGetFlags_v5050
                    PFN_cuStreamGetFlags_v7000_ptsz;
                optional cuStreamGetId PFN_cuStreamGetId_v12000 PFN_cuStreamGetId_v12000_ptsz;
                required cuStreamGetCtx PFN_cuStreamGetCtx_v9020 PFN_cuStreamGetCtx_v9020_ptsz;
                optional cuStreamGetCtx_v2 PFN_cuStreamGetCtx_v12050 PFN_cuStreamGetCtx_v12050_ptsz;
                optional cuStreamGetDevice PFN_cuStreamGetDevice_v12080
                    PFN_cuStreamGetDevice_v12080_ptsz;
                optional cuStreamGetAttribute PFN_cuStreamGetAttribute_v11000
                    PFN_cuStreamGetAttribute_v11000_ptsz;
                optional cuStreamSetAttribute PFN_cuStreamSetAttribute_v11000
                    PFN_cuStreamSetAttribute_v11000_ptsz;
                optional cuStreamCopyAttributes PFN_cuStreamCopyAttributes_v11000
                    PFN_cuStreamCopyAttributes_v11000_ptsz;
                optional cuStreamAddCallback PFN_cuStreamAddCallback_v5000
                    PFN_cuStreamAddCallback_v7000_ptsz;
                optional cuStreamAttachMemAsync PFN_cuStreamAttachMemAsync_v6000
                    PFN_cuStreamAttachMemAsync_v7000_ptsz;
                required cuStreamBeginCapture_v2 (cuStreamBeginCapture)
                    PFN_cuStreamBeginCapture_v10010 PFN_cuStreamBeginCapture_v10010_ptsz;
                optional cuStreamBeginCaptureToGraph PFN_cuStreamBeginCaptureToGraph_v12030
                    PFN_cuStreamBeginCaptureToGraph_v12030_ptsz;
                optional cuStreamBeginRecaptureToGraph PFN_cuStreamBeginRecaptureToGraph_v13030
                    PFN_cuStreamBeginRecaptureToGraph_v13030_ptsz;
                optional cuStreamBeginCaptureToCig PFN_cuStreamBeginCaptureToCig_v13010
                    PFN_cuStreamBeginCaptureToCig_v13010_ptsz;
                required cuStreamEndCapture PFN_cuStreamEndCapture_v10000
                    PFN_cuStreamEndCapture_v10000_ptsz, creates;
                optional cuStreamEndCaptureToCig PFN_cuStreamEndCaptureToCig_v13010
                    PFN_cuStreamEndCaptureToCig_v13010_ptsz;
                required cuStreamIsCapturing PFN_cuStreamIsCapturing_v10000
                    PFN_cuStreamIsCapturing_v10000_ptsz;
                optional cuStreamGetCaptureInfo PFN_cuStreamGetCaptureInfo_v10010
                    PFN_cuStreamGetCaptureInfo_v10010_ptsz;
                optional cuStreamGetCaptureInfo_v2 PFN_cuStreamGetCaptureInfo_v11030
                    PFN_cuStreamGetCaptureInfo_v11030_ptsz;
                optional cuStreamGetCaptureInfo_v3 PFN_cuStreamGetCaptureInfo_v12030
                    PFN_cuStreamGetCaptureInfo_v12030_ptsz;
                optional cuStreamUpdateCaptureDependencies
                    PFN_cuStreamUpdateCaptureDependencies_v11030
                    PFN_cuStreamUpdateCaptureDependencies_v11030_ptsz;
                optional cuStreamUpdateCaptureDependencies_v2
                    PFN_cuStreamUpdateCaptureDependencies_v12030
                    PFN_cuStreamUpdateCaptureDependencies_v12030_ptsz;
                required cuThreadExchangeStreamCaptureMode
                    PFN_cuThreadExchangeStreamCaptureMode_v10010;
            }
            EXEC {
                required cuLaunchHostFunc PFN_cuLaunchHostFunc_v10000
                    PFN_cuLaunchHostFunc_v10000_ptsz;
                optional cuLaunchHostFunc_v2 PFN_cuLaunchHostFunc_v13010
                    PFN_cuLaunchHostFunc_v13010_ptsz;
            }
            MEMOP {
                optional cuStreamWaitValue32 PFN_cuStreamWaitValue32_v8000
                    PFN_cuStreamWaitValue32_v8000_ptsz;
                optional cuStreamWaitValue32_v2 PFN_cuStreamWaitValue32_v11070
                    PFN_cuStreamWaitValue32_v11070_ptsz;
                optional cuStreamWaitValue64 PFN_cuStreamWaitValue64_v9000
                    PFN_cuStreamWaitValue64_v9000_ptsz;
                optional cuStreamWaitValue64_v2 PFN_cuStreamWaitValue64_v11070
                    PFN_cuStreamWaitValue64_v11070_ptsz;
                optional cuStreamWriteValue32 PFN_cuStreamWriteValue32_v8000
                    PFN_cuStreamWriteValue32_v8000_ptsz;
                optional cuStreamWriteValue32_v2 PFN_cuStreamWriteValue32_v11070
                    PFN_cuStreamWriteValue32_v11070_ptsz;
                optional cuStreamWriteValue64 PFN_cuStreamWriteValue64_v9000
                    PFN_cuStreamWriteValue64_v9000_ptsz;
                optional cuStreamWriteValue64_v2 PFN_cuStreamWriteValue64_v11070
                    PFN_cuStreamWriteValue64_v11070_ptsz;
                optional cuStreamBatchMemOp PFN_cuStreamBatchMemOp_v8000
                    PFN_cuStreamBatchMemOp_v8000_ptsz;
                optional cuStreamBatchMemOp_v2 PFN_cuStreamBatchMemOp_v11070
                    PFN_cuStreamBatchMemOp_v11070_ptsz;
            }
            GRAPH {
                required cuGraphCreate PFN_cuGraphCreate_v10000, creates;
                optional cuGraphInstantiate_v2 (cuGraphInstantiate) PFN_cuGraphInstantiate_v11000,
                    creates;
                optional cuGraphInstantiateWithFlags PFN_cuGraphInstantiateWithFlags_v11040,
                    creates;
                required cuGraphLaunch PFN_cuGraphLaunch_v10000 PFN_cuGraphLaunch_v10000_ptsz;
                required cuGraphDestroy PFN_cuGraphDestroy_v10000;
                required cuGraphExecDestroy PFN_cuGraphExecDestroy_v10000;
                optional cuGraphGetId PFN_cuGraphGetId_v13010;
                optional cuGraphExecGetId PFN_cuGraphExecGetId_v13010;
                optional cuGraphNodeGetLocalId PFN_cuGraphNodeGetLocalId_v13010;
                optional cuGraphNodeGetToolsId PFN_cuGraphNodeGetToolsId_v13010;
                optional cuGraphAddEventRecordNode PFN_cuGraphAddEventRecordNode_v11010, creates;
                optional cuGraphAddEventWaitNode PFN_cuGraphAddEventWaitNode_v11010, creates;
                optional cuGraphEventRecordNodeGetEvent PFN_cuGraphEventRecordNodeGetEvent_v11010;
                optional cuGraphEventRecordNodeSetEvent PFN_cuGraphEventRecordNodeSetEvent_v11010;
                optional cuGraphEventWaitNodeGetEvent PFN_cuGraphEventWaitNodeGetEvent_v11010;
                optional cuGraphEventWaitNodeSetEvent PFN_cuGraphEventWaitNodeSetEvent_v11010;
                optional cuGraphExecEventRecordNodeSetEvent
                    PFN_cuGraphExecEventRecordNodeSetEvent_v11010;
                optional cuGraphExecEventWaitNodeSetEvent
                    PFN_cuGraphExecEventWaitNodeSetEvent_v11010;
                optional cuGraphAddHostNode PFN_cuGraphAddHostNode_v10000, creates;
                optional cuGraphHostNodeGetParams PFN_cuGraphHostNodeGetParams_v10000;
                optional cuGraphHostNodeSetParams PFN_cuGraphHostNodeSetParams_v10000;
                optional cuGraphExecHostNodeSetParams PFN_cuGraphExecHostNodeSetParams_v10020;
                optional cuGraphAddBatchMemOpNode PFN_cuGraphAddBatchMemOpNode_v11070, creates;
                optional cuGraphBatchMemOpNodeGetParams PFN_cuGraphBatchMemOpNodeGetParams_v11070;
                optional cuGraphBatchMemOpNodeSetParams PFN_cuGraphBatchMemOpNodeSetParams_v11070;
                optional cuGraphExecBatchMemOpNodeSetParams
                    PFN_cuGraphExecBatchMemOpNodeSetParams_v11070;
                optional cuGraphAddExternalSemaphoresSignalNode
                    PFN_cuGraphAddExternalSemaphoresSignalNode_v11020, creates;
                optional cuGraphExternalSemaphoresSignalNodeGetParams
                    PFN_cuGraphExternalSemaphoresSignalNodeGetParams_v11020;
                optional cuGraphExternalSemaphoresSignalNodeSetParams
                    PFN_cuGraphExternalSemaphoresSignalNodeSetParams_v11020;
                optional cuGraphExecExternalSemaphoresSignalNodeSetParams
                    PFN_cuGraphExecExternalSemaphoresSignalNodeSetParams_v11020;
                optional cuGraphAddExternalSemaphoresWaitNode
                    PFN_cuGraphAddExternalSemaphoresWaitNode_v11020, creates;
                optional cuGraphExternalSemaphoresWaitNodeGetParams
                    PFN_cuGraphExternalSemaphoresWaitNodeGetParams_v11020;
                optional cuGraphExternalSemaphoresWaitNodeSetParams
                    PFN_cuGraphExternalSemaphoresWaitNodeSetParams_v11020;
                optional cuGraphExecExternalSemaphoresWaitNodeSetParams
                    PFN_cuGraphExecExternalSemaphoresWaitNodeSetParams_v11020;
            }
            EXTRES__INTEROP {
                optional cuImportExternalSemaphore PFN_cuImportExternalSemaphore_v10000, creates;
                optional cuDestroyExternalSemaphore PFN_cuDestroyExternalSemaphore_v10000;
                optional cuSignalExternalSemaphoresAsync PFN_cuSignalExternalSemaphoresAsync_v10000
                    PFN_cuSignalExternalSemaphoresAsync_v10000_ptsz;
                optional cuWaitExternalSemaphoresAsync PFN_cuWaitExternalSemaphoresAsync_v10000
                    PFN_cuWaitExternalSemaphoresAsync_v10000_ptsz;
                optional cuImportExternalMemory PFN_cuImportExternalMemory_v10000, creates;
                optional cuExternalMemoryGetMappedBuffer PFN_cuExternalMemoryGetMappedBuffer_v10000;
                optional cuDestroyExternalMemory PFN_cuDestroyExternalMemory_v10000;
            }
            CHECKPOINT {
                optional cuCheckpointProcessGetRestoreThreadId
                    PFN_cuCheckpointProcessGetRestoreThreadId_v12080;
                optional cuCheckpointProcessGetState PFN_cuCheckpointProcessGetState_v12080;
                optional cuCheckpointProcessLock PFN_cuCheckpointProcessLock_v12080;
                optional cuCheckpointProcessCheckpoint PFN_cuCheckpointProcessCheckpoint_v12080;
                optional cuCheckpointProcessRestore PFN_cuCheckpointProcessRestore_v12080;
                optional cuCheckpointProcessUnlock PFN_cuCheckpointProcessUnlock_v12080;
                optional cuCheckpointOperationComplete PFN_cuCheckpointOperationComplete_v13040;
            }
            COREDUMP {
                optional cuCoredumpGetAttribute PFN_cuCoredumpGetAttribute_v12010;
                optional cuCoredumpGetAttributeGlobal PFN_cuCoredumpGetAttributeGlobal_v12010;
                optional cuCoredumpSetAttribute PFN_cuCoredumpSetAttribute_v12010;
                optional cuCoredumpSetAttributeGlobal PFN_cuCoredumpSetAttributeGlobal_v12010;
                optional cuCoredumpRegisterStartCallback
                    PFN_cuCoredumpRegisterStartCallback_v13020, creates;
                optional cuCoredumpRegisterCompleteCallback
                    PFN_cuCoredumpRegisterCompleteCallback_v13020, creates;
                optional cuCoredumpDeregisterStartCallback
                    PFN_cuCoredumpDeregisterStartCallback_v13020;
                optional cuCoredumpDeregisterCompleteCallback
                    PFN_cuCoredumpDeregisterCompleteCallback_v13020;
            }
        }
    };
}
#[cfg(feature = "observe")]
pub(crate) use for_each_entry_point;

for_each_entry_point!(symbols);

/// A driver entry point; prints as its exported name.
///
/// Its constants are the entry points that this crate has in its table;
/// [`Driver::entry_point`](crate::Driver::entry_point) makes those of other functions. The order of
/// entry points has no meaning, and a new version of this crate may change it.
///
/// ```
/// use cuda_events::sys::{ENTRY_POINTS, Function};
///
/// assert_eq!(Function::cuEventRecord.to_string(), "cuEventRecord");
/// let required = ENTRY_POINTS.iter().filter(|entry| entry.required);
/// for entry in required {
///     println!("{} of CUDA {}", entry.function, entry.version);
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Function(u16);

/// A function that is not in the table, and that a program asked for.
struct Asked {
    name: &'static CStr,
    version: Version,
}

global! {
    static ASKED: List<Asked> = List::new();
}

/// Those of [`ASKED`], the first one first: an item keeps its place when the list grows.
fn asked() -> Vec<&'static Asked> {
    let mut all: Vec<_> = ASKED.items().collect();
    all.reverse();
    all
}

impl Function {
    /// All functions for which there is no place.
    const NAMELESS: u16 = u16::MAX;

    /// Each `cuInit` that the table does not have: one number, so that a call knows it at once.
    const OTHER_INIT: Self = Self(u16::MAX - 1);

    /// The place in [`ENTRY_POINTS`].
    #[doc(hidden)]
    pub const fn place(self) -> usize {
        self.0 as usize
    }

    /// The entry points of this name in the table, with their versions.
    pub(crate) fn bound_versions(
        name: &CStr,
        per_thread: bool,
    ) -> impl Iterator<Item = (Self, Version)> {
        let of_name = move |entry: &&EntryPoint| entry.base.as_bytes() == name.to_bytes();
        ENTRY_POINTS.iter().filter(of_name).map(move |entry| {
            let twin = entry.per_thread_version.filter(|_| per_thread);
            (entry.function, twin.unwrap_or(entry.version))
        })
    }

    /// The entry point of this name and version, if the table has it.
    pub(crate) fn bound(name: &CStr, version: Version, per_thread: bool) -> Option<Self> {
        let mut versions = Self::bound_versions(name, per_thread);
        versions.find(|(_, it)| *it == version).map(|(function, _)| function)
    }

    /// A function that the table does not have. All above 65 000 have one name: none.
    pub(crate) fn unbound(name: &'static CStr, version: Version) -> Self {
        let same =
            |one: &Asked, other: &Asked| one.name == other.name && one.version == other.version;
        let item = ASKED.add(Asked { name, version }, same);
        if name == c"cuInit" {
            return Self::OTHER_INIT;
        }
        let at = asked().iter().position(|one| core::ptr::eq(*one, item));
        let at = at.and_then(|at| u16::try_from(ENTRY_POINTS.len() + at).ok());
        Self(at.filter(|at| *at < Self::OTHER_INIT.0).unwrap_or(Self::NAMELESS))
    }

    /// Whether a success of it initialises the driver: `cuInit`, also a later one that the table
    /// does not have.
    #[inline(always)]
    pub(crate) fn initialises(self) -> bool {
        self == Self::cuInit || self == Self::OTHER_INIT
    }

    /// Whether the table has it.
    #[inline(always)]
    pub(crate) fn is_in_table(self) -> bool {
        usize::from(self.0) < ENTRY_POINTS.len()
    }

    /// Returns the exported name, such as [`cuEventDestroy_v2`]. For a function that the table lacks,
    /// returns the name that [`Driver::entry_point`](crate::Driver::entry_point) was asked for. A new
    /// version of this crate may have it in its table, with the exported name.
    pub fn name(self) -> &'static str {
        self.entry_point().name.to_str().unwrap_or_default()
    }

    /// Returns the properties of this entry point. For a function that the table lacks, both names
    /// and the version are those that [`Driver::entry_point`](crate::Driver::entry_point) was asked
    /// for, and all else is unknown: `None` and `false`.
    pub fn entry_point(self) -> EntryPoint {
        let at = usize::from(self.0);
        if let Some(entry) = ENTRY_POINTS.get(at) {
            return *entry;
        }
        let all = asked();
        let asked = match self {
            Self::OTHER_INIT => all.iter().find(|one| one.name == c"cuInit"),
            Self(Self::NAMELESS) => None,
            _ => all.get(at - ENTRY_POINTS.len()),
        };
        let (name, version) =
            asked.map_or((c"", Version::from_raw(0)), |asked| (asked.name, asked.version));
        EntryPoint {
            function: self,
            name,
            base: name.to_str().unwrap_or_default(),
            version,
            per_thread_version: None,
            required: false,
            creates: false,
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cu_init_initialises() {
        let initialises = |name| Function::unbound(name, Version::new(99, 0)).initialises();
        assert!(Function::cuInit.initialises() && initialises(c"cuInit"));
        assert!(
            !Function::cuDeviceGet.initialises()
                && !initialises(c"cuInitialise")
                && !initialises(c"")
        );
    }
}

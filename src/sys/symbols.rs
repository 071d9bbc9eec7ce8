//! The symbol table: what is made of the one list of the entry points that this crate resolves, the
//! struct of pointers, [`Function`], [`ENTRY_POINTS`], the resolver and the links of the
//! documentation.
//!
//! The list is generated from `wrapper.h`. A line has: `required` or `optional`; the exported
//! function; in parentheses, the name that NVIDIA's pages give to this entry point, if it is another
//! one; the typedef, which carries the base name and the version to ask [`cuGetProcAddress`] for; if
//! there is one, the typedef of the per-thread-default-stream twin; `creates`, if the call returns a
//! new handle. The heading of a group is NVIDIA's page: `EVENT` stands for `group__CUDA__EVENT.html`.

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

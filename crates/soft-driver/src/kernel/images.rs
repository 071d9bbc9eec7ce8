//! The kernels of images: their names and parameters, and what a launch surely accesses.

use core::ffi::CStr;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use cuda_kernel_access::code::{Code, Launch as Given};
use cuda_kernel_access::container::{NotLocated, Parameter, locate};
use cuda_kernel_access::decode::{AccessKind as Does, Operation, Space};
use cuda_kernel_access::load::{Limits, Loaded, NotLoaded};
use cuda_kernel_access::ptx::{MAX_TEXT, PtxError};
use cuda_kernel_access::touch::{joined, surely_touched};
use cuda_order_check_engine::{Access, AccessKind, own_memory};

use crate::abi::*;
use crate::device::attributes::value;
use crate::kernel::{Accesses, Declare, Kernel, Launch, MAX_PARAMETERS};
use crate::machine::drop_unlocked::DropUnlocked;

/// Whether this build reads images.
pub(crate) const READ: bool = true;

/// The largest image that is read.
const LARGEST: u64 = 256 << 20;

const INVALID_IMAGE: CUresult = CUresult::CUDA_ERROR_INVALID_IMAGE;

const LIMITS: Limits = Limits { decompressed: 2 * LARGEST, text: MAX_TEXT, code: 256 << 10 };

/// Why an image is refused.
type Refused = (CUresult, String);

/// The memory or the file that has an image.
pub(crate) enum Source<'a> {
    Memory(u64),
    File(&'a Path),
}

impl Source<'_> {
    fn bytes(&self) -> Result<Vec<u8>, Refused> {
        let unreadable = || (INVALID_IMAGE, "the image cannot be read".to_owned());
        match self {
            Self::File(path) => std::fs::read(path).map_err(|_| unreadable()),
            Self::Memory(address) => {
                let found = locate(*address, LARGEST, MAX_TEXT, &own_memory::read);
                let found = found.map_err(|why| match why {
                    NotLocated::Unreadable => unreadable(),
                    _ => (NOT_SUPPORTED, "the image is too large for this driver".to_owned()),
                })?;
                let mut bytes = found.start;
                if bytes.len() < found.bytes {
                    bytes = own_memory::read(found.address, found.bytes);
                }
                bytes.truncate(found.bytes);
                if bytes.len() == found.bytes { Ok(bytes) } else { Err(unreadable()) }
            }
        }
    }
}

/// The image of a module.
#[derive(Default)]
pub(crate) struct Image {
    kernels: BTreeMap<CString, Arc<Kernel>>,
}

impl Image {
    /// Reads the names and parameters of an image's kernels. What these access is found out if it is
    /// `checked`.
    pub(crate) fn read(source: &Source<'_>, checked: bool) -> Result<Self, Refused> {
        let bytes = Arc::new(source.bytes()?);
        let found = loaded(&bytes).and_then(|image| image.kernels());
        let found = found.map_err(|why| (code_of(&why), why.to_string()))?;
        let mut kernels = BTreeMap::new();
        for (name, parameters) in found {
            let parameters = ranges(parameters)
                .ok_or((INVALID_IMAGE, "its image is damaged: a parameter".to_owned()))?;
            let declare = checked.then(|| declaration(bytes.clone(), name.clone()));
            let Ok(name) = CString::new(name) else { continue };
            let kernel = Kernel { name: name.clone(), run: None, declare, parameters };
            kernels.insert(name, Arc::new(kernel));
        }
        Ok(Self { kernels })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &CString> {
        self.kernels.keys()
    }

    pub(crate) fn kernel(&self, name: &CStr) -> Option<&Arc<Kernel>> {
        self.kernels.get(name)
    }
}

/// What this driver's devices take of an image.
fn loaded(image: &[u8]) -> Result<Loaded<'_>, NotLoaded> {
    const MAJOR: u32 = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR.0;
    const MINOR: u32 = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR.0;
    Loaded::new(image, (10 * value(MAJOR) + value(MINOR)) as u32, LIMITS)
}

fn code_of(why: &NotLoaded) -> CUresult {
    match why {
        NotLoaded::Architecture(_) => CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
        NotLoaded::NewerPtx(_) | NotLoaded::Ptx(PtxError::Damaged(_)) => {
            CUresult::CUDA_ERROR_INVALID_PTX
        }
        NotLoaded::Ptx(_) | NotLoaded::LongText => NOT_SUPPORTED,
        _ => INVALID_IMAGE,
    }
}

/// Where the parameters are; none if they are where no launch has any.
fn ranges(mut parameters: Vec<Parameter>) -> Option<Vec<std::ops::Range<usize>>> {
    parameters.sort_by_key(|parameter| parameter.ordinal);
    let range = |parameter: Parameter| {
        let range = parameter.offset as usize
            ..(parameter.offset as usize).checked_add(parameter.size as usize)?;
        (range.end <= MAX_PARAMETERS).then_some(range)
    };
    parameters.into_iter().map(range).collect()
}

/// Declares what the launches of a kernel access.
fn declaration(image: Arc<Vec<u8>>, name: String) -> Declare {
    let decoded: OnceLock<Result<Code, String>> = OnceLock::new();
    let decode = move || {
        let found = loaded(&image).and_then(|image| image.code(&name));
        found.map(|(_, code)| code).map_err(|why| why.to_string())
    };
    DropUnlocked::new(Arc::new(move |launch: &Launch, accesses: &mut Accesses| {
        let found = match decoded.get_or_init(&decode) {
            Ok(code) => sure_accesses(code, launch),
            Err(why) => Err(why.clone()),
        };
        match found {
            Ok(found) => accesses.list = found,
            Err(why) => accesses.unknown = Some(why),
        }
        Ok(())
    }))
}

/// What some threads of a launch surely access, or why that says nothing.
fn sure_accesses(code: &Code, launch: &Launch) -> Result<Vec<Access>, String> {
    if code.may_wait() {
        return Err("it may wait for other work through memory".to_owned());
    }
    let given = Given::new(launch.grid, launch.block, launch.parameters.clone());
    let sure = surely_touched(code, &given);
    let is_global = |operation: &Operation| match operation {
        Operation::Access(access) => matches!(access.space, Space::Global | Space::Generic),
        _ => false,
    };
    if sure.is_empty() && code.instructions().iter().any(|one| is_global(&one.operation)) {
        return Err("none of its accesses is certain".to_owned());
    }
    let mut all = Vec::new();
    // What is volatile or relaxed may race with others of its kind, as atomic operations may.
    let kind = |does, strong| match (does, strong) {
        (Does::Read, false) => AccessKind::Read,
        (Does::Read, true) => AccessKind::AtomicRead,
        (Does::Write, false) => AccessKind::Write,
        _ => AccessKind::AtomicWrite,
    };
    let kinds =
        [AccessKind::Read, AccessKind::AtomicRead, AccessKind::AtomicWrite, AccessKind::Write];
    for kind_of_access in kinds {
        let same = sure.iter().filter(|touch| kind(touch.kind, touch.strong) == kind_of_access);
        let bytes = |address: u64, bytes: u32| address..address.saturating_add(bytes.into());
        let ranges = joined(same.map(|touch| bytes(touch.address, touch.bytes)).collect());
        all.extend(ranges.into_iter().map(|of_kind| {
            Access::new(kind_of_access, of_kind.start, of_kind.end - of_kind.start)
        }));
    }
    Ok(all)
}

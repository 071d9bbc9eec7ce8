//! The images that the program loads, and which kernel a handle is.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, OnceLock};

use cuda_kernel_access::code::Code;
use cuda_kernel_access::container::{self, Cubin, Image, Wrapper, entries, length};

use crate::driver::{Handle, driver};
use crate::judge::Known;

/// An image as it was handed over.
struct Loaded {
    /// Where it is, if it lies in a library's file, or a copy.
    address: usize,
    bytes: Vec<u8>,
    found: OnceLock<Result<Inside, String>>,
}

/// The cubins in an image that this device could run, and whether there is PTX.
struct Inside {
    cubins: Vec<Vec<u8>>,
    ptx: bool,
}

/// A kernel of which everything is looked up.
pub struct Kernel {
    pub number: usize,
    pub name: String,
    pub architecture: u32,
    /// Offset and size of each parameter in the order of the function's.
    pub parameters: Vec<(u32, u32)>,
    pub known: Known,
    /// A cubin with this kernel alone.
    pub cubin: Vec<u8>,
    /// How many others of this name in the image have other code for the same architecture.
    pub others: usize,
}

#[derive(Default)]
struct All {
    images: Vec<Arc<Loaded>>,
    /// Modules and libraries.
    modules: HashMap<usize, usize>,
    /// Functions and kernels.
    functions: HashMap<usize, (usize, String)>,
    kernels: HashMap<(usize, String), Arc<Result<Kernel, String>>>,
}

static ALL: Mutex<Option<All>> = Mutex::new(None);

fn all<T>(with: impl FnOnce(&mut All) -> T) -> Option<T> {
    ALL.lock().ok().map(|mut all| with(all.get_or_insert_default()))
}

/// # Safety
///
/// `at` is an image, or null.
pub unsafe fn loaded(at: *const u8, module: Handle) {
    if at.is_null() {
        return;
    }
    // SAFETY: as the caller says; it is at least as long as its headers claim.
    let bytes = unsafe { bytes_at(at) };
    let Some(bytes) = bytes else { return };
    // SAFETY: dladdr only compares addresses.
    let in_file = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(bytes.as_ptr().cast(), &mut info) != 0
    };
    let (address, copy) = match in_file {
        true => (bytes.as_ptr() as usize, Vec::new()),
        false => (0, bytes.to_vec()),
    };
    keep(address, bytes.len(), copy, module);
}

/// How a wrapper begins.
const WRAPPER: u32 = 0x4662_43b1;

/// # Safety
///
/// An image begins there.
unsafe fn bytes_at<'a>(at: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the shortest image is a text of more than four bytes.
    if unsafe { at.cast::<u32>().read_unaligned() } == WRAPPER {
        // SAFETY: a wrapper has 24 bytes, and names a fat binary.
        return unsafe {
            bytes_at(Wrapper::parse(std::slice::from_raw_parts(at, 24))?.address as *const u8)
        };
    }
    let mut needed = 1_u64;
    loop {
        // SAFETY: so much of it exists: its beginning says so.
        let start = unsafe { std::slice::from_raw_parts(at, needed as usize) };
        match length(start) {
            Ok(Some(length)) => {
                // SAFETY: the same.
                return Some(unsafe { std::slice::from_raw_parts(at, length as usize) });
            }
            Ok(None) => return None,
            Err(more) if more > needed => needed = more,
            Err(_) => return None,
        }
    }
}

pub fn loaded_file(path: &CStr, module: Handle) {
    let path = path.to_string_lossy().into_owned();
    if let Ok(bytes) = std::fs::read(path) {
        keep(0, bytes.len(), bytes, module);
    }
}

fn keep(address: usize, length: usize, copy: Vec<u8>, module: Handle) {
    // The copy of an image in a file is its place and length.
    let bytes = if address != 0 { length.to_le_bytes().to_vec() } else { copy };
    all(|all| {
        all.images.push(Arc::new(Loaded { address, bytes, found: OnceLock::new() }));
        all.modules.insert(module as usize, all.images.len() - 1);
    });
}

pub fn same_module(from: Handle, other: Handle) {
    all(|all| {
        if let Some(&image) = all.modules.get(&(from as usize)) {
            all.modules.insert(other as usize, image);
        }
    });
}

/// # Safety
///
/// `name` is a text that ends, or null.
pub unsafe fn function(from: Handle, name: *const c_char, function: Handle) {
    if name.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    all(|all| {
        if let Some(&image) = all.modules.get(&(from as usize)) {
            all.functions.insert(function as usize, (image, name));
        }
    });
}

pub fn same_function(from: Handle, other: Handle) {
    all(|all| {
        if let Some(known) = all.functions.get(&(from as usize)).cloned() {
            all.functions.insert(other as usize, known);
        }
    });
}

/// The kernel that a launch names.
pub fn kernel(handle: Handle) -> Result<Arc<Result<Kernel, String>>, String> {
    let known = all(|all| all.functions.get(&(handle as usize)).cloned()).flatten();
    let (image, name) = match known {
        Some(known) => known,
        None => asked(handle).ok_or("its image was not seen")?,
    };
    let key = (image, name);
    let (found, image, number) = all(|all| {
        (all.kernels.get(&key).cloned(), all.images.get(key.0).cloned(), all.kernels.len())
    })
    .ok_or("locked")?;
    if let Some(found) = found {
        return Ok(found);
    }
    let image = image.ok_or("no image")?;
    let found = Arc::new(image.kernel(&key.1, number));
    all(|all| all.kernels.insert(key, found.clone()));
    Ok(found)
}

/// Asks the driver whose kernel this is.
fn asked(handle: Handle) -> Option<(usize, String)> {
    let driver = driver()?;
    let mut name = std::ptr::null();
    let mut module = std::ptr::null_mut();
    // SAFETY: the handle is a kernel's or a function's, as the program launches it; of the other
    // kind it is an error.
    let code = unsafe {
        match (driver.kernel_name)(&mut name, handle) {
            0 => (driver.kernel_library)(&mut module, handle),
            _ => match (driver.function_name)(&mut name, handle) {
                0 => (driver.function_module)(&mut module, handle),
                code => code,
            },
        }
    };
    if code != 0 || name.is_null() {
        return None;
    }
    // SAFETY: the driver's name ends.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    let found = all(|all| all.modules.get(&(module as usize)).copied()).flatten().or_else(|| {
        // A library's module in this context.
        let libraries: Vec<(usize, usize)> =
            all(|all| all.modules.iter().map(|(&module, &image)| (module, image)).collect())?;
        libraries.into_iter().find_map(|(library, image)| {
            let mut own = std::ptr::null_mut();
            // SAFETY: of a module it is an error.
            let code = unsafe { (driver.library_module)(&mut own, library as Handle) };
            (code == 0 && own == module).then_some(image)
        })
    });
    found.map(|image| (image, name))
}

/// The compute capability of the current device: 90 for 9.0.
pub fn capability() -> u32 {
    static CAPABILITY: OnceLock<u32> = OnceLock::new();
    *CAPABILITY.get_or_init(|| {
        let Some(driver) = driver() else { return 0 };
        let (mut device, mut major, mut minor) = (0, 0, 0);
        // SAFETY: a context is current.
        unsafe {
            (driver.device)(&mut device);
            (driver.attribute)(&mut major, 75, device);
            (driver.attribute)(&mut minor, 76, device);
        }
        (major * 10 + minor) as u32
    })
}

impl Loaded {
    fn image(&self) -> &[u8] {
        if self.address == 0 {
            return &self.bytes;
        }
        let length = self.bytes.as_slice().try_into().map_or(0, usize::from_le_bytes);
        // SAFETY: it lies in a library's file, which stays mapped: the program uses its kernels.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, length) }
    }

    fn kernel(&self, name: &str, number: usize) -> Result<Kernel, String> {
        let found = self.found.get_or_init(|| {
            let mut cubins = Vec::new();
            let mut ptx = false;
            let device = capability();
            for entry in entries(self.image()).map_err(|error| error.to_string())? {
                match entry.image {
                    Image::Cubin(bytes) => {
                        let cubin = Cubin::parse(&bytes).map_err(|error| error.to_string())?;
                        let own = cubin.architecture;
                        if own / 10 == device / 10 && own <= device {
                            cubins.push((own, bytes.into_owned()));
                        }
                    }
                    Image::Ptx(_) => ptx = true,
                    _ => {}
                }
            }
            // The newest first, as the driver takes it.
            cubins.sort_by_key(|one| std::cmp::Reverse(one.0));
            Ok(Inside { cubins: cubins.into_iter().map(|one| one.1).collect(), ptx })
        });
        let Inside { cubins, ptx } = found.as_ref().map_err(Clone::clone)?;
        let mut chosen: Option<(u32, &[u8], Vec<u8>)> = None;
        let mut others = 0;
        for bytes in cubins {
            let Ok(cubin) = Cubin::parse(bytes) else { continue };
            let Some(kernel) = cubin.kernel(name) else { continue };
            match &chosen {
                None => chosen = Some((cubin.architecture, bytes, kernel.code.to_vec())),
                Some((architecture, _, code)) => {
                    let other = *architecture == cubin.architecture && code != kernel.code;
                    others += usize::from(other);
                }
            }
        }
        let Some((architecture, bytes, _)) = chosen else {
            return Err(if *ptx { "PTX" } else { "no code for this device" }.into());
        };
        let cubin = Cubin::parse(bytes).map_err(|error| error.to_string())?;
        let kernel = cubin.kernel(name).ok_or("no kernel")?;
        let mut parameters = kernel.parameters.clone();
        parameters.sort_by_key(|one| one.ordinal);
        Ok(Kernel {
            number,
            name: name.into(),
            architecture,
            parameters: parameters.iter().map(|one| (one.offset, one.size)).collect(),
            known: Known::new(architecture, kernel),
            cubin: only(bytes, name, calls_by_address(architecture, kernel)).unwrap_or_default(),
            others,
        })
    }
}

/// Whether the kernel is not known without the table of the addresses that the driver fills in.
fn calls_by_address(architecture: u32, kernel: &container::Kernel<'_>) -> bool {
    let mut without = kernel.clone();
    without.never_return.clear();
    !kernel.never_return.is_empty() && Code::new(architecture, &without).is_err()
}

/// The table of the addresses that the driver fills in, and the names in it.
const ADDRESSES: [&str; 4] = [".rel.nv.constant4", ".rela.nv.constant4", ".symtab", ".strtab"];

/// A cubin without other kernels.
fn only(image: &[u8], name: &str, with_addresses: bool) -> Option<Vec<u8>> {
    let number = |at: usize, size: usize| -> Option<usize> {
        let bytes = image.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    };
    let (sections, count, names) = (number(0x28, 8)?, number(0x3c, 2)?, number(0x3e, 2)?);
    let names = number(sections + names * 64 + 0x18, 8)?;
    let mut file = image.get(..64)?.to_vec();
    let mut headers = vec![0_u8; 64];
    let mut texts = vec![0_u8];
    for index in 0..count {
        let at = sections + index * 64;
        let start = names + number(at, 4)?;
        let rest = image.get(start..)?;
        let own = rest.get(..rest.iter().position(|&byte| byte == 0)?)?;
        let text = std::str::from_utf8(own).ok()?;
        let of_kernel = text.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
            || with_addresses && ADDRESSES.contains(&text);
        let (kind, offset, size) =
            (number(at + 4, 4)?, number(at + 0x18, 8)?, number(at + 0x20, 8)?);
        let empty = kind == 8 || (0x7000_0007..=0x7000_0015).contains(&kind);
        if !of_kernel || empty {
            continue;
        }
        let mut header = image.get(at..at + 64)?.to_vec();
        header.splice(0..4, (texts.len() as u32).to_le_bytes());
        header.splice(0x18..0x20, (file.len() as u64).to_le_bytes());
        headers.extend(header);
        texts.extend(own);
        texts.push(0);
        file.extend(image.get(offset..offset.checked_add(size)?)?);
        file.resize(file.len().next_multiple_of(16), 0);
    }
    let mut header = vec![0_u8; 64];
    header.splice(4..8, 3_u32.to_le_bytes());
    header.splice(0x18..0x20, (file.len() as u64).to_le_bytes());
    header.splice(0x20..0x28, (texts.len() as u64).to_le_bytes());
    headers.extend(header);
    file.extend(texts);
    file.resize(file.len().next_multiple_of(16), 0);
    let count = (headers.len() / 64) as u16;
    let place = file.len() as u64;
    file.extend(headers);
    file.splice(0x20..0x28, 0_u64.to_le_bytes());
    file.splice(0x28..0x30, place.to_le_bytes());
    file.splice(0x38..0x3a, 0_u16.to_le_bytes());
    file.splice(0x3c..0x3e, count.to_le_bytes());
    file.splice(0x3e..0x40, (count - 1).to_le_bytes());
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cubin with two kernels, made by hand.
    fn cubin() -> Vec<u8> {
        let mut file = vec![0; 64];
        file.splice(0..7, *b"\x7fELF\x02\x01\x01");
        file.splice(18..20, 190_u16.to_le_bytes());
        file.splice(0x30..0x34, 90_u32.to_le_bytes());
        let names =
            b"\0.text.a\0.text.b\0.nv.info.b\0.shstrtab\0.rel.nv.constant4\0.symtab\0.strtab\0";
        let at = file.len();
        file.extend(names);
        let sections: [(u32, u64, u64); 8] = [
            (0, 0, 0),
            (1, 64, 4),
            (9, 70, 5),
            (17, 0, 0),
            (28, at as u64, names.len() as u64),
            (38, 64, 8),
            (56, 72, 24),
            (64, 64, 4),
        ];
        let place = file.len() as u64;
        for (name, offset, size) in sections {
            let mut header = vec![0; 64];
            header.splice(0..4, name.to_le_bytes());
            header.splice(0x18..0x20, offset.to_le_bytes());
            header.splice(0x20..0x28, size.to_le_bytes());
            file.extend(header);
        }
        file.splice(0x28..0x30, place.to_le_bytes());
        file.splice(0x3a..0x40, [64, 0, 8, 0, 4, 0]);
        file
    }

    #[test]
    fn a_kernel_is_cut_out_of_its_cubin() {
        let all = cubin();
        let parsed = Cubin::parse(&all).expect("a cubin");
        assert_eq!(parsed.kernels.len(), 2);
        let named = |cubin: &[u8]| {
            let has = |name: &str| cubin.windows(name.len()).any(|part| part == name.as_bytes());
            ADDRESSES.map(has)
        };
        let without = only(&all, "b", false).expect("a cubin");
        assert_eq!(named(&without), [false; 4]);
        let with = only(&all, "b", true).expect("a cubin");
        assert_eq!(named(&with), [true, false, true, true]);
        assert!(with.windows(24).any(|part| part == &all[72..96]), "its bytes");
        let cut = Cubin::parse(&without).expect("a cubin");
        assert_eq!(cut.architecture, 90);
        assert_eq!(cut.kernels.iter().map(|one| one.name).collect::<Vec<_>>(), ["b"]);
        assert_eq!(cut.kernel("b").map(|one| one.code), parsed.kernel("b").map(|one| one.code));
    }
}

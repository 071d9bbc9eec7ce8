//! Hides exports of the library that this is linked into, so that `dlsym` does not find them: those
//! that a driver of its version, or with its settings, would not have.
//!
//! Such a library is built once, with everything. When it is loaded, these symbols lose their values
//! in this process's copy of the dynamic symbol table. The linker does not find a symbol without a
//! value.

use core::ffi::{CStr, c_char, c_int, c_void};

/// One entry of the dynamic symbol table, as ELF lays it out for 64-bit machines.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// One entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const GNU_HASH: i64 = 0x6FFF_FEF5;

/// Where this library's tables are.
#[derive(Default)]
struct Tables {
    strings: usize,
    symbols: usize,
    hash: usize,
}

/// Takes the exports of these names away.
pub fn hide(names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let mut tables = Tables::default();
    // SAFETY: the callback is called during this call only, with the place for its result.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut tables).cast()) };
    if tables.strings == 0 || tables.symbols == 0 || tables.hash == 0 {
        return;
    }
    let first: *mut Symbol = core::ptr::with_exposed_provenance_mut(tables.symbols);
    for index in exported(tables.hash) {
        // SAFETY: the hash table names entries of the symbol table, and those have names in the
        // string table.
        let (symbol, name) = unsafe {
            let symbol = first.add(index);
            let name: *const c_char =
                core::ptr::with_exposed_provenance(tables.strings + (*symbol).name as usize);
            (symbol, CStr::from_ptr(name))
        };
        if name.to_str().is_ok_and(|name| names.contains(&name)) {
            take_value(symbol);
        }
    }
}

/// Finds the tables of the object that this very function is in.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, tables: *mut c_void) -> c_int {
    // SAFETY: the linker's description of one loaded object, alive for the call, and its program
    // headers.
    let (base, headers) = unsafe {
        let info = &*info;
        (
            info.dlpi_addr as usize,
            core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize),
        )
    };
    let here = hide as *const () as usize;
    let within = |header: &libc::Elf64_Phdr| {
        let start = base + header.p_vaddr as usize;
        header.p_type == libc::PT_LOAD && (start..start + header.p_memsz as usize).contains(&here)
    };
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
        return 0;
    };
    if !headers.iter().any(within) {
        return 0;
    }
    let mut entry: *const Dynamic =
        core::ptr::with_exposed_provenance(base + dynamic.p_vaddr as usize);
    // SAFETY: `tables` is the place that `hide` gave; the dynamic section ends with a tag of 0.
    unsafe {
        let tables = &mut *tables.cast::<Tables>();
        while (*entry).tag != 0 {
            // glibc has turned these into addresses; other linkers leave them relative to the
            // object.
            let value = (*entry).value as usize;
            let address = if value < base { base + value } else { value };
            match (*entry).tag {
                STRINGS => tables.strings = address,
                SYMBOLS => tables.symbols = address,
                GNU_HASH => tables.hash = address,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    1
}

/// The indices of all exported symbols, from the GNU hash table.
fn exported(hash: usize) -> Vec<usize> {
    let words: *const u32 = core::ptr::with_exposed_provenance(hash);
    let mut indices = Vec::new();
    // SAFETY: the layout of such a table: four words of header, the filter of 64-bit words, the
    // buckets, and then a chain for each bucket that ends with an odd word.
    unsafe {
        let (buckets, offset, filter) =
            (*words as usize, *words.add(1) as usize, *words.add(2) as usize);
        let bucket = words.add(4 + 2 * filter);
        let chains = bucket.add(buckets);
        for at in 0..buckets {
            let mut index = *bucket.add(at) as usize;
            if index < offset {
                continue;
            }
            loop {
                indices.push(index);
                if *chains.add(index - offset) & 1 == 1 {
                    break;
                }
                index += 1;
            }
        }
    }
    indices
}

/// Takes a symbol's value away.
fn take_value(symbol: *mut Symbol) {
    // SAFETY: it has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).unwrap_or(4096);
    let start = symbol.addr() & !(page - 1);
    let length = symbol.addr() + size_of::<Symbol>() - start;
    let start = symbol.with_addr(start).cast::<c_void>();
    // SAFETY: pages of this library's own private mapping. They are written while the library is
    // being loaded, when nobody can look a symbol up in it, and are read-only again afterwards.
    unsafe {
        if libc::mprotect(start, length, libc::PROT_READ | libc::PROT_WRITE) == 0 {
            (*symbol).value = 0;
            (*symbol).section = 0;
            libc::mprotect(start, length, libc::PROT_READ);
        }
    }
}

//! The loaded file at an address, and the function that it exports there.
//!
//! `dladdr` says the same, but it waits for threads in constructors of libraries. Such a thread may
//! make a call that waits for a lock of the caller. `dl_iterate_phdr` waits for none of them.

use core::ffi::{CStr, c_char, c_int, c_void};

/// A file that is loaded into this process: the program or a library.
pub(crate) struct Object {
    /// Its path; empty for the program itself.
    pub(crate) path: String,
    /// The address at which it begins in this process.
    pub(crate) base: usize,
    /// The function at the address, if it is exported and was asked for.
    pub(crate) symbol: Option<String>,
}

/// The file that an address is in. To look for the function takes long.
pub(crate) fn at(address: usize, with_symbol: bool) -> Option<Object> {
    extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, asked: *mut c_void) -> c_int {
        // SAFETY: the loader's description, and what the call below has given.
        let (info, asked) = unsafe { (&*info, &mut *asked.cast::<Asked>()) };
        asked.found = describe(info, asked);
        c_int::from(asked.found.is_some())
    }
    let mut asked = Asked { address, with_symbol, found: None };
    // SAFETY: a function that takes these, and a place that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut asked).cast()) };
    asked.found
}

struct Asked {
    address: usize,
    with_symbol: bool,
    found: Option<Object>,
}

fn describe(info: &libc::dl_phdr_info, asked: &Asked) -> Option<Object> {
    let (bias, address) = (info.dlpi_addr as usize, asked.address);
    // SAFETY: the file's headers, so many.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let has = |header: &libc::Elf64_Phdr| {
        address.wrapping_sub(bias.wrapping_add(header.p_vaddr as usize)) < header.p_memsz as usize
    };
    if !loads().any(has) {
        return None;
    }
    let first = loads().map(|header| header.p_vaddr as usize).min().unwrap_or_default();
    let base = bias.wrapping_add(first & !0xfff);
    let mut dynamic = headers.iter().filter(|header| header.p_type == libc::PT_DYNAMIC);
    let dynamic = dynamic.next().map(|header| bias.wrapping_add(header.p_vaddr as usize));
    // SAFETY: the loader does not unload the file before this function has returned.
    let exported = |dynamic| unsafe { exported(dynamic, bias, address) };
    let symbol = dynamic.filter(|_| asked.with_symbol).and_then(exported);
    let name = info.dlpi_name;
    // SAFETY: the loader's own name of the file.
    let path = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
    Some(Object { path: path.unwrap_or_default().into_owned(), base, symbol })
}

const STRINGS: usize = 5;
const SYMBOLS: usize = 6;
const HASH: usize = 4;
const GNU_HASH: usize = 0x6fff_fef5;

/// A table of a file's dynamic section, by its tag.
///
/// # Safety
///
/// The dynamic section of a file that is loaded with this bias.
unsafe fn table(dynamic: usize, bias: usize, tag: usize) -> Option<usize> {
    // SAFETY: words of the section, as the caller says.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<usize>(at).read() };
    let entries = (0..).map(|at| dynamic + 16 * at).take_while(|at| word(*at) != 0);
    let value = entries.filter(|at| word(*at) == tag).map(|at| word(at + 8)).next()?;
    // Not all loaders, and not all files, have addresses there.
    Some(if value < bias { value + bias } else { value })
}

/// The address of the first function or variable of this name that a loaded file exports. Files
/// without the usual hash table are left out.
pub(crate) fn named(name: &CStr) -> Option<usize> {
    extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, asked: *mut c_void) -> c_int {
        // SAFETY: the loader's description, and what the call below has given.
        let (info, asked) = unsafe { (&*info, &mut *asked.cast::<(&CStr, Option<usize>)>()) };
        // SAFETY: the file's headers, so many.
        let headers =
            unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let mut dynamic = headers.iter().filter(|header| header.p_type == libc::PT_DYNAMIC);
        let bias = info.dlpi_addr as usize;
        let dynamic = dynamic.next().map(|header| bias.wrapping_add(header.p_vaddr as usize));
        // SAFETY: the loader does not unload the file before this function has returned.
        asked.1 = dynamic.and_then(|dynamic| unsafe { defined(dynamic, bias, asked.0) });
        c_int::from(asked.1.is_some())
    }
    let mut asked = (name, None);
    // SAFETY: a function that takes these, and a place that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut asked).cast()) };
    asked.1
}

/// # Safety
///
/// As for [`table`].
unsafe fn defined(dynamic: usize, bias: usize, name: &CStr) -> Option<usize> {
    // SAFETY: as the caller says.
    let table = |tag| unsafe { table(dynamic, bias, tag) };
    // SAFETY: words of tables, and of nothing behind these.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<usize>(at).read() };
    // SAFETY: as above.
    let half = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u32>(at).read() };
    let (hashes, symbols, strings) = (table(GNU_HASH)?, table(SYMBOLS)?, table(STRINGS)?);
    let hash = name
        .to_bytes()
        .iter()
        .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
    let [buckets, first, bloom] = [0, 4, 8].map(|at| half(hashes + at) as usize);
    let start = hashes + 16 + 8 * bloom;
    let chosen = (buckets > 0).then(|| half(start + 4 * (hash as usize % buckets)) as usize)?;
    let mut chain = chosen.checked_sub(first)?;
    loop {
        let own = half(start + 4 * (buckets + chain));
        let symbol = symbols + 24 * (first + chain);
        let text = core::ptr::with_exposed_provenance(strings + half(symbol) as usize);
        // SAFETY: a string of the file's table.
        if own | 1 == hash | 1 && unsafe { CStr::from_ptr(text) } == name {
            let (info, section) = (half(symbol + 4) & 0xf, half(symbol + 4) >> 16);
            // Variables and functions; what is chosen when the file is loaded would have to be asked.
            return ([1, 2].contains(&info) && section != 0)
                .then(|| bias.wrapping_add(word(symbol + 8)));
        }
        // The last one has the lowest bit.
        if own & 1 == 1 {
            return None;
        }
        chain += 1;
    }
}

/// # Safety
///
/// As for [`table`].
unsafe fn exported(dynamic: usize, bias: usize, address: usize) -> Option<String> {
    // SAFETY: as the caller says.
    let table = |tag| unsafe { table(dynamic, bias, tag) };
    // SAFETY: words of tables, and of nothing behind these, as the caller says.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<usize>(at).read() };
    // SAFETY: as above.
    let half = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u32>(at).read() } as usize;
    let count = match (table(HASH), table(GNU_HASH)) {
        (Some(hash), _) => half(hash + 4),
        (None, Some(hash)) => {
            let [buckets, first, bloom] = [0, 4, 8].map(|at| half(hash + at));
            let start = hash + 16 + 8 * bloom;
            let last =
                (0..buckets).map(|at| half(start + 4 * at)).max().filter(|last| *last >= first);
            let chain = |at: usize| half(start + 4 * (buckets + at - first));
            // The last one of a chain has the lowest bit.
            last.and_then(|last| (last..).find(|at| chain(*at) & 1 == 1))
                .map_or(first, |last| last + 1)
        }
        (None, None) => return None,
    };
    let (symbols, strings) = (table(SYMBOLS)?, table(STRINGS)?);
    let is_here = |symbol: &usize| {
        let (info, section) = (half(symbol + 4) & 0xf, half(symbol + 4) >> 16);
        // Functions, also those that are chosen when the file is loaded.
        let start = bias.wrapping_add(word(symbol + 8));
        [2, 10].contains(&info) && section != 0 && address.wrapping_sub(start) < word(symbol + 16)
    };
    let symbol = (0..count).map(|at| symbols + 24 * at).find(is_here)?;
    let name: *const c_char = core::ptr::with_exposed_provenance(strings + half(symbol));
    // SAFETY: a string of the file's table.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::at;

    /// What the loader says itself.
    fn asked(address: usize) -> libc::Dl_info {
        let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let place = core::ptr::without_provenance(address);
        // SAFETY: any address, and a place for the answer, which a success has filled.
        unsafe {
            assert_ne!(libc::dladdr(place, found.as_mut_ptr()), 0);
            found.assume_init()
        }
    }

    #[test]
    fn it_is_what_the_loader_says() {
        // SAFETY: a name, which is looked up.
        let look_up =
            |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr();
        for name in [c"getpid", c"qsort", c"dlsym", c"printf", c"_Unwind_Backtrace"] {
            let address = look_up(name) + 1;
            let (own, loader) = (at(address, true).expect("it is loaded"), asked(address));
            assert_eq!(own.base, loader.dli_fbase.addr(), "{name:?}");
            // SAFETY: the loader's strings.
            let [path, symbol] = [loader.dli_fname, loader.dli_sname]
                .map(|path| unsafe { CStr::from_ptr(path) }.to_string_lossy());
            assert_eq!(own.path, path, "{name:?}");
            let own = own.symbol.expect("it is exported");
            // A function may have several names.
            assert_eq!(named(&own), named(&symbol), "{own} {symbol}");
        }
        let here =
            at(it_is_what_the_loader_says as *const () as usize, false).expect("it is loaded");
        assert_eq!(here.path, "", "the program");
        assert!(at(8, false).is_none());
    }

    #[test]
    fn names_are_found() {
        for name in [c"getpid", c"qsort", c"_Unwind_Backtrace", c"environ"] {
            // SAFETY: a name, which is looked up.
            let loader = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr();
            assert_eq!(super::named(name), Some(loader), "{name:?}");
        }
        assert_eq!(super::named(c"no function has this name"), None);
    }

    /// A file in this test's memory: its symbols, in the order of their chains, each with its
    /// place, its size, its kind and its section.
    struct File {
        dynamic: Vec<usize>,
        _parts: (Vec<u32>, Vec<[u32; 6]>, Vec<u8>),
    }

    const FUNCTION: u32 = 2;

    fn gnu_hash(name: &str) -> u32 {
        name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
    }

    impl File {
        /// All in so many buckets, after one symbol without a name. `bloom` words of the filter come
        /// before the buckets.
        fn new(symbols: &[(&str, u32, u32, u32, u32)], buckets: u32, bloom: usize) -> Self {
            let mut texts = vec![0];
            let mut table = vec![[0; 6]];
            let mut chosen = vec![0; buckets as usize];
            let mut chain = Vec::new();
            for bucket in 0..buckets {
                let here = |name: &str| gnu_hash(name) % buckets == bucket;
                let all: Vec<_> = symbols.iter().filter(|symbol| here(symbol.0)).collect();
                for (at, (name, place, size, kind, section)) in all.iter().enumerate() {
                    if at == 0 {
                        chosen[bucket as usize] = table.len() as u32;
                    }
                    let is_last = at + 1 == all.len();
                    chain.push(gnu_hash(name) & !1 | u32::from(is_last));
                    table.push([texts.len() as u32, kind | section << 16, *place, 0, *size, 0]);
                    texts.extend(name.bytes().chain([0]));
                }
            }
            let mut hashes = vec![buckets, 1, bloom as u32, 0];
            hashes.extend([7].repeat(2 * bloom));
            hashes.extend(chosen.into_iter().chain(chain));
            let parts = (hashes, table, texts);
            let dynamic = vec![
                super::GNU_HASH,
                parts.0.as_ptr().expose_provenance(),
                super::SYMBOLS,
                parts.1.as_ptr().expose_provenance(),
                super::STRINGS,
                parts.2.as_ptr().expose_provenance(),
                0,
                0,
            ];
            Self { dynamic, _parts: parts }
        }

        fn defined(&self, name: &CStr) -> Option<usize> {
            let dynamic = self.dynamic.as_ptr().expose_provenance();
            // SAFETY: the tables of a file, as the loader has them.
            unsafe { super::defined(dynamic, 0, name) }
        }

        fn exported(&self, address: usize) -> Option<String> {
            let dynamic = self.dynamic.as_ptr().expose_provenance();
            // SAFETY: as above.
            unsafe { super::exported(dynamic, 0, address) }
        }
    }

    #[test]
    fn a_hash_table_is_read_to_its_end_and_no_further() {
        let symbols = [
            ("one", 0x100, 0x10, FUNCTION, 9),
            ("two", 0x110, 0x10, FUNCTION, 9),
            ("other", 0x200, 1, FUNCTION, 9),
            ("variable", 0x300, 8, 1, 9),
            ("elsewhere", 0x400, 8, FUNCTION, 0),
            ("chosen", 0x500, 8, 10, 9),
            ("section", 0x600, 8, 3, 9),
        ];
        for (buckets, bloom) in [(1, 0), (1, 1), (2, 3), (7, 1), (100, 2)] {
            let file = File::new(&symbols, buckets, bloom);
            let found = [c"one", c"two", c"other", c"variable"].map(|name| file.defined(name));
            assert_eq!(found, [0x100, 0x110, 0x200, 0x300].map(Some), "{buckets} buckets");
            // Not there, of another file, chosen when it is loaded, and no function.
            for name in [c"three", c"on", c"elsewhere", c"chosen", c"section", c""] {
                assert_eq!(file.defined(name), None, "{name:?} in {buckets} buckets");
            }
            let at = [0xff, 0x100, 0x10f, 0x110, 0x11f, 0x120, 0x200, 0x201, 0x500, 0x507, 0x508];
            let names = ["", "one", "one", "two", "two", "", "other", "", "chosen", "chosen", ""];
            let found = at.map(|address| file.exported(address).unwrap_or_default());
            assert_eq!(found, names, "{buckets} buckets");
            assert_eq!(
                [0x300, 0x400, 0x600].map(|address| file.exported(address)),
                [const { None }; 3]
            );
        }
        // Without buckets, and without symbols in them.
        for buckets in [0, 1, 4] {
            let file = File::new(&[], buckets, 1);
            assert_eq!((file.defined(c"one"), file.exported(0x100)), (None, None));
        }
    }

    fn named(name: &str) -> usize {
        let name = std::ffi::CString::new(name).expect("a name");
        // SAFETY: a name, which is looked up.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr()
    }
}

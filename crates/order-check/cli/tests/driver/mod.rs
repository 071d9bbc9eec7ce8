//! The functions of a driver, as a program has them that loads its library by name.

macro_rules! driver {
    ($($name:ident($($argument:ident: $ty:ty),*);)*) => {
        /// The functions of a driver, which must succeed.
        #[allow(non_snake_case)]
        struct Cuda {
            $($name: unsafe extern "C" fn($($ty),*) -> u32,)*
        }

        impl Cuda {
            fn load() -> Self {
                use std::ffi::{CStr, c_void};
                // SAFETY: the functions have these types.
                unsafe {
                    let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
                    assert!(!library.is_null());
                    Self {
                        $($name: {
                            let name = concat!(stringify!($name), "\0");
                            let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("one 0");
                            let found = libc::dlsym(library, name.as_ptr());
                            assert!(!found.is_null(), "{name:?}");
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($ty),*) -> u32,
                            >(found)
                        },)*
                    }
                }
            }

            $(#[allow(non_snake_case, dead_code, clippy::too_many_arguments)]
            fn $name(&self, $($argument: $ty),*) {
                // SAFETY: the callers give what is alive.
                let code = unsafe { (self.$name)($($argument),*) };
                assert_eq!(code, 0, stringify!($name));
            })*
        }
    };
}

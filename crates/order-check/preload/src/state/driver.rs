//! The questions that the driver is asked.

use core::ffi::{CStr, c_char, c_uint, c_void};

use cuda_events::sys::more::CUDA_ARRAY3D_DESCRIPTOR;

use crate::call::{Address, Code, Handle, OK};

/// Functions of the driver by their names, each with its parameters. `None` if the driver has it
/// not.
macro_rules! of_driver {
    ($(#[$about:meta])* $table:ident { $($field:ident: $name:ident ($($ty:ty),*),)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $(pub(crate) $field: Option<unsafe extern "C" fn($($ty),*) -> Code>,)*
        }

        impl $table {
            pub(crate) fn new(resolve: &dyn Fn(&core::ffi::CStr) -> *mut c_void) -> Self {
                // SAFETY: NULL, or the driver's functions of these names, with these parameters.
                unsafe {
                    Self {
                        $($field: core::mem::transmute::<
                            *mut c_void,
                            Option<unsafe extern "C" fn($($ty),*) -> Code>,
                        >(resolve($crate::abi::name!($name))),)*
                    }
                }
            }
        }

        $($crate::abi::compare!($name unsafe extern "C" fn($($ty),*) -> Code);)*
    };
}

pub(crate) use of_driver;

pub(crate) type ParamInfo = unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> Code;

pub(crate) type NameOf = unsafe extern "C" fn(*mut *const c_char, Handle) -> Code;

of_driver! {
    Questions {
        current: cuCtxGetCurrent (*mut Handle),
        device: cuCtxGetDevice (*mut i32),
        attribute: cuPointerGetAttribute (*mut c_void, c_uint, Address),
        range: cuMemGetAddressRange_v2 (*mut Address, *mut usize, Address),
        array: cuArray3DGetDescriptor_v2 (*mut CUDA_ARRAY3D_DESCRIPTOR, Handle),
        stream_context: cuStreamGetCtx (Handle, *mut Handle),
        stream_flags: cuStreamGetFlags (Handle, *mut c_uint),
        kernel_name: cuKernelGetName (*mut *const c_char, Handle),
        function_name: cuFuncGetName (*mut *const c_char, Handle),
        kernel_parameter: cuKernelGetParamInfo (Handle, usize, *mut usize, *mut usize),
        function_parameter: cuFuncGetParamInfo (Handle, usize, *mut usize, *mut usize),
        module_of_function: cuFuncGetModule (*mut Handle, Handle),
        library_of_kernel: cuKernelGetLibrary (*mut Handle, Handle),
        device_attribute: cuDeviceGetAttribute (*mut i32, c_uint, i32),
    }
}

impl Questions {
    /// The driver's number of bytes from an address on, of which the program has asked for none.
    pub(crate) fn bytes_at(&self, address: Address) -> Option<usize> {
        let (mut base, mut bytes) = (0, 0);
        // SAFETY: places for the answers.
        let code = unsafe { self.range?(&mut base, &mut bytes, address) };
        (code == OK).then(|| bytes.saturating_sub(address.wrapping_sub(base) as usize))
    }

    /// Whether the driver says where the parameters of kernels are, as it does since CUDA 12.4.
    pub(crate) fn describe_kernels(&self) -> bool {
        self.kernel_parameter.or(self.function_parameter).is_some()
    }

    /// Whether the host may access managed memory while the current context's device is busy.
    pub(crate) fn has_concurrent_managed_access(&self) -> bool {
        let (Some(device), Some(attribute)) = (self.device, self.device_attribute) else {
            return false;
        };
        let (mut ordinal, mut concurrent) = (0, 0);
        // SAFETY: places for the answers: CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS.
        let codes = unsafe { [device(&mut ordinal), attribute(&mut concurrent, 89, ordinal)] };
        codes == [OK; 2] && concurrent != 0
    }

    /// The architecture of the current context's device, as in `sm_90`: 90. 0 without an
    /// answer.
    pub(crate) fn architecture(&self) -> u32 {
        let (Some(device), Some(attribute)) = (self.device, self.device_attribute) else {
            return 0;
        };
        let (mut ordinal, mut major, mut minor) = (0, 0, 0);
        // SAFETY: places for the answers: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
        let codes = unsafe {
            [
                device(&mut ordinal),
                attribute(&mut major, 75, ordinal),
                attribute(&mut minor, 76, ordinal),
            ]
        };
        if codes == [OK; 3] { u32::try_from(10 * major + minor).unwrap_or(0) } else { 0 }
    }

    /// The name of a kernel as its image has it, and the offset and the size of each parameter.
    pub(crate) fn kernel(&self, function: Handle) -> (Option<String>, Vec<(usize, usize)>) {
        let parameters_by = |ask: ParamInfo| {
            let parameter = |index| {
                let (mut offset, mut size) = (0, 0);
                // SAFETY: a handle that the driver has just launched, and places for the answers.
                let code = unsafe { ask(function, index, &mut offset, &mut size) };
                (code == OK).then_some((offset, size))
            };
            (0..).map_while(parameter).collect::<Vec<_>>()
        };
        let named = |ask: NameOf| {
            let mut name = core::ptr::null();
            // SAFETY: as above; the name is a C string of the driver's.
            let text = unsafe {
                match ask(&mut name, function) {
                    OK if !name.is_null() => CStr::from_ptr(name).to_string_lossy(),
                    _ => return None,
                }
            };
            Some(text.into_owned())
        };
        // A handle of the other kind is refused.
        let parameters = [self.kernel_parameter, self.function_parameter].into_iter().flatten();
        let all = parameters.map(parameters_by).find(|all| !all.is_empty());
        let mut names = [self.kernel_name, self.function_name].into_iter().flatten();
        (names.find_map(named), all.unwrap_or_default())
    }
}

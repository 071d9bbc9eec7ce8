//! What this crate does not bind, and other crates of the project call or stand in for: the
//! declarations of `wrapper-more.h`, and the types of functions by their exported names.

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unsafe_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::indexing_slicing
)]
mod bindings {
    #[cfg(not(feature = "bindgen"))]
    include!("more_bindings.rs");
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/more_bindings.rs"));
}

pub use bindings::*;

pub use super::exports::NEWEST;
use super::symbols::parse_typedef;

/// A line has the exported function, its typedef, and the typedef of its per-thread-default-stream
/// twin if it has one.
macro_rules! more {
    ($($function:ident $typedef:ident $($twin:ident)?;)*) => {
        /// The type of each function by its exported name. That of a twin is the same.
        #[allow(missing_docs, non_camel_case_types)]
        pub mod types {
            use crate::sys::CUresult;
            pub use crate::sys::symbols::types::*;

            $(pub type $function = super::$typedef;)*

            // NVIDIA has them in a header of their own.
            pub type cuProfilerStart = Option<unsafe extern "C" fn() -> CUresult>;
            pub type cuProfilerStop = cuProfilerStart;
        }

        $($(const _: fn($typedef) -> $twin = |pointer| pointer;)?)*

        /// The exported names, each with the version that introduced it and that of its twin.
        pub const VERSIONS: &[(&str, crate::sys::Version, Option<crate::sys::Version>)] = &[$((
            stringify!($function),
            const { parse_typedef(stringify!($typedef)).1 },
            const {
                let twins: &[&'static str] = &[$(stringify!($twin))?];
                match twins {
                    [twin, ..] => Some(parse_typedef(twin).1),
                    [] => None,
                }
            },
        ),)*];
    };
}

more! {
    cuArray3DGetDescriptor_v2 PFN_cuArray3DGetDescriptor_v3020;
    cuCtxAttach PFN_cuCtxAttach_v2000;
    cuCtxCreate_v3 PFN_cuCtxCreate_v11040;
    cuCtxDestroy PFN_cuCtxDestroy_v2000;
    cuCtxDetach PFN_cuCtxDetach_v2000;
    cuCtxDisablePeerAccess PFN_cuCtxDisablePeerAccess_v4000;
    cuCtxEnablePeerAccess PFN_cuCtxEnablePeerAccess_v4000;
    cuCtxGetApiVersion PFN_cuCtxGetApiVersion_v3020;
    cuCtxGetCacheConfig PFN_cuCtxGetCacheConfig_v3020;
    cuCtxGetLimit PFN_cuCtxGetLimit_v3010;
    cuCtxGetSharedMemConfig PFN_cuCtxGetSharedMemConfig_v4020;
    cuCtxPopCurrent PFN_cuCtxPopCurrent_v2000;
    cuCtxPushCurrent PFN_cuCtxPushCurrent_v2000;
    cuCtxResetPersistingL2Cache PFN_cuCtxResetPersistingL2Cache_v11000;
    cuCtxSetCacheConfig PFN_cuCtxSetCacheConfig_v3020;
    cuCtxSetFlags PFN_cuCtxSetFlags_v12010;
    cuCtxSetLimit PFN_cuCtxSetLimit_v3010;
    cuCtxSetSharedMemConfig PFN_cuCtxSetSharedMemConfig_v4020;
    cuDeviceCanAccessPeer PFN_cuDeviceCanAccessPeer_v4000;
    cuDeviceComputeCapability PFN_cuDeviceComputeCapability_v2000;
    cuDeviceGetByPCIBusId PFN_cuDeviceGetByPCIBusId_v4010;
    cuDeviceGetDefaultMemPool PFN_cuDeviceGetDefaultMemPool_v11020;
    cuDeviceGetMemPool PFN_cuDeviceGetMemPool_v11020;
    cuDeviceGetP2PAttribute PFN_cuDeviceGetP2PAttribute_v8000;
    cuDeviceGetPCIBusId PFN_cuDeviceGetPCIBusId_v4010;
    cuDevicePrimaryCtxRelease PFN_cuDevicePrimaryCtxRelease_v7000;
    cuDevicePrimaryCtxReset PFN_cuDevicePrimaryCtxReset_v7000;
    cuDevicePrimaryCtxReset_v2 PFN_cuDevicePrimaryCtxReset_v11000;
    cuDevicePrimaryCtxSetFlags PFN_cuDevicePrimaryCtxSetFlags_v7000;
    cuDevicePrimaryCtxSetFlags_v2 PFN_cuDevicePrimaryCtxSetFlags_v11000;
    cuDeviceSetMemPool PFN_cuDeviceSetMemPool_v11020;
    cuEventDestroy PFN_cuEventDestroy_v2000;
    cuFuncGetAttribute PFN_cuFuncGetAttribute_v2020;
    cuFuncGetModule PFN_cuFuncGetModule_v11000;
    cuFuncGetName PFN_cuFuncGetName_v12030;
    cuFuncGetParamCount PFN_cuFuncGetParamCount_v13020;
    cuFuncGetParamInfo PFN_cuFuncGetParamInfo_v12040;
    cuFuncIsLoaded PFN_cuFuncIsLoaded_v12040;
    cuFuncLoad PFN_cuFuncLoad_v12040;
    cuFuncSetAttribute PFN_cuFuncSetAttribute_v9000;
    cuFuncSetCacheConfig PFN_cuFuncSetCacheConfig_v3000;
    cuFuncSetSharedMemConfig PFN_cuFuncSetSharedMemConfig_v4020;
    cuGetExportTable PFN_cuGetExportTable_v3000;
    cuGraphAddChildGraphNode PFN_cuGraphAddChildGraphNode_v10000;
    cuGraphAddDependencies PFN_cuGraphAddDependencies_v10000;
    cuGraphAddDependencies_v2 PFN_cuGraphAddDependencies_v12030;
    cuGraphAddEmptyNode PFN_cuGraphAddEmptyNode_v10000;
    cuGraphAddKernelNode PFN_cuGraphAddKernelNode_v10000;
    cuGraphAddKernelNode_v2 PFN_cuGraphAddKernelNode_v12000;
    cuGraphAddMemcpyNode PFN_cuGraphAddMemcpyNode_v10000;
    cuGraphAddMemsetNode PFN_cuGraphAddMemsetNode_v10000;
    cuGraphChildGraphNodeGetGraph PFN_cuGraphChildGraphNodeGetGraph_v10000;
    cuGraphClone PFN_cuGraphClone_v10000;
    cuGraphDestroyNode PFN_cuGraphDestroyNode_v10000;
    cuGraphExecGetFlags PFN_cuGraphExecGetFlags_v12000;
    cuGraphExecKernelNodeSetParams PFN_cuGraphExecKernelNodeSetParams_v10010;
    cuGraphExecKernelNodeSetParams_v2 PFN_cuGraphExecKernelNodeSetParams_v12000;
    cuGraphExecMemcpyNodeSetParams PFN_cuGraphExecMemcpyNodeSetParams_v10020;
    cuGraphExecMemsetNodeSetParams PFN_cuGraphExecMemsetNodeSetParams_v10020;
    cuGraphExecUpdate PFN_cuGraphExecUpdate_v10020;
    cuGraphExecUpdate_v2 PFN_cuGraphExecUpdate_v12000;
    cuGraphGetEdges PFN_cuGraphGetEdges_v10000;
    cuGraphGetEdges_v2 PFN_cuGraphGetEdges_v12030;
    cuGraphGetNodes PFN_cuGraphGetNodes_v10000;
    cuGraphGetRootNodes PFN_cuGraphGetRootNodes_v10000;
    cuGraphInstantiate PFN_cuGraphInstantiate_v10000;
    cuGraphInstantiateWithParams
        PFN_cuGraphInstantiateWithParams_v12000 PFN_cuGraphInstantiateWithParams_v12000_ptsz;
    cuGraphKernelNodeGetAttribute PFN_cuGraphKernelNodeGetAttribute_v11000;
    cuGraphKernelNodeGetParams PFN_cuGraphKernelNodeGetParams_v10000;
    cuGraphKernelNodeGetParams_v2 PFN_cuGraphKernelNodeGetParams_v12000;
    cuGraphKernelNodeSetParams PFN_cuGraphKernelNodeSetParams_v10000;
    cuGraphKernelNodeSetParams_v2 PFN_cuGraphKernelNodeSetParams_v12000;
    cuGraphMemcpyNodeGetParams PFN_cuGraphMemcpyNodeGetParams_v10000;
    cuGraphMemcpyNodeSetParams PFN_cuGraphMemcpyNodeSetParams_v10000;
    cuGraphMemsetNodeGetParams PFN_cuGraphMemsetNodeGetParams_v10000;
    cuGraphMemsetNodeSetParams PFN_cuGraphMemsetNodeSetParams_v10000;
    cuGraphNodeFindInClone PFN_cuGraphNodeFindInClone_v10000;
    cuGraphNodeGetContainingGraph PFN_cuGraphNodeGetContainingGraph_v13010;
    cuGraphNodeGetDependencies PFN_cuGraphNodeGetDependencies_v10000;
    cuGraphNodeGetDependencies_v2 PFN_cuGraphNodeGetDependencies_v12030;
    cuGraphNodeGetDependentNodes PFN_cuGraphNodeGetDependentNodes_v10000;
    cuGraphNodeGetDependentNodes_v2 PFN_cuGraphNodeGetDependentNodes_v12030;
    cuGraphNodeGetEnabled PFN_cuGraphNodeGetEnabled_v11060;
    cuGraphNodeGetParams PFN_cuGraphNodeGetParams_v13020;
    cuGraphNodeGetType PFN_cuGraphNodeGetType_v10000;
    cuGraphNodeSetEnabled PFN_cuGraphNodeSetEnabled_v11060;
    cuGraphReleaseUserObject PFN_cuGraphReleaseUserObject_v11030;
    cuGraphRemoveDependencies PFN_cuGraphRemoveDependencies_v10000;
    cuGraphRemoveDependencies_v2 PFN_cuGraphRemoveDependencies_v12030;
    cuGraphRetainUserObject PFN_cuGraphRetainUserObject_v11030;
    cuGraphUpload PFN_cuGraphUpload_v11010 PFN_cuGraphUpload_v11010_ptsz;
    cuGraphicsResourceGetMappedPointer_v2 PFN_cuGraphicsResourceGetMappedPointer_v3020;
    cuIpcOpenMemHandle PFN_cuIpcOpenMemHandle_v4010;
    cuKernelGetAttribute PFN_cuKernelGetAttribute_v12000;
    cuKernelGetFunction PFN_cuKernelGetFunction_v12000;
    cuKernelGetLibrary PFN_cuKernelGetLibrary_v12050;
    cuKernelGetName PFN_cuKernelGetName_v12030;
    cuKernelGetParamCount PFN_cuKernelGetParamCount_v13020;
    cuKernelGetParamInfo PFN_cuKernelGetParamInfo_v12040;
    cuKernelSetAttribute PFN_cuKernelSetAttribute_v12000;
    cuKernelSetCacheConfig PFN_cuKernelSetCacheConfig_v12000;
    cuLaunchCooperativeKernel
        PFN_cuLaunchCooperativeKernel_v9000 PFN_cuLaunchCooperativeKernel_v9000_ptsz;
    cuLaunchKernel PFN_cuLaunchKernel_v4000 PFN_cuLaunchKernel_v7000_ptsz;
    cuLaunchKernelEx PFN_cuLaunchKernelEx_v11060 PFN_cuLaunchKernelEx_v11060_ptsz;
    cuLibraryEnumerateKernels PFN_cuLibraryEnumerateKernels_v12040;
    cuLibraryGetGlobal PFN_cuLibraryGetGlobal_v12000;
    cuLibraryGetKernel PFN_cuLibraryGetKernel_v12000;
    cuLibraryGetKernelCount PFN_cuLibraryGetKernelCount_v12040;
    cuLibraryGetManaged PFN_cuLibraryGetManaged_v12000;
    cuLibraryGetModule PFN_cuLibraryGetModule_v12000;
    cuLibraryLoadData PFN_cuLibraryLoadData_v12000;
    cuLibraryLoadFromFile PFN_cuLibraryLoadFromFile_v12000;
    cuLibraryUnload PFN_cuLibraryUnload_v12000;
    cuMemAddressFree PFN_cuMemAddressFree_v10020;
    cuMemAddressReserve PFN_cuMemAddressReserve_v10020;
    cuMemAdvise PFN_cuMemAdvise_v8000;
    cuMemAdvise_v2 PFN_cuMemAdvise_v12020;
    cuMemAllocAsync PFN_cuMemAllocAsync_v11020 PFN_cuMemAllocAsync_v11020_ptsz;
    cuMemAllocFromPoolAsync
        PFN_cuMemAllocFromPoolAsync_v11020 PFN_cuMemAllocFromPoolAsync_v11020_ptsz;
    cuMemAllocHost_v2 PFN_cuMemAllocHost_v3020;
    cuMemAllocManaged PFN_cuMemAllocManaged_v6000;
    cuMemAllocPitch_v2 PFN_cuMemAllocPitch_v3020;
    cuMemCreate PFN_cuMemCreate_v10020;
    cuMemDiscardAndPrefetchBatchAsync
        PFN_cuMemDiscardAndPrefetchBatchAsync_v13000 PFN_cuMemDiscardAndPrefetchBatchAsync_v13000_ptsz;
    cuMemDiscardBatchAsync PFN_cuMemDiscardBatchAsync_v13000 PFN_cuMemDiscardBatchAsync_v13000_ptsz;
    cuMemFreeAsync PFN_cuMemFreeAsync_v11020 PFN_cuMemFreeAsync_v11020_ptsz;
    cuMemGetAccess PFN_cuMemGetAccess_v10020;
    cuMemGetAddressRange_v2 PFN_cuMemGetAddressRange_v3020;
    cuMemGetAllocationGranularity PFN_cuMemGetAllocationGranularity_v10020;
    cuMemGetAllocationPropertiesFromHandle PFN_cuMemGetAllocationPropertiesFromHandle_v10020;
    cuMemGetDefaultMemPool PFN_cuMemGetDefaultMemPool_v13000;
    cuMemGetMemPool PFN_cuMemGetMemPool_v13000;
    cuMemHostGetFlags PFN_cuMemHostGetFlags_v2030;
    cuMemHostRegister PFN_cuMemHostRegister_v4000;
    cuMemHostUnregister PFN_cuMemHostUnregister_v4000;
    cuMemMap PFN_cuMemMap_v10020;
    cuMemPoolCreate PFN_cuMemPoolCreate_v11020;
    cuMemPoolDestroy PFN_cuMemPoolDestroy_v11020;
    cuMemPoolExportPointer PFN_cuMemPoolExportPointer_v11020;
    cuMemPoolExportToShareableHandle PFN_cuMemPoolExportToShareableHandle_v11020;
    cuMemPoolGetAccess PFN_cuMemPoolGetAccess_v11020;
    cuMemPoolGetAttribute PFN_cuMemPoolGetAttribute_v11020;
    cuMemPoolImportFromShareableHandle PFN_cuMemPoolImportFromShareableHandle_v11020;
    cuMemPoolImportPointer PFN_cuMemPoolImportPointer_v11020;
    cuMemPoolSetAccess PFN_cuMemPoolSetAccess_v11020;
    cuMemPoolSetAttribute PFN_cuMemPoolSetAttribute_v11020;
    cuMemPoolTrimTo PFN_cuMemPoolTrimTo_v11020;
    cuMemPrefetchAsync PFN_cuMemPrefetchAsync_v8000 PFN_cuMemPrefetchAsync_v8000_ptsz;
    cuMemPrefetchAsync_v2 PFN_cuMemPrefetchAsync_v12020 PFN_cuMemPrefetchAsync_v12020_ptsz;
    cuMemPrefetchBatchAsync
        PFN_cuMemPrefetchBatchAsync_v13000 PFN_cuMemPrefetchBatchAsync_v13000_ptsz;
    cuMemRelease PFN_cuMemRelease_v10020;
    cuMemRetainAllocationHandle PFN_cuMemRetainAllocationHandle_v11000;
    cuMemSetAccess PFN_cuMemSetAccess_v10020;
    cuMemSetMemPool PFN_cuMemSetMemPool_v13000;
    cuMemUnmap PFN_cuMemUnmap_v10020;
    cuMemcpy PFN_cuMemcpy_v4000 PFN_cuMemcpy_v7000_ptds;
    cuMemcpy2DAsync_v2 PFN_cuMemcpy2DAsync_v3020 PFN_cuMemcpy2DAsync_v7000_ptsz;
    cuMemcpy2DUnaligned_v2 PFN_cuMemcpy2DUnaligned_v3020 PFN_cuMemcpy2DUnaligned_v7000_ptds;
    cuMemcpy2D_v2 PFN_cuMemcpy2D_v3020 PFN_cuMemcpy2D_v7000_ptds;
    cuMemcpy3DAsync_v2 PFN_cuMemcpy3DAsync_v3020 PFN_cuMemcpy3DAsync_v7000_ptsz;
    cuMemcpy3DBatchAsync PFN_cuMemcpy3DBatchAsync_v12080 PFN_cuMemcpy3DBatchAsync_v12080_ptsz;
    cuMemcpy3DBatchAsync_v2 PFN_cuMemcpy3DBatchAsync_v13000 PFN_cuMemcpy3DBatchAsync_v13000_ptsz;
    cuMemcpy3DPeer PFN_cuMemcpy3DPeer_v4000 PFN_cuMemcpy3DPeer_v7000_ptds;
    cuMemcpy3DPeerAsync PFN_cuMemcpy3DPeerAsync_v4000 PFN_cuMemcpy3DPeerAsync_v7000_ptsz;
    cuMemcpy3DWithAttributesAsync
        PFN_cuMemcpy3DWithAttributesAsync_v13020 PFN_cuMemcpy3DWithAttributesAsync_v13020_ptsz;
    cuMemcpy3D_v2 PFN_cuMemcpy3D_v3020 PFN_cuMemcpy3D_v7000_ptds;
    cuMemcpyAsync PFN_cuMemcpyAsync_v4000 PFN_cuMemcpyAsync_v7000_ptsz;
    cuMemcpyAtoA_v2 PFN_cuMemcpyAtoA_v3020 PFN_cuMemcpyAtoA_v7000_ptds;
    cuMemcpyAtoD_v2 PFN_cuMemcpyAtoD_v3020 PFN_cuMemcpyAtoD_v7000_ptds;
    cuMemcpyAtoHAsync_v2 PFN_cuMemcpyAtoHAsync_v3020 PFN_cuMemcpyAtoHAsync_v7000_ptsz;
    cuMemcpyAtoH_v2 PFN_cuMemcpyAtoH_v3020 PFN_cuMemcpyAtoH_v7000_ptds;
    cuMemcpyBatchAsync PFN_cuMemcpyBatchAsync_v12080 PFN_cuMemcpyBatchAsync_v12080_ptsz;
    cuMemcpyBatchAsync_v2 PFN_cuMemcpyBatchAsync_v13000 PFN_cuMemcpyBatchAsync_v13000_ptsz;
    cuMemcpyDtoA_v2 PFN_cuMemcpyDtoA_v3020 PFN_cuMemcpyDtoA_v7000_ptds;
    cuMemcpyDtoD_v2 PFN_cuMemcpyDtoD_v3020 PFN_cuMemcpyDtoD_v7000_ptds;
    cuMemcpyDtoH_v2 PFN_cuMemcpyDtoH_v3020 PFN_cuMemcpyDtoH_v7000_ptds;
    cuMemcpyHtoAAsync_v2 PFN_cuMemcpyHtoAAsync_v3020 PFN_cuMemcpyHtoAAsync_v7000_ptsz;
    cuMemcpyHtoA_v2 PFN_cuMemcpyHtoA_v3020 PFN_cuMemcpyHtoA_v7000_ptds;
    cuMemcpyHtoD_v2 PFN_cuMemcpyHtoD_v3020 PFN_cuMemcpyHtoD_v7000_ptds;
    cuMemcpyPeer PFN_cuMemcpyPeer_v4000 PFN_cuMemcpyPeer_v7000_ptds;
    cuMemcpyPeerAsync PFN_cuMemcpyPeerAsync_v4000 PFN_cuMemcpyPeerAsync_v7000_ptsz;
    cuMemcpyWithAttributesAsync
        PFN_cuMemcpyWithAttributesAsync_v13020 PFN_cuMemcpyWithAttributesAsync_v13020_ptsz;
    cuMemsetD16Async PFN_cuMemsetD16Async_v3020 PFN_cuMemsetD16Async_v7000_ptsz;
    cuMemsetD16_v2 PFN_cuMemsetD16_v3020 PFN_cuMemsetD16_v7000_ptds;
    cuMemsetD2D16Async PFN_cuMemsetD2D16Async_v3020 PFN_cuMemsetD2D16Async_v7000_ptsz;
    cuMemsetD2D16_v2 PFN_cuMemsetD2D16_v3020 PFN_cuMemsetD2D16_v7000_ptds;
    cuMemsetD2D32Async PFN_cuMemsetD2D32Async_v3020 PFN_cuMemsetD2D32Async_v7000_ptsz;
    cuMemsetD2D32_v2 PFN_cuMemsetD2D32_v3020 PFN_cuMemsetD2D32_v7000_ptds;
    cuMemsetD2D8Async PFN_cuMemsetD2D8Async_v3020 PFN_cuMemsetD2D8Async_v7000_ptsz;
    cuMemsetD2D8_v2 PFN_cuMemsetD2D8_v3020 PFN_cuMemsetD2D8_v7000_ptds;
    cuMemsetD32_v2 PFN_cuMemsetD32_v3020 PFN_cuMemsetD32_v7000_ptds;
    cuMemsetD8_v2 PFN_cuMemsetD8_v3020 PFN_cuMemsetD8_v7000_ptds;
    cuModuleEnumerateFunctions PFN_cuModuleEnumerateFunctions_v12040;
    cuModuleGetFunction PFN_cuModuleGetFunction_v2000;
    cuModuleGetFunctionCount PFN_cuModuleGetFunctionCount_v12040;
    cuModuleGetGlobal_v2 PFN_cuModuleGetGlobal_v3020;
    cuModuleGetLoadingMode PFN_cuModuleGetLoadingMode_v11070;
    cuModuleLoad PFN_cuModuleLoad_v2000;
    cuModuleLoadData PFN_cuModuleLoadData_v2000;
    cuModuleLoadDataEx PFN_cuModuleLoadDataEx_v2010;
    cuModuleLoadFatBinary PFN_cuModuleLoadFatBinary_v2000;
    cuModuleUnload PFN_cuModuleUnload_v2000;
    cuOccupancyMaxActiveBlocksPerMultiprocessor
        PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050;
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000;
    cuOccupancyMaxPotentialBlockSize PFN_cuOccupancyMaxPotentialBlockSize_v6050;
    cuOccupancyMaxPotentialBlockSizeWithFlags PFN_cuOccupancyMaxPotentialBlockSizeWithFlags_v7000;
    cuPointerGetAttribute PFN_cuPointerGetAttribute_v4000;
    cuPointerGetAttributes PFN_cuPointerGetAttributes_v7000;
    cuStreamBeginCapture PFN_cuStreamBeginCapture_v10000 PFN_cuStreamBeginCapture_v10000_ptsz;
    cuStreamDestroy PFN_cuStreamDestroy_v2000;
    cuUserObjectCreate PFN_cuUserObjectCreate_v11030;
    cuUserObjectRelease PFN_cuUserObjectRelease_v11030;
    cuUserObjectRetain PFN_cuUserObjectRetain_v11030;
}

/// Defines the traits by which a crate shows that its own functions are called as the driver's are.
/// Their types may be others than those of the headers, such as a number for a handle, if they are
/// passed in the same way. `$code` is what they return.
///
/// Each crate has the traits for itself, as it has types of its own that are passed as others. The
/// macro never defines more: what is new goes to the crates, which might have it already.
#[doc(hidden)]
#[macro_export]
macro_rules! __passing {
    (returns $code:ty) => {
        /// A value of this type is passed as one of `T`; behind a pointer the two have one layout.
        #[diagnostic::on_unimplemented(message = "`{Self}` is not passed as the driver's `{T}`")]
        pub(crate) trait PassedAs<T> {}

        /// A function that can be called as one of the type `F`.
        #[diagnostic::on_unimplemented(message = "`{Self}` is not called as the driver's `{F}`")]
        pub(crate) trait CalledAs<F> {}

        pub(crate) const fn is_called_as<H: CalledAs<F>, F>() {}

        pub(crate) const fn is<H: CalledAs<F> + Copy, F>(_: H) {}

        impl<O: PassedAs<T>, T> PassedAs<*mut T> for *mut O {}
        impl<O: PassedAs<T>, T> PassedAs<*const T> for *const O {}
        /// The own function only reads what the driver may write.
        impl<O: PassedAs<T>, T> PassedAs<*mut T> for *const O {}
        /// No matter what is there.
        impl<T> PassedAs<T> for core::ffi::c_void {}

        $crate::__passing! { types
            u8: u8, u16: u16, u32: u32, i32: i32, u64: u64, usize: usize, f32: f32,
            i8: i8, $code: $crate::sys::CUresult,
            u32: $crate::sys::CUdevice_attribute, u32: $crate::sys::CUdriverProcAddressQueryResult,
            u32: $crate::sys::CUlaunchAttributeID, u32: $crate::sys::CUstreamCaptureMode,
            u32: $crate::sys::CUstreamCaptureStatus, u32: $crate::sys::more::CUfunction_attribute,
            u32: $crate::sys::more::CUfunc_cache, u32: $crate::sys::more::CUfunctionLoadingState,
            u32: $crate::sys::more::CUgraphExecUpdateResult,
            u32: $crate::sys::more::CUgraphNodeType, u32: $crate::sys::more::CUjit_option,
            u32: $crate::sys::more::CUlibraryOption, u32: $crate::sys::more::CUlimit,
            u32: $crate::sys::more::CUmemAllocationHandleType,
            u32: $crate::sys::more::CUmemAllocationType, u32: $crate::sys::more::CUmem_advise,
            u32: $crate::sys::more::CUmemPool_attribute,
            u32: $crate::sys::more::CUmoduleLoadingMode,
            u32: $crate::sys::more::CUpointer_attribute, u32: $crate::sys::more::CUsharedconfig,
            u32: $crate::sys::more::CUdevice_P2PAttribute,
        }
        $crate::__passing!(functions $code; A1 B1 A2 B2 A3 B3 A4 B4 A5 B5 A6 B6 A7 B7 A8 B8 A9 B9
            A10 B10 A11 B11);
    };
    (types $($own:ty: $their:ty),* $(,)?) => {$(
        impl PassedAs<$their> for $own {}
        const _: () = assert!(
            size_of::<$own>() == size_of::<$their>() && align_of::<$own>() == align_of::<$their>()
        );
    )*};
    // Each is passed as itself.
    (structures $($name:ident),* $(,)?) => { $crate::__passing! { types $($name: $name),* } };
    (functions $code:ty;) => { $crate::__passing!(function $code;); };
    (functions $code:ty; $own:ident $their:ident $($rest:ident)*) => {
        $crate::__passing!(function $code; $own $their $($rest)*);
        $crate::__passing!(functions $code; $($rest)*);
    };
    (function $code:ty; $($own:ident $their:ident)*) => {
        impl<$($own: PassedAs<$their>, $their),*>
            CalledAs<Option<unsafe extern "C" fn($($their),*) -> $crate::sys::CUresult>>
            for unsafe extern "C" fn($($own),*) -> $code {}
    };
}

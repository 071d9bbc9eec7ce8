//! The rest of what a CUDA driver exports: modules, kernels, arrays, textures, virtual memory,
//! nodes of graphs for those, and what `cuda-events` binds without needing it here.
//!
//! A program that is linked against these names, or looks all of them up when it starts, has to
//! find them. Each answers `CUDA_ERROR_NOT_SUPPORTED`, whatever its arguments are. Names and
//! versions are those of CUDA 13.5; a name that `cuda-events` binds has the version of its list.

use crate::front::export::Export;

/// Calls `$callback!` with the list: exported name and version.
#[macro_export]
#[doc(hidden)]
#[rustfmt::skip]
macro_rules! for_each_foreign {
    ($callback:ident) => { $callback! {
        cuArray3DCreate 2000; cuArray3DCreate_v2 3020; cuArray3DGetDescriptor 2000;
        cuArray3DGetDescriptor_v2 3020; cuArrayCreate 2000; cuArrayCreate_v2 3020;
        cuArrayDestroy 2000; cuArrayGetDescriptor 2000; cuArrayGetDescriptor_v2 3020;
        cuArrayGetMemoryRequirements 11060; cuArrayGetPlane 11020; cuArrayGetSparseProperties 11010;
        cuCheckpointOperationComplete 13040; cuCheckpointProcessCheckpoint 12080;
        cuCheckpointProcessGetRestoreThreadId 12080; cuCheckpointProcessGetState 12080;
        cuCheckpointProcessLock 12080; cuCheckpointProcessRestore 12080;
        cuCheckpointProcessUnlock 12080; cuCoredumpDeregisterCompleteCallback 13020;
        cuCoredumpDeregisterStartCallback 13020; cuCoredumpGetAttribute 12010;
        cuCoredumpGetAttributeGlobal 12010; cuCoredumpRegisterCompleteCallback 13020;
        cuCoredumpRegisterStartCallback 13020; cuCoredumpSetAttribute 12010;
        cuCoredumpSetAttributeGlobal 12010; cuCtxCreate 2000; cuCtxGetExecAffinity 11040;
        cuDestroyExternalMemory; cuDevSmResourceSplit 13010; cuDeviceGetCliqueCount 13040;
        cuDeviceGetCliqueInfo 13040; cuDeviceGetExecAffinitySupport 11040;
        cuDeviceGetFabricClusterUuid 13040; cuDeviceGetGraphMemAttribute 11040;
        cuDeviceGetHostAtomicCapabilities 13000; cuDeviceGetNvSciSyncAttributes 10020;
        cuDeviceGetP2PAtomicCapabilities 13000; cuDeviceGetProperties 2000;
        cuDeviceGetTexture1DLinearMaxWidth 11010; cuDeviceGraphMemTrim 11040;
        cuDeviceRegisterAsyncNotification 12040; cuDeviceSetGraphMemAttribute 11040;
        cuDeviceTotalMem 2000; cuDeviceUnregisterAsyncNotification 12040;
        cuEGLStreamConsumerAcquireFrame 7000; cuEGLStreamConsumerConnect 7000;
        cuEGLStreamConsumerConnectWithFlags 8000; cuEGLStreamConsumerDisconnect 7000;
        cuEGLStreamConsumerReleaseFrame 7000; cuEGLStreamProducerConnect 7000;
        cuEGLStreamProducerDisconnect 7000; cuEGLStreamProducerPresentFrame 7000;
        cuEGLStreamProducerReturnFrame 7000; cuEventCreateFromEGLSync 9000;
        cuExternalMemoryGetMappedBuffer; cuExternalMemoryGetMappedMipmappedArray 10000;
        cuFabricCpyBatchAsync 13050; cuFabricCpyBatchAsync_ptsz 13050;
        cuFlushGPUDirectRDMAWrites 11030; cuFuncGetAttribute 2020; cuFuncGetModule 11000;
        cuFuncGetParamCount 13020; cuFuncGetParamInfo 12040; cuFuncIsLoaded 12040; cuFuncLoad 12040;
        cuFuncSetAttribute 9000; cuFuncSetBlockShape 2000; cuFuncSetCacheConfig 3000;
        cuFuncSetSharedMemConfig 4020; cuFuncSetSharedSize 2000; cuGLCtxCreate_v2 3020;
        cuGLGetDevices_v2 6050; cuGLInit 2000; cuGLMapBufferObjectAsync_v2 3020;
        cuGLMapBufferObject_v2 3020; cuGLRegisterBufferObject 2000;
        cuGLSetBufferObjectMapFlags 2030; cuGLUnmapBufferObject 2000;
        cuGLUnmapBufferObjectAsync 2030; cuGLUnregisterBufferObject 2000;
        cuGraphAddExternalSemaphoresSignalNode 11020; cuGraphAddExternalSemaphoresWaitNode 11020;
        cuGraphAddKernelNode 10000; cuGraphAddKernelNode_v2 12000; cuGraphAddMemAllocNode 11040;
        cuGraphAddMemFreeNode 11040; cuGraphAddNode 12020; cuGraphAddNode_v2 12030;
        cuGraphAddNode_v3 13040; cuGraphConditionalHandleCreate 12030; cuGraphDebugDotPrint 11030;
        cuGraphExecChildGraphNodeSetParams 11010;
        cuGraphExecExternalSemaphoresSignalNodeSetParams 11020;
        cuGraphExecExternalSemaphoresWaitNodeSetParams 11020; cuGraphExecKernelNodeSetParams 10010;
        cuGraphExecKernelNodeSetParams_v2 12000; cuGraphExecNodeSetParams 12020;
        cuGraphExternalSemaphoresSignalNodeGetParams 11020;
        cuGraphExternalSemaphoresSignalNodeSetParams 11020;
        cuGraphExternalSemaphoresWaitNodeGetParams 11020;
        cuGraphExternalSemaphoresWaitNodeSetParams 11020; cuGraphKernelNodeCopyAttributes 11000;
        cuGraphKernelNodeGetAttribute 11000; cuGraphKernelNodeGetParams 10000;
        cuGraphKernelNodeGetParams_v2 12000; cuGraphKernelNodeSetAttribute 11000;
        cuGraphKernelNodeSetParams 10000; cuGraphKernelNodeSetParams_v2 12000;
        cuGraphMemAllocNodeGetParams 11040; cuGraphMemFreeNodeGetParams 11040;
        cuGraphNodeGetEnabled 11060; cuGraphNodeGetParams 13020; cuGraphNodeSetEnabled 11060;
        cuGraphNodeSetParams 12020; cuGraphNodeSetParams_v2 13040; cuGraphicsEGLRegisterImage 7000;
        cuGraphicsGLRegisterBuffer 3000; cuGraphicsGLRegisterImage 3000;
        cuGraphicsMapResources 3000; cuGraphicsMapResources_ptsz 7000;
        cuGraphicsResourceGetMappedEglFrame 7000; cuGraphicsResourceGetMappedMipmappedArray 5000;
        cuGraphicsResourceGetMappedPointer 3000; cuGraphicsResourceGetMappedPointer_v2 3020;
        cuGraphicsResourceSetMapFlags 3000; cuGraphicsResourceSetMapFlags_v2 6050;
        cuGraphicsSubResourceGetMappedArray 3000; cuGraphicsUnmapResources 3000;
        cuGraphicsUnmapResources_ptsz 7000; cuGraphicsUnregisterResource 3000;
        cuGraphicsVDPAURegisterOutputSurface 3010; cuGraphicsVDPAURegisterVideoSurface 3010;
        cuGreenCtxGetId 12090; cuImportExternalMemory; cuKernelGetAttribute 12000;
        cuKernelGetFunction 12000; cuKernelGetLibrary 12050; cuKernelGetParamCount 13020;
        cuKernelGetParamInfo 12040; cuKernelSetAttribute 12000; cuKernelSetCacheConfig 12000;
        cuLaunch 2000; cuLaunchCooperativeKernel 9000; cuLaunchCooperativeKernelMultiDevice 9000;
        cuLaunchCooperativeKernel_ptsz 9000; cuLaunchGrid 2000; cuLaunchGridAsync 2000;
        cuLaunchKernel 4000; cuLaunchKernelEx 11060; cuLaunchKernelEx_ptsz 11060;
        cuLaunchKernel_ptsz 7000; cuLibraryEnumerateKernels 12040; cuLibraryGetGlobal 12000;
        cuLibraryGetKernel 12000; cuLibraryGetKernelCount 12040; cuLibraryGetManaged 12000;
        cuLibraryGetModule 12000; cuLibraryGetUnifiedFunction 12000; cuLibraryLoadData 12000;
        cuLibraryLoadFromFile 12000; cuLibraryUnload 12000; cuLinkAddData 5050;
        cuLinkAddData_v2 6050; cuLinkAddFile 5050; cuLinkAddFile_v2 6050; cuLinkComplete 5050;
        cuLinkCreate 5050; cuLinkCreate_v2 6050; cuLinkDestroy 5050;
        cuLogicalEndpointAddDevice 13030; cuLogicalEndpointBindAddr 13030;
        cuLogicalEndpointBindMem 13030; cuLogicalEndpointCreate 13030;
        cuLogicalEndpointDestroy 13030; cuLogicalEndpointExport 13030;
        cuLogicalEndpointGetLimits 13030; cuLogicalEndpointIdRelease 13030;
        cuLogicalEndpointIdReserve 13030; cuLogicalEndpointImport 13030;
        cuLogicalEndpointQuery 13030; cuLogicalEndpointUnbind 13030; cuLogsCurrent 12090;
        cuLogsDumpToFile 12090; cuLogsDumpToMemory 12090; cuLogsRegisterCallback 12090;
        cuLogsUnregisterCallback 12090; cuMemAddressFree 10020; cuMemAddressReserve 10020;
        cuMemAlloc 2000; cuMemAllocHost 2000; cuMemAllocPitch 2000; cuMemBatchDecompressAsync 12060;
        cuMemBatchDecompressAsync_ptsz 12060; cuMemCreate 10020;
        cuMemDiscardAndPrefetchBatchAsync 13000; cuMemDiscardAndPrefetchBatchAsync_ptsz 13000;
        cuMemDiscardBatchAsync 13000; cuMemDiscardBatchAsync_ptsz 13000;
        cuMemExportToShareableHandle 10020; cuMemFree 2000; cuMemGetAccess 10020;
        cuMemGetAddressRange 2000; cuMemGetAllocationGranularity 10020;
        cuMemGetAllocationPropertiesFromHandle 10020; cuMemGetHandleForAddressRange 11070;
        cuMemGetInfo 2000; cuMemGetLocationInfo 13040; cuMemHostGetDevicePointer 2020;
        cuMemHostRegister 4000; cuMemImportFromShareableHandle 10020; cuMemMap 10020;
        cuMemMapArrayAsync 11010; cuMemMapArrayAsync_ptsz 11010; cuMemPrefetchBatchAsync 13000;
        cuMemPrefetchBatchAsync_ptsz 13000; cuMemRangeGetAttribute 8000;
        cuMemRangeGetAttributes 8000; cuMemRelease 10020; cuMemRetainAllocationHandle 11000;
        cuMemSetAccess 10020; cuMemUnmap 10020; cuMemcpy2D 2000; cuMemcpy2DAsync 2000;
        cuMemcpy2DUnaligned 2000; cuMemcpy3D 2000; cuMemcpy3DAsync 2000; cuMemcpy3DBatchAsync 12080;
        cuMemcpy3DBatchAsync_ptsz 12080; cuMemcpy3DBatchAsync_v2 13000;
        cuMemcpy3DBatchAsync_v2_ptsz 13000; cuMemcpy3DPeer 4000; cuMemcpy3DPeerAsync 4000;
        cuMemcpy3DPeerAsync_ptsz 7000; cuMemcpy3DPeer_ptds 7000;
        cuMemcpy3DWithAttributesAsync 13020; cuMemcpy3DWithAttributesAsync_ptsz 13020;
        cuMemcpyAtoA 2000; cuMemcpyAtoA_v2 3020; cuMemcpyAtoA_v2_ptds 7000; cuMemcpyAtoD 2000;
        cuMemcpyAtoD_v2 3020; cuMemcpyAtoD_v2_ptds 7000; cuMemcpyAtoH 2000; cuMemcpyAtoHAsync 2000;
        cuMemcpyAtoHAsync_v2 3020; cuMemcpyAtoHAsync_v2_ptsz 7000; cuMemcpyAtoH_v2 3020;
        cuMemcpyAtoH_v2_ptds 7000; cuMemcpyBatchAsync 12080; cuMemcpyBatchAsync_ptsz 12080;
        cuMemcpyBatchAsync_v2 13000; cuMemcpyBatchAsync_v2_ptsz 13000; cuMemcpyDtoA 2000;
        cuMemcpyDtoA_v2 3020; cuMemcpyDtoA_v2_ptds 7000; cuMemcpyDtoD 2000; cuMemcpyDtoDAsync 3000;
        cuMemcpyDtoH 2000; cuMemcpyDtoHAsync 2000; cuMemcpyHtoA 2000; cuMemcpyHtoAAsync 2000;
        cuMemcpyHtoAAsync_v2 3020; cuMemcpyHtoAAsync_v2_ptsz 7000; cuMemcpyHtoA_v2 3020;
        cuMemcpyHtoA_v2_ptds 7000; cuMemcpyHtoD 2000; cuMemcpyHtoDAsync 2000;
        cuMemcpyWithAttributesAsync 13020; cuMemcpyWithAttributesAsync_ptsz 13020; cuMemsetD16 2000;
        cuMemsetD2D16 2000; cuMemsetD2D32 2000; cuMemsetD2D8 2000; cuMemsetD32 2000;
        cuMemsetD8 2000; cuMipmappedArrayCreate 5000; cuMipmappedArrayDestroy 5000;
        cuMipmappedArrayGetLevel 5000; cuMipmappedArrayGetMemoryRequirements 11060;
        cuMipmappedArrayGetSparseProperties 11010; cuModuleEnumerateFunctions 12040;
        cuModuleGetFunction 2000; cuModuleGetFunctionCount 12040; cuModuleGetGlobal 2000;
        cuModuleGetGlobal_v2 3020; cuModuleGetSurfRef 3000; cuModuleGetTexRef 2000;
        cuModuleLoad 2000; cuModuleLoadData 2000; cuModuleLoadDataEx 2010;
        cuModuleLoadFatBinary 2000; cuModuleUnload 2000; cuMulticastAddDevice 12010;
        cuMulticastBindAddr 12010; cuMulticastBindAddr_v2 13010; cuMulticastBindMem 12010;
        cuMulticastBindMem_v2 13010; cuMulticastCreate 12010; cuMulticastGetGranularity 12010;
        cuMulticastUnbind 12010; cuOccupancyAvailableDynamicSMemPerBlock 10020;
        cuOccupancyMaxActiveBlocksPerMultiprocessor 6050;
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000;
        cuOccupancyMaxActiveClusters 11070; cuOccupancyMaxPotentialBlockSize 6050;
        cuOccupancyMaxPotentialBlockSizeWithFlags 7000; cuOccupancyMaxPotentialClusterSize 11070;
        cuParamSetSize 2000; cuParamSetTexRef 2000; cuParamSetf 2000; cuParamSeti 2000;
        cuParamSetv 2000; cuPointerSetAttribute 6000; cuProfilerInitialize 4000;
        cuStreamBeginCaptureToCig; cuStreamBeginCaptureToCig_ptsz; cuStreamBeginRecaptureToGraph;
        cuStreamBeginRecaptureToGraph_ptsz; cuStreamEndCaptureToCig; cuStreamEndCaptureToCig_ptsz;
        cuStreamGetDevResource; cuStreamGetDevResource_ptsz; cuSurfObjectCreate 5000;
        cuSurfObjectDestroy 5000; cuSurfObjectGetResourceDesc 5000; cuSurfRefGetArray 3000;
        cuSurfRefSetArray 3000; cuTensorMapEncodeIm2col 12000; cuTensorMapEncodeIm2colWide 12080;
        cuTensorMapEncodeTiled 12000; cuTensorMapReplaceAddress 12000;
        cuTensorMapSetAllocationClass 13050; cuTexObjectCreate 5000; cuTexObjectDestroy 5000;
        cuTexObjectGetResourceDesc 5000; cuTexObjectGetResourceViewDesc 5000;
        cuTexObjectGetTextureDesc 5000; cuTexRefCreate 2000; cuTexRefDestroy 2000;
        cuTexRefGetAddress 2000; cuTexRefGetAddressMode 2000; cuTexRefGetAddress_v2 3020;
        cuTexRefGetArray 2000; cuTexRefGetBorderColor 8000; cuTexRefGetFilterMode 2000;
        cuTexRefGetFlags 2000; cuTexRefGetFormat 2000; cuTexRefGetMaxAnisotropy 5000;
        cuTexRefGetMipmapFilterMode 5000; cuTexRefGetMipmapLevelBias 5000;
        cuTexRefGetMipmapLevelClamp 5000; cuTexRefGetMipmappedArray 5000; cuTexRefSetAddress 2000;
        cuTexRefSetAddress2D 2020; cuTexRefSetAddress2D_v2 3020; cuTexRefSetAddress2D_v3 4010;
        cuTexRefSetAddressMode 2000; cuTexRefSetAddress_v2 3020; cuTexRefSetArray 2000;
        cuTexRefSetBorderColor 8000; cuTexRefSetFilterMode 2000; cuTexRefSetFlags 2000;
        cuTexRefSetFormat 2000; cuTexRefSetMaxAnisotropy 5000; cuTexRefSetMipmapFilterMode 5000;
        cuTexRefSetMipmapLevelBias 5000; cuTexRefSetMipmapLevelClamp 5000;
        cuTexRefSetMipmappedArray 5000; cuVDPAUCtxCreate_v2 3020; cuVDPAUGetDevice 3010;
    } };
}

pub(crate) use for_each_foreign;

macro_rules! define {
    ($($name:ident $($version:literal)?;)*) => {
        /// The list as exports.
        #[allow(long_running_const_eval, reason = "each name is looked up in another list")]
        pub(crate) const FOREIGN: &[Export] = &[$(Export::new(stringify!($name), &[$($version)?],
            twin(stringify!($name))).unsupported(),)*];
    };
}

/// Whether a name is that of a per-thread-default-stream twin.
const fn twin(name: &str) -> bool {
    let name = name.as_bytes();
    matches!(name, [.., b'_', b'p', b't', b's' | b'd', b'z' | b's'])
}

for_each_foreign!(define);

//! The names of the driver's functions, and which of them may order work or touch memory.

use core::ffi::CStr;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Parts of the names of functions that order nothing and touch no memory of the program, unless
/// they are in [`ORDER`]. Everything else that is not hooked counts as ordering everything.
const QUIET: [&str; 65] = [
    // Functions that only answer a question.
    "Get",
    "IsCapturing",
    "IsLoaded",
    "Occupancy",
    "Enumerate",
    "CanAccessPeer",
    "ComputeCapability",
    "TotalMem",
    "FindInClone",
    "cuLogicalEndpointQuery",
    // Settings, and what the process has for tools.
    "cuInit",
    "cuCoredump",
    "cuLogs",
    "cuProfiler",
    "SetAttribute",
    "SetGraphMemAttribute",
    "SetCacheConfig",
    "SetSharedMemConfig",
    "SetSharedSize",
    "SetBlockShape",
    "SetFlags",
    "SetAccess",
    "SetMemPool",
    "SetBufferObjectMapFlags",
    "CopyAttributes",
    "ExchangeStreamCaptureMode",
    "AsyncNotification",
    "cuMemAdvise",
    "PersistingL2Cache",
    "cuParamSet",
    "cuTensorMap",
    "cuTexRef",
    "cuTexObject",
    "cuSurf",
    "DebugDotPrint",
    // Functions of contexts and devices.
    "cuCtxAttach",
    "cuCtxCreate",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuCtxSetCurrent",
    "PeerAccess",
    "PrimaryCtxRetain",
    "cuCtxFromGreenCtx",
    "cuDevResource",
    "cuDevSmResource",
    "cuGreenCtxCreate",
    // Code. (Loads of modules and unloads wait.)
    "cuLibraryLoad",
    "cuLink",
    "cuFuncLoad",
    // Memory and objects that are made, exported or named, before any work has them.
    "ArrayCreate",
    "Array3DCreate",
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemMap",
    // Memory that is mapped lasts until it is unmapped.
    "cuMemRelease",
    "cuMemAddressFree",
    "cuMemRetainAllocationHandle",
    "ShareableHandle",
    "cuMemPoolCreate",
    // They give back what no work has any longer.
    "cuMemPoolTrimTo",
    "cuMemPoolDestroy",
    "cuMulticast",
    "cuImportExternal",
    "cuUserObject",
    // Nodes: they do nothing before a launch.
    "cuGraph",
];

/// Parts of the names of functions that count as ordering everything. A function without a hook and
/// without a part in either list counts as that, too: what `cuda-events` binds has one, so that
/// nobody forgets a hook.
const ORDER: [&str; 12] = [
    // A part in the other list would take them in.
    "cuMemMapArrayAsync",
    "cuGraphics",
    "cuGraphExecUpdate",
    "cuMulticastUnbind",
    // Work of other APIs, of other parts of the driver and of a whole process.
    "cuSignalExternalSemaphores",
    "cuWaitExternalSemaphores",
    "cuDestroyExternalSemaphore",
    "cuDestroyExternalMemory",
    "CaptureToCig",
    "cuCheckpoint",
    "cuGreenCtxDestroy",
    "cuStreamAttachMemAsync",
];

/// Those that give an address of memory, also in versions that are not hooked: the memory is then
/// not known.
const ADDRESSES: [&str; 6] = [
    "cuExternalMemoryGetMappedBuffer",
    "cuGraphicsResourceGetMappedEglFrame",
    "cuGraphicsResourceGetMappedPointer",
    "cuLibraryGetGlobal",
    "cuLibraryGetManaged",
    "cuModuleGetGlobal",
];

/// A name without its version and the suffix for the per-thread default stream.
pub(crate) fn base(name: &str) -> &str {
    let plain = ["_ptsz", "_ptds"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    match plain.rsplit_once("_v") {
        Some((base, number)) if number.bytes().all(|sign| sign.is_ascii_digit()) => base,
        _ => plain,
    }
}

/// The hooked functions, without their versions and suffixes.
static HOOKED: OnceLock<BTreeSet<&'static str>> = OnceLock::new();

/// These functions are hooked. It comes before the first question.
pub(crate) fn are_hooked(names: impl Iterator<Item = &'static CStr>) {
    let _ = HOOKED.set(names.filter_map(|name| name.to_str().ok()).map(base).collect());
}

/// Whether a function of this name, with another version or suffix, is hooked.
pub(crate) fn is_like_a_hooked_one(name: &str) -> bool {
    HOOKED.get().is_some_and(|bases| bases.contains(base(name)))
}

/// Whether a function that is not hooked counts as one that may order anything.
pub(crate) fn may_order(name: &str) -> bool {
    let within = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if name.contains("Get") {
        // What asks is quiet, whatever it asks about.
        return ADDRESSES.contains(&base(name));
    }
    is_like_a_hooked_one(name) || within(&ORDER) || !within(&QUIET)
}

/// What a function changes by its name: the place of a graph or a node among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// A graph, or an executable one.
    Graph(usize),
    Node(usize),
}

/// What a function that is not hooked changes, if that is a graph. It is asked for when the graph
/// is instantiated; an executable graph orders everything from then on.
pub(crate) fn edited(name: &str) -> Option<Edited> {
    let name = name.strip_prefix("cuGraph")?;
    let sets = name.contains("Set");
    match base(name) {
        "AddDependencies" | "RemoveDependencies" => Some(Edited::Graph(0)),
        name if name.starts_with("Add") => Some(Edited::Graph(1)),
        "NodeSetEnabled" => Some(Edited::Graph(0)),
        name if name.starts_with("Exec") && sets => Some(Edited::Graph(0)),
        "DestroyNode" => Some(Edited::Node(0)),
        _ if sets => Some(Edited::Node(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ADDRESSES, Edited, ORDER, QUIET, are_hooked, base, edited, is_like_a_hooked_one, may_order,
    };
    use cuda_events::sys::ENTRY_POINTS;

    #[test]
    fn each_bound_entry_point_is_hooked_or_listed() {
        are_hooked(crate::hooks::names());
        let unlisted = ENTRY_POINTS.iter().filter(|entry| {
            let name = entry.function.name();
            let within = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
            let is_listed = within(&ORDER) || within(&QUIET) && !is_like_a_hooked_one(name);
            !crate::hooks::names().any(|hooked| hooked == entry.name) && !is_listed
        });
        let unlisted: Vec<_> = unlisted.map(|entry| entry.function).collect();
        assert!(
            unlisted.is_empty(),
            "{unlisted:?}: cuda-events binds them, and the checker takes them for calls that order \
             everything. Hook them in crates/order-check/preload/src/table.rs, or list them in \
             src/names.rs there: in QUIET if they order nothing and touch no memory, otherwise in \
             ORDER"
        );
    }

    #[test]
    fn functions_without_a_hook_order_unless_they_are_listed_as_quiet() {
        are_hooked(crate::hooks::names());
        for name in [
            "cuMemcpy3DBatchAsync_v2_ptsz",
            "cuStreamAttachMemAsync",
            "cuGraphUpload_v2",
            "cuGraphExecUpdate_v9",
            "cuGraphicsMapResources",
            "cuMemMapArrayAsync",
            "cuMulticastUnbind",
            "cuModuleUnload",
            // Their memory would not be known.
            "cuModuleGetGlobal",
            "cuGraphicsResourceGetMappedEglFrame",
            // Ones that no driver has yet.
            "cuMemcpyHtoDAsync_v9",
            "cuGraphLaunch_v2",
            "cuStreamFrobnicate",
            "cuLibraryGetGlobal_v2",
        ] {
            assert!(may_order(name), "{name}");
        }
        for name in [
            "cuStreamGetFlags",
            "cuStreamGetCaptureInfo_v9",
            "cuStreamIsCapturing",
            "cuMemCreate",
            "cuCtxSetCurrent",
            "cuGraphCreate",
            "cuGetErrorName",
            "cuLibraryGetModule",
            "cuKernelSetAttribute",
            "cuMemPoolSetAttribute",
            "cuMemPoolTrimTo",
            "cuDeviceSetGraphMemAttribute",
            "cuLogicalEndpointQuery",
            "cuMemAdvise_v2",
        ] {
            assert!(!may_order(name), "{name}");
        }
        // Whatever is exported and asks, or sets an attribute, of an object or of all.
        macro_rules! all {
            ($($name:ident $($version:literal)?),*) => { [$(stringify!($name)),*] };
        }
        let exported = crate::for_each_name!(all);
        for name in exported.iter().filter(|name| !is_like_a_hooked_one(name)) {
            let asks = name.contains("Get") || name.contains("Query");
            if asks || name.contains("Attribute") && name.contains("Set") {
                assert_eq!(may_order(name), ADDRESSES.contains(&base(name)), "{name}");
            }
        }
        for (name, expected) in [
            ("cuGraphAddMemcpyNode", Some(Edited::Graph(1))),
            ("cuGraphAddNode_v2", Some(Edited::Graph(1))),
            ("cuGraphAddDependencies_v2", Some(Edited::Graph(0))),
            // The executable graph comes first, though it is no function with Exec in its name.
            ("cuGraphNodeSetEnabled", Some(Edited::Graph(0))),
            ("cuGraphExecKernelNodeSetParams_v3", Some(Edited::Graph(0))),
            ("cuGraphKernelNodeSetParams_v2", Some(Edited::Node(0))),
            ("cuGraphEventWaitNodeSetEvent", Some(Edited::Node(0))),
            ("cuGraphRemoveDependencies_v2", Some(Edited::Graph(0))),
            ("cuGraphAddMemAllocNode", Some(Edited::Graph(1))),
            ("cuGraphKernelNodeSetAttribute", Some(Edited::Node(0))),
            ("cuGraphDestroyNode", Some(Edited::Node(0))),
            ("cuGraphDestroy", None),
            ("cuGraphNodeGetEnabled", None),
            ("cuGraphLaunch_v2", None),
            ("cuMemcpyHtoD_v9", None),
        ] {
            assert_eq!(edited(name), expected, "{name}");
        }
        assert!(is_like_a_hooked_one("cuEventRecord_v3_ptsz"));
        assert!(!is_like_a_hooked_one("cuMemCreate"));
    }
}

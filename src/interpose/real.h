// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/abi.h"
#include "cuda/nvml_abi.h"

/// The libraries behind this one.
namespace gflow::interpose {

namespace abi = cuda::abi;
namespace nvml = cuda::nvml;

// What is hooked, by the name it is exported under and its type in cuda/abi.h: every way to get
// memory of a GPU and to give it back, what tells how much there is, and what a GPU is given to do.
// NOLINTBEGIN(cppcoreguidelines-macro-usage,readability-identifier-naming): lists of names
#define GFLOW_CUDA_HOOKS(X)                                     \
  X(cuGetProcAddress, cuGetProcAddress)                         \
  X(cuGetProcAddress_v2, cuGetProcAddress_v2)                   \
  X(cuMemGetInfo_v2, cuMemGetInfo_v2)                           \
  X(cuDeviceTotalMem_v2, cuDeviceTotalMem_v2)                   \
  X(cuMemAlloc, cuMemAlloc)                                     \
  X(cuMemAlloc_v2, cuMemAlloc_v2)                               \
  X(cuMemAllocPitch_v2, cuMemAllocPitch_v2)                     \
  X(cuMemAllocManaged, cuMemAllocManaged)                       \
  X(cuMemFree, cuMemFree)                                       \
  X(cuMemFree_v2, cuMemFree_v2)                                 \
  X(cuMemAllocAsync, cuMemAllocAsync)                           \
  X(cuMemAllocAsync_ptsz, cuMemAllocAsync)                      \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync)           \
  X(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync)      \
  X(cuMemFreeAsync, cuMemFreeAsync)                             \
  X(cuMemFreeAsync_ptsz, cuMemFreeAsync)                        \
  X(cuMemPoolCreate, cuMemPoolCreate)                           \
  X(cuMemPoolDestroy, cuMemPoolDestroy)                         \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo)                           \
  X(cuMemCreate, cuMemCreate)                                   \
  X(cuMemRelease, cuMemRelease)                                 \
  X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle)   \
  X(cuMemMap, cuMemMap)                                         \
  X(cuMemUnmap, cuMemUnmap)                                     \
  X(cuArrayCreate_v2, cuArrayCreate_v2)                         \
  X(cuArray3DCreate_v2, cuArray3DCreate_v2)                     \
  X(cuArrayDestroy, cuArrayDestroy)                             \
  X(cuMipmappedArrayCreate, cuMipmappedArrayCreate)             \
  X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy)           \
  X(cuCtxDestroy, cuCtxDestroy_v2)                              \
  X(cuCtxDestroy_v2, cuCtxDestroy_v2)                           \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)    \
  X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease_v2) \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)        \
  X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset_v2)     \
  X(cuStreamSynchronize, cuStreamSynchronize)                   \
  X(cuStreamSynchronize_ptsz, cuStreamSynchronize)              \
  X(cuCtxSynchronize, cuCtxSynchronize)                         \
  X(cuCtxSynchronize_v2, cuCtxSynchronize_v2)                   \
  X(cuEventSynchronize, cuEventSynchronize)                     \
  X(cuLaunchKernel, cuLaunchKernel)                             \
  X(cuLaunchKernel_ptsz, cuLaunchKernel)                        \
  X(cuLaunchKernelEx, cuLaunchKernelEx)                         \
  X(cuLaunchKernelEx_ptsz, cuLaunchKernelEx)                    \
  X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel)       \
  X(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel)  \
  X(cuLaunch, cuLaunch)                                         \
  X(cuLaunchGrid, cuLaunchGrid)                                 \
  X(cuLaunchGridAsync, cuLaunchGridAsync)                       \
  X(cuGraphLaunch, cuGraphLaunch)                               \
  X(cuGraphLaunch_ptsz, cuGraphLaunch)

/// What is called besides.
#define GFLOW_CUDA_CALLS(X)                                               \
  X(cuCtxGetCurrent, cuCtxGetCurrent)                                     \
  X(cuCtxSetCurrent, cuCtxSetCurrent)                                     \
  X(cuEventCreate, cuEventCreate)                                         \
  X(cuEventRecord, cuEventRecord)                                         \
  X(cuEventRecord_ptsz, cuEventRecord)                                    \
  X(cuEventQuery, cuEventQuery)                                           \
  X(cuStreamIsCapturing, cuStreamIsCapturing)                             \
  X(cuStreamIsCapturing_ptsz, cuStreamIsCapturing)                        \
  X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode) \
  X(cuCtxGetDevice, cuCtxGetDevice)                                       \
  X(cuStreamGetDevice, cuStreamGetDevice)                                 \
  X(cuStreamGetDevice_ptsz, cuStreamGetDevice)                            \
  X(cuDeviceGetUuid, cuDeviceGetUuid)                                     \
  X(cuDeviceGetUuid_v2, cuDeviceGetUuid_v2)                               \
  X(cuDeviceGetMemPool, cuDeviceGetMemPool)                               \
  X(cuMemPoolGetAttribute, cuMemPoolGetAttribute)                         \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                   \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState)

#define GFLOW_NVML_HOOKS(X)               \
  X(nvmlDeviceGetMemoryInfo, GetMemoryV1) \
  X(nvmlDeviceGetMemoryInfo_v2, GetMemoryV2)

#define GFLOW_NVML_CALLS(X) X(nvmlDeviceGetUUID, GetText)

/// The driver's own functions, each behind its stub in a process that watches (stubs.h); null where
/// this driver has none of it.
struct Driver {
#define GFLOW_MEMBER(name, type) abi::call::type* name = nullptr;
  GFLOW_CUDA_HOOKS(GFLOW_MEMBER)
  GFLOW_CUDA_CALLS(GFLOW_MEMBER)
#undef GFLOW_MEMBER
};
struct Nvml {
#define GFLOW_MEMBER(name, type) nvml::type name = nullptr;
  GFLOW_NVML_HOOKS(GFLOW_MEMBER)
  GFLOW_NVML_CALLS(GFLOW_MEMBER)
#undef GFLOW_MEMBER
};
// NOLINTEND(cppcoreguidelines-macro-usage,readability-identifier-naming)

/// Empty until the library is loaded: by the program, never by this one.
[[nodiscard]] const Driver& driver();
[[nodiscard]] const Nvml& management();

/// Whether there is a hook of this name.
[[nodiscard]] bool is_hooked(const char* name);
/// Whether this library exports something of this name: a hook or a stub.
[[nodiscard]] bool is_exported(const char* name);
/// Whether the library of a hook is loaded and has a function of its name, or the driver one of the
/// name of a stub.
[[nodiscard]] bool is_behind(const char* name);
/// What a program that is linked to the name of a stub would call without this library: of the next
/// library that has it, or the driver's, if that is loaded for others alone. Null: there is none.
[[nodiscard]] void* behind(const char* name);

/// The hook in the place of a function that a look-up found under this name, where something is
/// limited in this process; its stub, if it is the driver's own and the process watches; else the
/// function itself.
[[nodiscard]] void* routed(const char* name, void* found);

/// The same for what the driver's cuGetProcAddress found under a base name.
[[nodiscard]] void* routed_procedure(const char* name, void* found);

using Dlsym = void*(void* handle, const char* name);
/// The C library's.
[[nodiscard]] Dlsym* real_dlsym();

}  // namespace gflow::interpose

#define GFLOW_EXPORT extern "C" __attribute__((visibility("default")))

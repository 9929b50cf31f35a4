// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <string>

#include "cuda/abi.h"

/// How a program gets at the functions of the driver.
namespace client {

namespace abi = gflow::cuda::abi;

#define CLIENT_FUNCTIONS(X)                                                       \
  X(cuInit, cuInit)                                                               \
  X(cuDeviceGetCount, cuDeviceGetCount)                                           \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2)                                        \
  X(cuCtxCreate, cuCtxCreate_v2)                                                  \
  X(cuCtxDestroy, cuCtxDestroy_v2)                                                \
  X(cuCtxSetCurrent, cuCtxSetCurrent)                                             \
  X(cuCtxGetCurrent, cuCtxGetCurrent)                                             \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)                           \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)                      \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)                          \
  X(cuMemGetInfo, cuMemGetInfo_v2)                                                \
  X(cuMemAlloc, cuMemAlloc_v2)                                                    \
  X(cuMemAllocPitch, cuMemAllocPitch_v2)                                          \
  X(cuMemAllocManaged, cuMemAllocManaged)                                         \
  X(cuMemFree, cuMemFree_v2)                                                      \
  X(cuMemHostAlloc, cuMemHostAlloc)                                               \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo)                                             \
  X(cuMemPoolCreate, cuMemPoolCreate)                                             \
  X(cuMemPoolDestroy, cuMemPoolDestroy)                                           \
  X(cuMemPoolSetAttribute, cuMemPoolSetAttribute)                                 \
  X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)                         \
  X(cuMemCreate, cuMemCreate)                                                     \
  X(cuMemRelease, cuMemRelease)                                                   \
  X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle)                     \
  X(cuMemAddressReserve, cuMemAddressReserve)                                     \
  X(cuMemMap, cuMemMap)                                                           \
  X(cuMemUnmap, cuMemUnmap)                                                       \
  X(cuArrayCreate, cuArrayCreate_v2)                                              \
  X(cuArray3DCreate, cuArray3DCreate_v2)                                          \
  X(cuArrayDestroy, cuArrayDestroy)                                               \
  X(cuMipmappedArrayCreate, cuMipmappedArrayCreate)                               \
  X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy)                             \
  X(cuTexRefSetMipmapLevelClamp, cuTexRefSetMipmapLevelClamp)                     \
  X(cuTexRefGetMipmapLevelClamp, cuTexRefGetMipmapLevelClamp)                     \
  X(cuCtxSynchronize, cuCtxSynchronize)                                           \
  X(cuStreamCreate, cuStreamCreate)                                               \
  X(cuLaunchGridAsync, cuLaunchGridAsync)                                         \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags)                              \
  X(cuMemcpyHtoD, cuMemcpyHtoD_v2)                                                \
  X(cuMemcpyDtoH, cuMemcpyDtoH_v2)                                                \
  X(cuIpcGetMemHandle, cuIpcGetMemHandle)                                         \
  X(cuCheckpointProcessGetState, cuCheckpointProcessGetState)                     \
  X(cuCheckpointProcessGetRestoreThreadId, cuCheckpointProcessGetRestoreThreadId) \
  X(cuCheckpointProcessLock, cuCheckpointProcessLock)                             \
  X(cuCheckpointProcessCheckpoint, cuCheckpointProcessCheckpoint)                 \
  X(cuCheckpointProcessRestore, cuCheckpointProcessRestore)                       \
  X(cuCheckpointProcessUnlock, cuCheckpointProcessUnlock)
#define CLIENT_STREAM_FUNCTIONS(X)                        \
  X(cuMemAllocAsync, cuMemAllocAsync)                     \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync)     \
  X(cuMemFreeAsync, cuMemFreeAsync)                       \
  X(cuStreamSynchronize, cuStreamSynchronize)             \
  X(cuLaunchKernel, cuLaunchKernel)                       \
  X(cuLaunchKernelEx, cuLaunchKernelEx)                   \
  X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel) \
  X(cuStreamBeginCapture, cuStreamBeginCapture_v2)        \
  X(cuStreamEndCapture, cuStreamEndCapture)               \
  X(cuGraphLaunch, cuGraphLaunch)

struct Functions {
#define CLIENT_MEMBER(base, symbol) abi::call::symbol* base = nullptr;
  CLIENT_FUNCTIONS(CLIENT_MEMBER)
  CLIENT_STREAM_FUNCTIONS(CLIENT_MEMBER)
#undef CLIENT_MEMBER
};

/// Ends the program if there is no driver.
[[nodiscard]] void* driver_handle(int flags);
/// By a way of this name; those with _ptsz where there are some, if every thread has its own
/// stream.
[[nodiscard]] Functions load(const std::string& how, bool thread_stream);

/// What the fake driver has and no other, by its name.
template <typename Function>
[[nodiscard]] Function* of_fake(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(driver_handle(RTLD_NOW), name));
}

}  // namespace client

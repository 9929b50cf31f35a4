// SPDX-License-Identifier: Apache-2.0
// Compiled with NVIDIA's own headers beside gflow's declarations: what differs does not compile.
// CALLS is the list of functions in cuda/abi.h, as CHECK(name) lines.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <nvml.h>

#include <cstddef>
#include <type_traits>

#include "cuda/abi.h"
#include "cuda/array_format.h"
#include "cuda/nvml_abi.h"

namespace abi = gflow::cuda::abi;
namespace own_nvml = gflow::cuda::nvml;

template <typename T>
constexpr bool kScalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Passed the same way, and pointing to numbers of the same size where both point to numbers.
template <typename Own, typename Theirs>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<Own> || std::is_pointer_v<Theirs>) {
    if constexpr (!std::is_pointer_v<Own> || !std::is_pointer_v<Theirs>) {
      return false;
    } else {
      using To = std::remove_pointer_t<Own>;
      using TheirTo = std::remove_pointer_t<Theirs>;
      if constexpr (kScalar<To> && kScalar<TheirTo>) return sizeof(To) == sizeof(TheirTo);
      return true;
    }
  } else {
    return sizeof(Own) == sizeof(Theirs) &&
           std::is_floating_point_v<Own> == std::is_floating_point_v<Theirs>;
  }
}

template <typename Own, typename Theirs>
struct SameCall : std::false_type {};
template <typename R, typename... P, typename TheirR, typename... TheirP>
  requires(sizeof...(P) == sizeof...(TheirP))
struct SameCall<R(P...), TheirR(TheirP...)>
    : std::bool_constant<alike<R, TheirR>() && (alike<P, TheirP>() && ...)> {};

// That it can tell a difference.
static_assert(!SameCall<int(int), int(long)>::value && !SameCall<int(int), int(int, int)>::value);
static_assert(!SameCall<int(int*), int(long*)>::value && !SameCall<int(float), int(int)>::value);

#define CHECK(name) static_assert(SameCall<abi::call::name, decltype(::name)>::value, #name);
CALLS
#undef CHECK

#define SAME(own, theirs) \
  static_assert(static_cast<long long>(own) == static_cast<long long>(theirs))
SAME(abi::kSuccess, CUDA_SUCCESS);
SAME(abi::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(abi::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(abi::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(abi::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME(abi::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME(abi::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME(abi::kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
SAME(abi::kIllegalState, CUDA_ERROR_ILLEGAL_STATE);
SAME(abi::kNotFound, CUDA_ERROR_NOT_FOUND);
SAME(abi::kNotReady, CUDA_ERROR_NOT_READY);
SAME(abi::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME(abi::kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(abi::kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(abi::kCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(abi::kUnknown, CUDA_ERROR_UNKNOWN);
SAME(abi::kProcessRunning, CU_PROCESS_STATE_RUNNING);
SAME(abi::kProcessLocked, CU_PROCESS_STATE_LOCKED);
SAME(abi::kProcessCheckpointed, CU_PROCESS_STATE_CHECKPOINTED);
SAME(abi::kProcessFailed, CU_PROCESS_STATE_FAILED);
SAME(abi::kEventWithoutTime, CU_EVENT_DISABLE_TIMING);
SAME(abi::kCaptureGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(abi::kCaptureThread, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(abi::kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(abi::kCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(abi::kCaptureActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(abi::kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(abi::kPoolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(abi::kPoolReservedNow, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(abi::kPoolUsedNow, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(abi::kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(abi::kFormatUnsigned8, CU_AD_FORMAT_UNSIGNED_INT8);
SAME(abi::kFormatUnsigned16, CU_AD_FORMAT_UNSIGNED_INT16);
SAME(abi::kFormatUnsigned32, CU_AD_FORMAT_UNSIGNED_INT32);
SAME(abi::kFormatSigned8, CU_AD_FORMAT_SIGNED_INT8);
SAME(abi::kFormatSigned16, CU_AD_FORMAT_SIGNED_INT16);
SAME(abi::kFormatSigned32, CU_AD_FORMAT_SIGNED_INT32);
SAME(abi::kFormatHalf, CU_AD_FORMAT_HALF);
SAME(abi::kFormatFloat, CU_AD_FORMAT_FLOAT);
SAME(abi::kArraySparse, CUDA_ARRAY3D_SPARSE);
SAME(abi::kArrayDeferred, CUDA_ARRAY3D_DEFERRED_MAPPING);
SAME(abi::kAttributeProcessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(abi::kAttributeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(abi::kAttributeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(abi::kProcPerThreadStream, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(abi::kProcFound, CU_GET_PROC_ADDRESS_SUCCESS);
SAME(abi::kProcNotFound, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME(abi::kProcVersionNotSufficient, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

constexpr auto bits(int format) { return gflow::cuda::array_element(format, 1).bits; }
SAME(bits(CU_AD_FORMAT_UNORM_INT8X1), 8);
SAME(bits(CU_AD_FORMAT_HALF), 16);
SAME(bits(CU_AD_FORMAT_UNORM_INT16X1), 16);
SAME(bits(CU_AD_FORMAT_SNORM_INT16X1), 16);
SAME(bits(CU_AD_FORMAT_FLOAT), 32);
SAME(bits(CU_AD_FORMAT_BC1_UNORM_SRGB), 4);
SAME(bits(CU_AD_FORMAT_BC4_SNORM), 4);
SAME(bits(CU_AD_FORMAT_BC2_UNORM), 8);
SAME(bits(CU_AD_FORMAT_BC7_UNORM_SRGB), 8);
SAME(bits(CU_AD_FORMAT_NV12), 12);
SAME(bits(CU_AD_FORMAT_P016), 24);
SAME(bits(CU_AD_FORMAT_Y444_PLANAR8), 24);
SAME(bits(CU_AD_FORMAT_YUY2), 16);
SAME(bits(CU_AD_FORMAT_P210), 32);
SAME(bits(CU_AD_FORMAT_AYUV), 32);
SAME(bits(CU_AD_FORMAT_YUV444_16bit_SemiPlanar), 48);
SAME(bits(CU_AD_FORMAT_Y416), 64);

SAME(sizeof(abi::Uuid), sizeof(CUuuid));
SAME(sizeof(abi::MemLocation), sizeof(CUmemLocation));
SAME(offsetof(abi::MemLocation, id), offsetof(CUmemLocation, id));
SAME(sizeof(abi::AllocationProp), sizeof(CUmemAllocationProp));
SAME(offsetof(abi::AllocationProp, location), offsetof(CUmemAllocationProp, location));
SAME(offsetof(abi::AllocationProp, flags), offsetof(CUmemAllocationProp, allocFlags));
SAME(sizeof(abi::PoolProps), sizeof(CUmemPoolProps));
SAME(offsetof(abi::PoolProps, location), offsetof(CUmemPoolProps, location));
SAME(offsetof(abi::PoolProps, max_size), offsetof(CUmemPoolProps, maxSize));
SAME(sizeof(abi::ArrayDescriptor), sizeof(CUDA_ARRAY_DESCRIPTOR));
SAME(offsetof(abi::ArrayDescriptor, height), offsetof(CUDA_ARRAY_DESCRIPTOR, Height));
SAME(offsetof(abi::ArrayDescriptor, format), offsetof(CUDA_ARRAY_DESCRIPTOR, Format));
SAME(offsetof(abi::ArrayDescriptor, channels), offsetof(CUDA_ARRAY_DESCRIPTOR, NumChannels));
SAME(sizeof(abi::Array3dDescriptor), sizeof(CUDA_ARRAY3D_DESCRIPTOR));
SAME(offsetof(abi::Array3dDescriptor, depth), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Depth));
SAME(offsetof(abi::Array3dDescriptor, format), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Format));
SAME(offsetof(abi::Array3dDescriptor, channels), offsetof(CUDA_ARRAY3D_DESCRIPTOR, NumChannels));
SAME(offsetof(abi::Array3dDescriptor, flags), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags));
SAME(sizeof(abi::LaunchConfig), sizeof(CUlaunchConfig));
SAME(offsetof(abi::LaunchConfig, grid_z), offsetof(CUlaunchConfig, gridDimZ));
SAME(offsetof(abi::LaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
SAME(offsetof(abi::LaunchConfig, attribute_count), offsetof(CUlaunchConfig, numAttrs));
SAME(sizeof(abi::CheckpointLockArgs), sizeof(CUcheckpointLockArgs));
SAME(offsetof(abi::CheckpointLockArgs, timeout_ms), offsetof(CUcheckpointLockArgs, timeoutMs));
SAME(sizeof(abi::CheckpointCheckpointArgs), sizeof(CUcheckpointCheckpointArgs));
SAME(sizeof(abi::CheckpointUnlockArgs), sizeof(CUcheckpointUnlockArgs));
SAME(sizeof(abi::CheckpointRestoreArgs), sizeof(CUcheckpointRestoreArgs));
SAME(offsetof(abi::CheckpointRestoreArgs, gpu_pairs_count),
     offsetof(CUcheckpointRestoreArgs, gpuPairsCount));
SAME(sizeof(abi::CheckpointGpuPair), sizeof(CUcheckpointGpuPair));
SAME(offsetof(abi::CheckpointGpuPair, new_uuid), offsetof(CUcheckpointGpuPair, newUuid));
SAME(sizeof(abi::IpcMemHandle), sizeof(CUipcMemHandle));

SAME(own_nvml::kSuccess, NVML_SUCCESS);
SAME(own_nvml::kUninitialized, NVML_ERROR_UNINITIALIZED);
SAME(own_nvml::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
SAME(own_nvml::kNotSupported, NVML_ERROR_NOT_SUPPORTED);
SAME(own_nvml::kNoPermission, NVML_ERROR_NO_PERMISSION);
SAME(own_nvml::kNotFound, NVML_ERROR_NOT_FOUND);
SAME(own_nvml::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(own_nvml::kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(own_nvml::kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME(own_nvml::kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
SAME(own_nvml::kArgumentVersionMismatch, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME(own_nvml::kMemoryV2, nvmlMemory_v2);
SAME(own_nvml::kTemperatureV1, nvmlTemperature_v1);
SAME(sizeof(own_nvml::MemoryV1), sizeof(nvmlMemory_t));
SAME(offsetof(own_nvml::MemoryV1, used), offsetof(nvmlMemory_t, used));
SAME(sizeof(own_nvml::MemoryV2), sizeof(nvmlMemory_v2_t));
SAME(offsetof(own_nvml::MemoryV2, reserved), offsetof(nvmlMemory_v2_t, reserved));
SAME(offsetof(own_nvml::MemoryV2, free), offsetof(nvmlMemory_v2_t, free));
SAME(offsetof(own_nvml::MemoryV2, used), offsetof(nvmlMemory_v2_t, used));
SAME(sizeof(own_nvml::PciInfo), sizeof(nvmlPciInfo_t));
SAME(offsetof(own_nvml::PciInfo, bus_id), offsetof(nvmlPciInfo_t, busId));
SAME(sizeof(own_nvml::Utilization), sizeof(nvmlUtilization_t));
SAME(own_nvml::kMigOn, NVML_DEVICE_MIG_ENABLE);
SAME(sizeof(own_nvml::Attributes), sizeof(nvmlDeviceAttributes_t));
SAME(offsetof(own_nvml::Attributes, gpu_instance_slices),
     offsetof(nvmlDeviceAttributes_t, gpuInstanceSliceCount));
SAME(offsetof(own_nvml::Attributes, compute_instance_slices),
     offsetof(nvmlDeviceAttributes_t, computeInstanceSliceCount));
SAME(offsetof(own_nvml::Attributes, memory_mib), offsetof(nvmlDeviceAttributes_t, memorySizeMB));
SAME(sizeof(own_nvml::Process), sizeof(nvmlProcessInfo_t));
SAME(offsetof(own_nvml::Process, memory), offsetof(nvmlProcessInfo_t, usedGpuMemory));
SAME(offsetof(own_nvml::Process, gpu_instance), offsetof(nvmlProcessInfo_t, gpuInstanceId));
SAME(offsetof(own_nvml::Process, compute_instance), offsetof(nvmlProcessInfo_t, computeInstanceId));
SAME(own_nvml::kTopologySystem, NVML_TOPOLOGY_SYSTEM);
SAME(own_nvml::kTopologyHostBridge, NVML_TOPOLOGY_HOSTBRIDGE);
SAME(own_nvml::kRemoteSwitch, NVML_NVLINK_DEVICE_TYPE_SWITCH);

template <typename Own, typename Theirs>
constexpr bool kSameNvml = SameCall<std::remove_pointer_t<Own>, Theirs>::value;
static_assert(kSameNvml<own_nvml::GetMemoryV1, decltype(nvmlDeviceGetMemoryInfo)>);
static_assert(kSameNvml<own_nvml::GetMemoryV2, decltype(nvmlDeviceGetMemoryInfo_v2)>);
static_assert(kSameNvml<own_nvml::GetText, decltype(nvmlDeviceGetUUID)>);
static_assert(kSameNvml<own_nvml::GetHandle, decltype(nvmlDeviceGetHandleByIndex_v2)>);
static_assert(kSameNvml<own_nvml::GetUtilization, decltype(nvmlDeviceGetUtilizationRates)>);
static_assert(kSameNvml<own_nvml::GetProcesses, decltype(nvmlDeviceGetComputeRunningProcesses_v3)>);
static_assert(kSameNvml<own_nvml::GetTwoNumbers, decltype(nvmlDeviceGetMigMode)>);
static_assert(kSameNvml<own_nvml::GetNumber, decltype(nvmlDeviceGetMaxMigDeviceCount)>);
static_assert(kSameNvml<own_nvml::GetSlice, decltype(nvmlDeviceGetMigDeviceHandleByIndex)>);
static_assert(kSameNvml<own_nvml::GetNumber, decltype(nvmlDeviceIsMigDeviceHandle)>);
static_assert(
    kSameNvml<own_nvml::GetParent, decltype(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)>);
static_assert(kSameNvml<own_nvml::GetNumber, decltype(nvmlDeviceGetGpuInstanceId)>);
static_assert(kSameNvml<own_nvml::GetNumber, decltype(nvmlDeviceGetComputeInstanceId)>);
static_assert(kSameNvml<own_nvml::GetAttributes, decltype(nvmlDeviceGetAttributes_v2)>);

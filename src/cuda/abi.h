// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the CUDA driver's binary interface that gflow and its tests use, declared here from
/// its documented layout so that no vendor header is needed to build.
/// tests/contract/test_cuda_abi.py compares it with NVIDIA's own.
namespace gflow::cuda::abi {

// NOLINTBEGIN(readability-identifier-naming): constants of a C interface
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureImplicit = 906,
  kUnknown = 999,
};
// NOLINTEND(readability-identifier-naming)

using Device = int;
using DevicePtr = std::uint64_t;
using DevicePtrV1 = std::uint32_t;
using MemHandle = std::uint64_t;
using Context = struct ContextOf*;
using Stream = struct StreamOf*;
using Event = struct EventOf*;
using Function = struct FunctionOf*;
using Module = struct ModuleOf*;
using Graph = struct GraphOf*;
using GraphExec = struct GraphExecOf*;
using MemPool = struct MemPoolOf*;
using Array = struct ArrayOf*;
using MipmappedArray = struct MipmappedArrayOf*;
using TextureReference = struct TextureReferenceOf*;
using ProcAddressStatus = int;

struct Uuid {
  unsigned char bytes[16];
};
static_assert(sizeof(Uuid) == 16);

constexpr int kLocationDevice = 1;
struct MemLocation {
  int type;
  int id;  ///< of the device, where the type is kLocationDevice
};
static_assert(sizeof(MemLocation) == 8);

struct AllocationProp {
  int type;
  int requested_handle_types;
  MemLocation location;
  void* handle_meta_data;
  unsigned char flags[8];
};
static_assert(sizeof(AllocationProp) == 32 && offsetof(AllocationProp, location) == 8);

struct PoolProps {
  int type;
  int handle_types;
  MemLocation location;
  void* security_attributes;
  std::size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(PoolProps) == 88 && offsetof(PoolProps, location) == 8);

constexpr int kPoolReleaseThreshold = 4;
constexpr int kPoolReservedNow = 5;
constexpr int kPoolUsedNow = 7;
constexpr int kAllocationPinned = 1;

struct ArrayDescriptor {
  std::size_t width;
  std::size_t height;
  int format;
  unsigned int channels;
};
static_assert(sizeof(ArrayDescriptor) == 24);

struct Array3dDescriptor {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
  int format;
  unsigned int channels;
  unsigned int flags;
};
static_assert(sizeof(Array3dDescriptor) == 40);

// Formats of array elements by the bytes of one channel.
constexpr int kFormatUnsigned8 = 0x01;
constexpr int kFormatUnsigned16 = 0x02;
constexpr int kFormatUnsigned32 = 0x03;
constexpr int kFormatSigned8 = 0x08;
constexpr int kFormatSigned16 = 0x09;
constexpr int kFormatSigned32 = 0x0a;
constexpr int kFormatHalf = 0x10;
constexpr int kFormatFloat = 0x20;
// Arrays without memory of their own.
constexpr unsigned int kArraySparse = 0x40;
constexpr unsigned int kArrayDeferred = 0x80;

// Attributes of a device.
constexpr int kAttributeProcessors = 16;
constexpr int kAttributeMajor = 75;
constexpr int kAttributeMinor = 76;

struct LaunchConfig {
  unsigned int grid_x;
  unsigned int grid_y;
  unsigned int grid_z;
  unsigned int block_x;
  unsigned int block_y;
  unsigned int block_z;
  unsigned int shared_bytes;
  Stream stream;
  void* attributes;
  unsigned int attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

constexpr unsigned int kEventWithoutTime = 2;  ///< flag of cuEventCreate
// What a thread may do while one captures: all that others forbid, or what is safe.
constexpr int kCaptureGlobal = 0;
constexpr int kCaptureThread = 1;
constexpr int kCaptureRelaxed = 2;
// Whether a stream captures what is put into it.
constexpr int kCaptureNone = 0;
constexpr int kCaptureActive = 1;

// How a process stands whose memory of GPUs may be taken to host memory (cuCheckpointProcess*).
using ProcessState = int;
constexpr ProcessState kProcessRunning = 0;
constexpr ProcessState kProcessLocked = 1;  ///< its calls of the driver wait
constexpr ProcessState kProcessCheckpointed = 2;
constexpr ProcessState kProcessFailed = 3;  ///< what it had of GPUs is lost

struct CheckpointLockArgs {
  unsigned int timeout_ms;  ///< 0: none
  unsigned int reserved0;
  std::uint64_t reserved1[7];
};
static_assert(sizeof(CheckpointLockArgs) == 64);

struct CheckpointCheckpointArgs {
  std::uint64_t reserved[8];
};
struct CheckpointUnlockArgs {
  std::uint64_t reserved[8];
};

struct CheckpointGpuPair {
  Uuid old_uuid;
  Uuid new_uuid;
};

struct CheckpointRestoreArgs {
  CheckpointGpuPair* gpu_pairs;
  unsigned int gpu_pairs_count;
  char reserved[44];
  std::uint64_t reserved1;
};
static_assert(sizeof(CheckpointRestoreArgs) == 64 &&
              offsetof(CheckpointRestoreArgs, gpu_pairs_count) == 8);

struct IpcMemHandle {
  char reserved[64];
};

constexpr std::uint64_t kProcPerThreadStream = 2;  ///< flag of cuGetProcAddress
constexpr ProcAddressStatus kProcFound = 0;
constexpr ProcAddressStatus kProcNotFound = 1;
constexpr ProcAddressStatus kProcVersionNotSufficient = 2;

// Functions by the name the driver exports them under: `call::cuMemAlloc_v2` is the type of one.
// What takes a stream exists a second time, as NAME_ptsz, for programs whose default stream is the
// thread's.
namespace call {

// NOLINTBEGIN(readability-identifier-naming): names of a C interface
using cuInit = Result(unsigned int flags);
using cuGetErrorName = Result(Result error, const char** text);
using cuGetErrorString = Result(Result error, const char** text);
using cuDriverGetVersion = Result(int* version);
using cuGetProcAddress = Result(const char* symbol,
                                void** function,
                                int version,
                                std::uint64_t flags);
using cuGetProcAddress_v2 = Result(const char* symbol,
                                   void** function,
                                   int version,
                                   std::uint64_t flags,
                                   ProcAddressStatus* status);

using cuDeviceGetCount = Result(int* count);
using cuDeviceGet = Result(Device* device, int ordinal);
using cuDeviceGetName = Result(char* name, int size, Device device);
using cuDeviceGetUuid = Result(Uuid* uuid, Device device);
using cuDeviceGetUuid_v2 = Result(Uuid* uuid, Device device);
using cuDeviceGetAttribute = Result(int* value, int attribute, Device device);
using cuDeviceComputeCapability = Result(int* major, int* minor, Device device);
using cuDeviceCanAccessPeer = Result(int* can, Device device, Device peer);
using cuDeviceTotalMem_v2 = Result(std::size_t* bytes, Device device);

using cuCtxCreate_v2 = Result(Context* context, unsigned int flags, Device device);
using cuCtxDestroy_v2 = Result(Context context);
using cuCtxSetCurrent = Result(Context context);
using cuCtxGetCurrent = Result(Context* context);
using cuCtxPushCurrent_v2 = Result(Context context);
using cuCtxPopCurrent_v2 = Result(Context* context);
using cuCtxGetDevice = Result(Device* device);
using cuCtxSynchronize = Result();
using cuCtxSynchronize_v2 = Result(Context context);
using cuDevicePrimaryCtxRetain = Result(Context* context, Device device);
using cuDevicePrimaryCtxRelease_v2 = Result(Device device);
using cuDevicePrimaryCtxReset_v2 = Result(Device device);
using cuDevicePrimaryCtxGetState = Result(Device device, unsigned int* flags, int* active);

using cuMemGetInfo_v2 = Result(std::size_t* free, std::size_t* total);
using cuMemAlloc = Result(DevicePtrV1* pointer, unsigned int bytes);
using cuMemAlloc_v2 = Result(DevicePtr* pointer, std::size_t bytes);
using cuMemAllocPitch_v2 = Result(DevicePtr* pointer,
                                  std::size_t* pitch,
                                  std::size_t width,
                                  std::size_t height,
                                  unsigned int element);
using cuMemAllocManaged = Result(DevicePtr* pointer, std::size_t bytes, unsigned int flags);
using cuMemFree = Result(DevicePtrV1 pointer);
using cuMemFree_v2 = Result(DevicePtr pointer);
using cuMemHostAlloc = Result(void** pointer, std::size_t bytes, unsigned int flags);
using cuMemFreeHost = Result(void* pointer);

using cuIpcGetMemHandle = Result(IpcMemHandle* handle, DevicePtr pointer);

using cuMemcpyHtoD_v2 = Result(DevicePtr to, const void* from, std::size_t bytes);
using cuMemcpyDtoH_v2 = Result(void* to, DevicePtr from, std::size_t bytes);
using cuMemcpyHtoDAsync_v2 = Result(DevicePtr to,
                                    const void* from,
                                    std::size_t bytes,
                                    Stream stream);
using cuMemcpyDtoHAsync_v2 = Result(void* to, DevicePtr from, std::size_t bytes, Stream stream);

using cuMemAllocAsync = Result(DevicePtr* pointer, std::size_t bytes, Stream stream);
using cuMemAllocFromPoolAsync = Result(DevicePtr* pointer,
                                       std::size_t bytes,
                                       MemPool pool,
                                       Stream stream);
using cuMemFreeAsync = Result(DevicePtr pointer, Stream stream);
using cuDeviceGetDefaultMemPool = Result(MemPool* pool, Device device);
using cuDeviceGetMemPool = Result(MemPool* pool, Device device);
using cuDeviceSetMemPool = Result(Device device, MemPool pool);
using cuMemPoolCreate = Result(MemPool* pool, const PoolProps* props);
using cuMemPoolDestroy = Result(MemPool pool);
using cuMemPoolTrimTo = Result(MemPool pool, std::size_t keep);
using cuMemPoolSetAttribute = Result(MemPool pool, int attribute, void* value);
using cuMemPoolGetAttribute = Result(MemPool pool, int attribute, void* value);

using cuMemCreate = Result(MemHandle* handle,
                           std::size_t size,
                           const AllocationProp* prop,
                           unsigned long long flags);
using cuMemRelease = Result(MemHandle handle);
using cuMemRetainAllocationHandle = Result(MemHandle* handle, void* address);
using cuMemAddressReserve = Result(DevicePtr* pointer,
                                   std::size_t size,
                                   std::size_t alignment,
                                   DevicePtr address,
                                   unsigned long long flags);
using cuMemAddressFree = Result(DevicePtr pointer, std::size_t size);
using cuMemMap = Result(DevicePtr pointer,
                        std::size_t size,
                        std::size_t offset,
                        MemHandle handle,
                        unsigned long long flags);
using cuMemUnmap = Result(DevicePtr pointer, std::size_t size);

using cuArrayCreate_v2 = Result(Array* array, const ArrayDescriptor* descriptor);
using cuArray3DCreate_v2 = Result(Array* array, const Array3dDescriptor* descriptor);
using cuArrayDestroy = Result(Array array);
using cuMipmappedArrayCreate = Result(MipmappedArray* array,
                                      const Array3dDescriptor* descriptor,
                                      unsigned int levels);
using cuMipmappedArrayDestroy = Result(MipmappedArray array);
using cuTexRefSetMipmapLevelClamp = Result(TextureReference texture, float least, float most);
using cuTexRefGetMipmapLevelClamp = Result(float* least, float* most, TextureReference texture);

using cuStreamCreate = Result(Stream* stream, unsigned int flags);
using cuStreamDestroy_v2 = Result(Stream stream);
using cuStreamSynchronize = Result(Stream stream);
using cuStreamQuery = Result(Stream stream);
using cuStreamGetDevice = Result(Stream stream, Device* device);
using cuEventCreate = Result(Event* event, unsigned int flags);
using cuEventDestroy_v2 = Result(Event event);
using cuEventRecord = Result(Event event, Stream stream);
using cuEventQuery = Result(Event event);
using cuEventSynchronize = Result(Event event);
using cuEventElapsedTime = Result(float* milliseconds, Event start, Event end);

using cuModuleLoadData = Result(Module* module, const void* image);
using cuModuleUnload = Result(Module module);
using cuFuncSetAttribute = Result(Function function, int attribute, int value);
using cuModuleGetFunction = Result(Function* function, Module module, const char* name);
using cuLaunchKernel = Result(Function function,
                              unsigned int grid_x,
                              unsigned int grid_y,
                              unsigned int grid_z,
                              unsigned int block_x,
                              unsigned int block_y,
                              unsigned int block_z,
                              unsigned int shared_bytes,
                              Stream stream,
                              void** parameters,
                              void** extra);
using cuLaunchCooperativeKernel = Result(Function function,
                                         unsigned int grid_x,
                                         unsigned int grid_y,
                                         unsigned int grid_z,
                                         unsigned int block_x,
                                         unsigned int block_y,
                                         unsigned int block_z,
                                         unsigned int shared_bytes,
                                         Stream stream,
                                         void** parameters);
using cuLaunchKernelEx = Result(const LaunchConfig* config,
                                Function function,
                                void** parameters,
                                void** extra);
using cuLaunch = Result(Function function);
using cuLaunchGrid = Result(Function function, int width, int height);
using cuLaunchGridAsync = Result(Function function, int width, int height, Stream stream);

using cuThreadExchangeStreamCaptureMode = Result(int* mode);
using cuStreamBeginCapture_v2 = Result(Stream stream, int mode);
using cuStreamEndCapture = Result(Stream stream, Graph* graph);
using cuStreamIsCapturing = Result(Stream stream, int* status);
using cuGraphInstantiateWithFlags = Result(GraphExec* executable,
                                           Graph graph,
                                           unsigned long long flags);
using cuGraphLaunch = Result(GraphExec executable, Stream stream);
using cuGraphExecDestroy = Result(GraphExec executable);
using cuGraphDestroy = Result(Graph graph);

using cuCheckpointProcessGetRestoreThreadId = Result(int pid, int* thread);
using cuCheckpointProcessGetState = Result(int pid, ProcessState* state);
using cuCheckpointProcessLock = Result(int pid, CheckpointLockArgs* args);
using cuCheckpointProcessCheckpoint = Result(int pid, CheckpointCheckpointArgs* args);
using cuCheckpointProcessRestore = Result(int pid, CheckpointRestoreArgs* args);
using cuCheckpointProcessUnlock = Result(int pid, CheckpointUnlockArgs* args);
// NOLINTEND(readability-identifier-naming)

}  // namespace call
}  // namespace gflow::cuda::abi

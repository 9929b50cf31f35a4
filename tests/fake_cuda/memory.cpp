// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "cuda/array_format.h"
#include "process.h"

// Memory and arrays of a context.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace {

constexpr std::uint64_t kPitch = 512;

abi::Result get_block(std::uint64_t bytes, abi::DevicePtr* address) {
  const abi::Context context = current();
  if (context == nullptr) return abi::kInvalidContext;
  if (bytes == 0) return abi::kInvalidValue;
  const Guard guard(Process::get().lock);
  const std::uint64_t whole = (bytes + 511) / 512 * 512;
  if (whole < bytes || !machine()->take(context->device, whole)) return abi::kOutOfMemory;
  *address = Process::get().new_address(whole);
  Process::get().blocks[*address] = {context->device, whole, context};
  return abi::kSuccess;
}

abi::Result free_block(abi::DevicePtr address) {
  const Guard guard(Process::get().lock);
  const auto found = Process::get().blocks.find(address);
  if (found == Process::get().blocks.end()) return abi::kInvalidValue;
  machine()->give_back(found->second.device, found->second.bytes);
  Process::get().blocks.erase(found);
  return abi::kSuccess;
}

std::uint64_t bytes_of(std::uint64_t width,
                       std::uint64_t height,
                       std::uint64_t depth,
                       const gflow::cuda::ArrayElement& element) {
  const std::uint64_t block = element.in_blocks;
  const auto whole = [block](std::uint64_t length) { return (length + block - 1) / block * block; };
  return whole(width) * whole(std::max<std::uint64_t>(height, 1)) *
         std::max<std::uint64_t>(depth, 1) * element.bits / 8;
}

/// The last that was set, of any texture.
struct Clamp {
  abi::TextureReference texture = nullptr;
  float least = 0;
  float most = 0;
};
Clamp& clamp() {
  static Clamp kept;
  return kept;
}

template <typename Handle>
abi::Result get_array(std::uint64_t bytes, Handle* array) {
  abi::DevicePtr address = 0;
  const abi::Result result = get_block(bytes, &address);
  if (result == abi::kSuccess) *array = reinterpret_cast<Handle>(address);
  return result;
}

}  // namespace

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuMemGetInfo_v2);
FAKE_DECLARE(cuMemAlloc_v2);
FAKE_DECLARE(cuMemAllocPitch_v2);
FAKE_DECLARE(cuMemAllocManaged);
FAKE_DECLARE(cuMemFree_v2);
FAKE_DECLARE(cuMemHostAlloc);
FAKE_DECLARE(cuMemFreeHost);
FAKE_DECLARE(cuIpcGetMemHandle);
FAKE_DECLARE(cuArrayCreate_v2);
FAKE_DECLARE(cuArray3DCreate_v2);
FAKE_DECLARE(cuArrayDestroy);
FAKE_DECLARE(cuMipmappedArrayCreate);
FAKE_DECLARE(cuMipmappedArrayDestroy);
FAKE_DECLARE(cuTexRefSetMipmapLevelClamp);
FAKE_DECLARE(cuTexRefGetMipmapLevelClamp);

abi::Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const Call call(__func__);
  const abi::Context context = current();
  if (context == nullptr) return abi::kInvalidContext;
  const std::size_t gpu = machine()->gpu_of(context->device);
  *total = machine()->devices[gpu].bytes;
  *free = *total - machine()->used(gpu);
  return abi::kSuccess;
}

abi::Result cuMemAlloc_v2(abi::DevicePtr* pointer, std::size_t bytes) {
  const Call call(__func__);
  return get_block(bytes, pointer);
}

abi::Result cuMemAllocPitch_v2(abi::DevicePtr* pointer,
                               std::size_t* pitch,
                               std::size_t width,
                               std::size_t height,
                               unsigned int) {
  const Call call(__func__);
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return get_block(*pitch * height, pointer);
}

abi::Result cuMemAllocManaged(abi::DevicePtr* pointer, std::size_t bytes, unsigned int) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  const abi::Result result = get_block(bytes, pointer);
  if (result == abi::kSuccess) Process::get().blocks.at(*pointer).is_shared = true;
  return result;
}

/// Of a pool, too.
abi::Result cuMemFree_v2(abi::DevicePtr pointer) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  const auto of_pool = Process::get().pool_blocks.find(pointer);
  if (of_pool == Process::get().pool_blocks.end()) return free_block(pointer);
  of_pool->second.pool->used -= of_pool->second.bytes;
  Process::get().pool_blocks.erase(of_pool);
  release_free_pools();
  return abi::kSuccess;
}

abi::Result cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned int) {
  const Call call(__func__);
  *pointer = std::malloc(bytes);
  return *pointer == nullptr ? abi::kOutOfMemory : abi::kSuccess;
}

abi::Result cuMemFreeHost(void* pointer) {
  const Call call(__func__);
  std::free(pointer);
  return abi::kSuccess;
}

/// From then on another process may have this memory, too.
abi::Result cuIpcGetMemHandle(abi::IpcMemHandle* handle, abi::DevicePtr pointer) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  const auto block = Process::get().blocks.find(pointer);
  if (block == Process::get().blocks.end()) return abi::kInvalidValue;
  block->second.is_shared = true;
  *handle = {};
  return abi::kSuccess;
}

abi::Result cuArrayCreate_v2(abi::Array* array, const abi::ArrayDescriptor* descriptor) {
  const Call call(__func__);
  const auto element = gflow::cuda::array_element(descriptor->format, descriptor->channels);
  return get_array(bytes_of(descriptor->width, descriptor->height, 1, element), array);
}

abi::Result cuArray3DCreate_v2(abi::Array* array, const abi::Array3dDescriptor* descriptor) {
  const Call call(__func__);
  const auto element = gflow::cuda::array_element(descriptor->format, descriptor->channels);
  return get_array(bytes_of(descriptor->width, descriptor->height, descriptor->depth, element),
                   array);
}

abi::Result cuArrayDestroy(abi::Array array) {
  const Call call(__func__);
  return free_block(reinterpret_cast<abi::DevicePtr>(array));
}

abi::Result cuMipmappedArrayCreate(abi::MipmappedArray* array,
                                   const abi::Array3dDescriptor* descriptor,
                                   unsigned int levels) {
  const Call call(__func__);
  const auto element = gflow::cuda::array_element(descriptor->format, descriptor->channels);
  std::uint64_t bytes = 0;
  for (unsigned int level = 0; level < levels; ++level) {
    bytes += bytes_of(std::max<std::size_t>(descriptor->width >> level, 1),
                      descriptor->height >> level,
                      descriptor->depth >> level,
                      element);
  }
  return get_array(bytes, array);
}

abi::Result cuMipmappedArrayDestroy(abi::MipmappedArray array) {
  const Call call(__func__);
  return free_block(reinterpret_cast<abi::DevicePtr>(array));
}

abi::Result cuTexRefSetMipmapLevelClamp(abi::TextureReference texture, float least, float most) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  clamp() = {texture, least, most};
  return abi::kSuccess;
}

abi::Result cuTexRefGetMipmapLevelClamp(float* least, float* most, abi::TextureReference texture) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  if (clamp().texture != texture) return abi::kInvalidHandle;
  *least = clamp().least;
  *most = clamp().most;
  return abi::kSuccess;
}

}  // extern "C"

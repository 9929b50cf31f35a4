// SPDX-License-Identifier: Apache-2.0
#include "process.h"

// What programs ask before they do anything, and copies, which are done at once.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuGetErrorName);
FAKE_DECLARE(cuGetErrorString);
FAKE_DECLARE(cuDeviceGetAttribute);
FAKE_DECLARE(cuDeviceComputeCapability);
FAKE_DECLARE(cuDeviceCanAccessPeer);
FAKE_DECLARE(cuMemcpyHtoD_v2);
FAKE_DECLARE(cuMemcpyDtoH_v2);
FAKE_DECLARE(cuMemcpyHtoDAsync_v2);
FAKE_DECLARE(cuMemcpyDtoHAsync_v2);

abi::Result cuGetErrorName(abi::Result error, const char** text) {
  const Call call(__func__);
  *text = error == abi::kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return abi::kSuccess;
}

abi::Result cuGetErrorString(abi::Result error, const char** text) {
  const Call call(__func__);
  *text = error == abi::kOutOfMemory ? "out of memory" : "an error";
  return abi::kSuccess;
}

/// That of an H100 where it matters to programs, else 1.
abi::Result cuDeviceGetAttribute(int* value, int attribute, abi::Device) {
  const Call call(__func__);
  switch (attribute) {
    case abi::kAttributeProcessors:
      *value = 132;
      return abi::kSuccess;
    case abi::kAttributeMajor:
      *value = 9;
      return abi::kSuccess;
    case abi::kAttributeMinor:
      *value = 0;
      return abi::kSuccess;
    default:
      *value = 1;
      return abi::kSuccess;
  }
}

abi::Result cuDeviceComputeCapability(int* major, int* minor, abi::Device) {
  const Call call(__func__);
  *major = 9;
  *minor = 0;
  return abi::kSuccess;
}

abi::Result cuDeviceCanAccessPeer(int* can, abi::Device, abi::Device) {
  const Call call(__func__);
  *can = 0;
  return abi::kSuccess;
}

abi::Result cuMemcpyHtoD_v2(abi::DevicePtr to, const void* from, std::size_t bytes) {
  const Call call(__func__);
  write_device(to, from, bytes);
  return abi::kSuccess;
}

abi::Result cuMemcpyDtoH_v2(void* to, abi::DevicePtr from, std::size_t bytes) {
  const Call call(__func__);
  read_device(from, to, bytes);
  return abi::kSuccess;
}

abi::Result cuMemcpyHtoDAsync_v2(abi::DevicePtr to,
                                 const void* from,
                                 std::size_t bytes,
                                 abi::Stream) {
  const Call call(__func__);
  write_device(to, from, bytes);
  return abi::kSuccess;
}

abi::Result cuMemcpyDtoHAsync_v2(void* to, abi::DevicePtr from, std::size_t bytes, abi::Stream) {
  const Call call(__func__);
  read_device(from, to, bytes);
  return abi::kSuccess;
}

}  // extern "C"

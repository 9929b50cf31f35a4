// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of NVML's binary interface that gflow uses, declared here from its documented layout so
/// that no vendor header is needed to build.
namespace gflow::cuda::nvml {

using Handle = void*;

// NOLINTBEGIN(readability-identifier-naming): constants of a C interface
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kInsufficientPower = 8,
  kDriverNotLoaded = 9,
  kIrqIssue = 11,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kVersionMismatch = 18,  ///< the library is of another version than the loaded kernel module
  kInUse = 19,            ///< by a process
  kInsufficientResources = 23,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};
// NOLINTEND(readability-identifier-naming)

/// A struct says its size and version in its first word.
template <typename Struct>
constexpr std::uint32_t version_word(std::uint32_t version) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | version << 24;
}

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  char bus_id[32];  ///< "00000000:3B:00.0"
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct Utilization {
  std::uint32_t gpu;  ///< percent
  std::uint32_t memory;
};
static_assert(sizeof(Utilization) == 8);

struct MemoryV1 {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;  ///< with what the driver reserves
};
static_assert(sizeof(MemoryV1) == 24);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;  ///< without what the driver reserves
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, used) == 32);
constexpr std::uint32_t kMemoryV2 = version_word<MemoryV2>(2);
static_assert(kMemoryV2 == 0x02000028);

struct TemperatureV1 {
  std::uint32_t version;
  std::uint32_t sensor;
  std::int32_t celsius;
};
constexpr std::uint32_t kTemperatureV1 = version_word<TemperatureV1>(1);
static_assert(kTemperatureV1 == 0x0100000c);

/// A process entry. Entries are 16, 24 or 32 bytes apart: those of 16 end before the instances.
struct Process {
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint32_t gpu_instance;  ///< kNoInstance where there is none
  std::uint32_t compute_instance;
};
static_assert(sizeof(Process) == 24 && offsetof(Process, memory) == 8);
constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};
constexpr std::uint32_t kNoInstance = ~std::uint32_t{0};

/// How large a MIG device is.
struct Attributes {
  std::uint32_t multiprocessors;
  std::uint32_t copy_engines;
  std::uint32_t decoders;
  std::uint32_t encoders;
  std::uint32_t jpeg_engines;
  std::uint32_t optical_flow_engines;
  std::uint32_t gpu_instance_slices;
  std::uint32_t compute_instance_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40 && offsetof(Attributes, memory_mib) == 32);

/// Of a GPU, some memory slices in a row.
struct InstancePlacement {
  std::uint32_t start;
  std::uint32_t size;
};
static_assert(sizeof(InstancePlacement) == 8);

/// What a GPU instance of a profile is.
struct GpuInstanceProfile {
  std::uint32_t version;
  std::uint32_t id;
  std::uint32_t is_p2p_supported;
  std::uint32_t slices;     ///< compute slices
  std::uint32_t instances;  ///< of them at once
  std::uint32_t multiprocessors;
  std::uint32_t copy_engines;
  std::uint32_t decoders;
  std::uint32_t encoders;
  std::uint32_t jpeg_engines;
  std::uint32_t optical_flow_engines;
  std::uint64_t memory_mib;
  char name[96];  ///< "MIG 1g.10gb"
};
static_assert(sizeof(GpuInstanceProfile) == 152 && offsetof(GpuInstanceProfile, name) == 56);
constexpr std::uint32_t kGpuInstanceProfileV2 = version_word<GpuInstanceProfile>(2);

struct GpuInstanceInfo {
  Handle device;
  std::uint32_t id;
  std::uint32_t profile;  ///< GpuInstanceProfile::id
  InstancePlacement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24);

struct ComputeInstanceProfile {
  std::uint32_t id;
  std::uint32_t slices;
  std::uint32_t instances;
  std::uint32_t multiprocessors;
  std::uint32_t shared_copy_engines;
  std::uint32_t shared_decoders;
  std::uint32_t shared_encoders;
  std::uint32_t shared_jpeg_engines;
  std::uint32_t shared_optical_flow_engines;
};
static_assert(sizeof(ComputeInstanceProfile) == 36);

struct ComputeInstanceInfo {
  Handle device;
  Handle gpu_instance;
  std::uint32_t id;
  std::uint32_t profile;  ///< ComputeInstanceProfile::id
  InstancePlacement placement;
};
static_assert(sizeof(ComputeInstanceInfo) == 32);
constexpr std::uint32_t kSharedEngines = 0;

// How near two devices are on the PCIe tree.
constexpr int kTopologyInternal = 0;
constexpr int kTopologySingle = 10;
constexpr int kTopologyMultiple = 20;
constexpr int kTopologyHostBridge = 30;
constexpr int kTopologyNode = 40;
constexpr int kTopologySystem = 50;
// What is at the other end of an NVLink.
constexpr std::uint32_t kRemoteGpu = 0;
constexpr std::uint32_t kRemoteProcessor = 1;
constexpr std::uint32_t kRemoteSwitch = 2;
constexpr std::uint32_t kRemoteUnknown = 255;
constexpr std::uint32_t kFeatureEnabled = 1;

constexpr std::uint32_t kTemperatureGpu = 0;
constexpr std::uint32_t kMigOn = 1;
constexpr std::size_t kNameSize = 96;
constexpr std::size_t kUuidSize = 96;
constexpr std::size_t kVersionSize = 80;

using Init = Return (*)();
using SystemText = Return (*)(char* text, std::uint32_t size);
using ErrorString = const char* (*)(Return code);
using GetCount = Return (*)(std::uint32_t* count);
using GetHandle = Return (*)(std::uint32_t index, Handle* device);
using GetText = Return (*)(Handle device, char* text, std::uint32_t size);
using GetPci = Return (*)(Handle device, PciInfo* pci);
using GetMemoryV1 = Return (*)(Handle device, MemoryV1* memory);
using GetMemoryV2 = Return (*)(Handle device, MemoryV2* memory);
using GetUtilization = Return (*)(Handle device, Utilization* utilization);
using GetTemperature = Return (*)(Handle device, std::uint32_t sensor, std::uint32_t* celsius);
using GetTemperatureV = Return (*)(Handle device, TemperatureV1* temperature);
using GetNumber = Return (*)(Handle device, std::uint32_t* number);
using GetTwoNumbers = Return (*)(Handle device, std::uint32_t* current, std::uint32_t* pending);
using GetTopology = Return (*)(Handle device, Handle other, int* level);
using GetLinkNumber = Return (*)(Handle device, std::uint32_t link, std::uint32_t* number);
using GetSlice = Return (*)(Handle device, std::uint32_t index, Handle* slice);
using GetParent = Return (*)(Handle slice, Handle* device);
using GetAttributes = Return (*)(Handle slice, Attributes* attributes);
using GetLinkPci = Return (*)(Handle device, std::uint32_t link, PciInfo* pci);
using GetByText = Return (*)(const char* text, Handle* device);
using GetInstanceProfile = Return (*)(Handle device,
                                      std::uint32_t number,
                                      GpuInstanceProfile* profile);
using GetPlacements = Return (*)(Handle device,
                                 std::uint32_t profile,
                                 InstancePlacement* placements,
                                 std::uint32_t* count);
using GetInstances = Return (*)(Handle of,
                                std::uint32_t profile,
                                Handle* instances,
                                std::uint32_t* count);
using GetInstanceInfo = Return (*)(Handle instance, GpuInstanceInfo* info);
using GetComputeProfile = Return (*)(Handle instance,
                                     std::uint32_t number,
                                     std::uint32_t engines,
                                     ComputeInstanceProfile* profile);
using GetComputeInfo = Return (*)(Handle instance, ComputeInstanceInfo* info);
using CreateInstance = Return (*)(Handle device,
                                  std::uint32_t profile,
                                  const InstancePlacement* placement,
                                  Handle* instance);
using CreateCompute = Return (*)(Handle instance, std::uint32_t profile, Handle* compute);
using DestroyInstance = Return (*)(Handle instance);
using GetProcesses = Return (*)(Handle device, std::uint32_t* count, void* entries);

}  // namespace gflow::cuda::nvml

// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "process.h"

// cuGetProcAddress: by base name, the version of CUDA the caller was written for, and a flag.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

extern "C" {
#define FAKE_ROW(name, version, symbol) abi::call::symbol symbol;
#define FAKE_TSZ(name, version, symbol) abi::call::symbol symbol, symbol##_ptsz;
#include "lookup_table.h"
#undef FAKE_ROW
#undef FAKE_TSZ
}

namespace {

struct Row {
  std::string_view name;
  int version;
  void* function;
  void* thread_stream;  ///< null if it takes no stream
};

const Row kRows[] = {
#define FAKE_ROW(name, version, symbol) {#name, version, reinterpret_cast<void*>(&symbol), nullptr},
#define FAKE_TSZ(name, version, symbol) \
  {#name, version, reinterpret_cast<void*>(&symbol), reinterpret_cast<void*>(&symbol##_ptsz)},
#include "lookup_table.h"
#undef FAKE_ROW
#undef FAKE_TSZ
};

abi::Result find(const char* symbol, void** function, int version, std::uint64_t flags) {
  const int most = Machine::get() == nullptr ? 12090 : Machine::get()->driver_version;
  const Row* best = nullptr;
  for (const Row& row : kRows) {
    if (row.name != symbol || row.version > version || row.version > most) continue;
    if (best == nullptr || row.version > best->version) best = &row;
  }
  *function = nullptr;
  if (best == nullptr) return abi::kNotFound;
  const bool per_thread = (flags & abi::kProcPerThreadStream) != 0;
  *function = per_thread && best->thread_stream != nullptr ? best->thread_stream : best->function;
  return abi::kSuccess;
}

}  // namespace

FAKE_EXPORT abi::Result cuGetProcAddress(const char* symbol,
                                         void** function,
                                         int version,
                                         std::uint64_t flags) {
  const Call call(__func__);
  return find(symbol, function, version, flags);
}

FAKE_EXPORT abi::Result cuGetProcAddress_v2(const char* symbol,
                                            void** function,
                                            int version,
                                            std::uint64_t flags,
                                            abi::ProcAddressStatus* status) {
  const Call call(__func__);
  const abi::Result result = find(symbol, function, version, flags);
  if (status != nullptr) {
    *status = result == abi::kSuccess ? abi::kProcFound : abi::kProcNotFound;
  }
  return abi::kSuccess == result ? result : abi::kNotFound;
}

// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "interpose/holdings.h"
#include "interpose/real.h"

// The driver's own look-up: it chooses the version of a function by the version of CUDA that is
// asked for, and by flags. What it chose is what is hooked, so both always have the same arguments.
using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): the C interface is
                                   // global

GFLOW_EXPORT abi::Result cuGetProcAddress(const char* symbol,
                                          void** function,
                                          int version,
                                          std::uint64_t flags) {
  const abi::Result result = call(driver().cuGetProcAddress, symbol, function, version, flags);
  if (result == abi::kSuccess && function != nullptr)
    *function = routed_procedure(symbol, *function);
  return result;
}

GFLOW_EXPORT abi::Result cuGetProcAddress_v2(const char* symbol,
                                             void** function,
                                             int version,
                                             std::uint64_t flags,
                                             abi::ProcAddressStatus* status) {
  const abi::Result result =
      call(driver().cuGetProcAddress_v2, symbol, function, version, flags, status);
  if (result == abi::kSuccess && function != nullptr)
    *function = routed_procedure(symbol, *function);
  return result;
}

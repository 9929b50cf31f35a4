// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

/// What stands before functions of the driver so that a process tells that it wants its GPU back: a
/// few instructions that look at whether it is lent, and jump to the function with all arguments
/// where they are. They take no lock, allocate nothing and leave no frame. Any thread.
///
/// There are two kinds. Each name of driver_names.h is exported as one, for what is linked to the
/// driver: it leads to what would have been found without this library. The others have no name:
/// one for each function of the driver that a look-up of a name of the list, or the driver's own
/// look-up, found in a process that watches.
namespace gflow::interpose {

/// Whether it is a name of driver_names.h, under which a stub is exported.
[[nodiscard]] bool has_stub(const char* name);
/// The stub that is exported under this name, which has one.
[[nodiscard]] void* exported_stub(const char* name);

/// The one stub before a function of the driver. The function itself if that is null, or there are
/// none left: more than a driver has.
[[nodiscard]] void* stub_of(void* function);

template <typename Function>
[[nodiscard]] Function* stub_of(Function* function) {
  return reinterpret_cast<Function*>(stub_of(reinterpret_cast<void*>(function)));
}

/// From here on all stubs look at this word, Account::lent, which lives as long as the process.
/// Null: at none, and nothing is told.
void watch_word(const std::atomic<std::uint32_t>* word);
/// In the child of a fork: the next call has the session asked which word it is.
void forget_word();

}  // namespace gflow::interpose

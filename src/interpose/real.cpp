// SPDX-License-Identifier: Apache-2.0
#include "interpose/real.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "interpose/session.h"
#include "interpose/stubs.h"

// The hooks, to be told from what a look-up finds.
namespace gflow::interpose {

#define GFLOW_DECLARE(name, type) GFLOW_EXPORT abi::call::type name;
GFLOW_CUDA_HOOKS(GFLOW_DECLARE)
#undef GFLOW_DECLARE
#define GFLOW_DECLARE(name, type) GFLOW_EXPORT std::remove_pointer_t<nvml::type> name;
GFLOW_NVML_HOOKS(GFLOW_DECLARE)
#undef GFLOW_DECLARE

namespace {

struct Hook {
  std::string_view name;
  void* hook;
  void* real;  ///< null if this library has none
};

template <typename Functions, std::size_t kHooks>
struct Library {
  void* handle;
  Functions functions;
  std::array<Hook, kHooks> hooks;

  [[nodiscard]] const Hook* with_real(const void* found) const {
    for (const Hook& hook : hooks) {
      if (hook.real == found) return &hook;
    }
    return nullptr;
  }
  [[nodiscard]] bool has(std::string_view name) const {
    for (const Hook& hook : hooks) {
      if (hook.name == name) return hook.real != nullptr;
    }
    return false;
  }
};

#define GFLOW_COUNT(name, type) +1  // NOLINT(bugprone-macro-parentheses): terms of a sum
using DriverLibrary = Library<Driver, 0 GFLOW_CUDA_HOOKS(GFLOW_COUNT)>;
using NvmlLibrary = Library<Nvml, 0 GFLOW_NVML_HOOKS(GFLOW_COUNT)>;
#undef GFLOW_COUNT

/// What the program has loaded under this name; null if it has not.
void* loaded(const char* soname) { return ::dlopen(soname, RTLD_LAZY | RTLD_NOLOAD); }

// Written once, by whoever finds the library loaded, and never taken back: functions of it are in
// use as long as the process lives.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): a library has no other place
constinit std::atomic<const DriverLibrary*> driver_library = nullptr;
constinit std::atomic<const NvmlLibrary*> nvml_library = nullptr;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

template <typename Library>
const Library* keep(std::atomic<const Library*>& place, const Library* made) {
  const Library* expected = nullptr;
  if (place.compare_exchange_strong(expected, made)) return made;
  delete made;  // NOLINT(cppcoreguidelines-owning-memory): another thread was first
  return expected;
}

const DriverLibrary* find_driver() {
  if (const DriverLibrary* known = driver_library.load(std::memory_order_acquire)) return known;
  void* const handle = loaded("libcuda.so.1");
  if (handle == nullptr) return nullptr;
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): kept for ever
  auto* const made = new DriverLibrary{.handle = handle, .functions = {}, .hooks = {}};
  const bool watches = Session::get().watches();
  std::size_t at = 0;
#define GFLOW_LOAD(export_name, type) \
  made->functions.export_name =       \
      reinterpret_cast<abi::call::type*>(real_dlsym()(handle, #export_name));
#define GFLOW_HOOK(export_name, type)                           \
  GFLOW_LOAD(export_name, type)                                 \
  made->hooks[at++] = {#export_name,                            \
                       reinterpret_cast<void*>(&(export_name)), \
                       reinterpret_cast<void*>(made->functions.export_name)};
#define GFLOW_STAND_BEFORE(export_name, type) \
  if (watches) made->functions.export_name = stub_of(made->functions.export_name);
  GFLOW_CUDA_HOOKS(GFLOW_HOOK)
  GFLOW_CUDA_CALLS(GFLOW_LOAD)
  GFLOW_CUDA_HOOKS(GFLOW_STAND_BEFORE)
  GFLOW_CUDA_CALLS(GFLOW_STAND_BEFORE)
#undef GFLOW_STAND_BEFORE
#undef GFLOW_HOOK
#undef GFLOW_LOAD
  return keep(driver_library, static_cast<const DriverLibrary*>(made));
}

const NvmlLibrary* find_nvml() {
  if (const NvmlLibrary* known = nvml_library.load(std::memory_order_acquire)) return known;
  void* const handle = loaded("libnvidia-ml.so.1");
  if (handle == nullptr) return nullptr;
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): kept for ever
  auto* const made = new NvmlLibrary{.handle = handle, .functions = {}, .hooks = {}};
  std::size_t at = 0;
#define GFLOW_LOAD(export_name, type) \
  made->functions.export_name = reinterpret_cast<nvml::type>(real_dlsym()(handle, #export_name));
#define GFLOW_HOOK(export_name, type)                           \
  GFLOW_LOAD(export_name, type)                                 \
  made->hooks[at++] = {#export_name,                            \
                       reinterpret_cast<void*>(&(export_name)), \
                       reinterpret_cast<void*>(made->functions.export_name)};
  GFLOW_NVML_HOOKS(GFLOW_HOOK)
  GFLOW_NVML_CALLS(GFLOW_LOAD)
#undef GFLOW_HOOK
#undef GFLOW_LOAD
  return keep(nvml_library, static_cast<const NvmlLibrary*>(made));
}

/// Whether the process does, which has taken its slot then.
bool watches() {
  Session::get().watch();
  return Session::get().watches();
}

/// What stands for a function of the driver in a process that watches: its stub, but for the
/// driver's look-ups, which have to hand stubs out.
void* watched(const Hook* hook, void* function) {
  const bool looks_up =
      hook != nullptr && (hook->hook == reinterpret_cast<void*>(&cuGetProcAddress) ||
                          hook->hook == reinterpret_cast<void*>(&cuGetProcAddress_v2));
  return looks_up ? hook->hook : stub_of(function);
}

/// What must work while the process is locked: it locks and unlocks.
bool is_left_alone(std::string_view name) { return name.starts_with("cuCheckpointProcess"); }

/// The driver's own function of a name; null if there is none, or it is not loaded.
void* of_driver(const char* name) {
  const DriverLibrary* library = find_driver();
  return library == nullptr ? nullptr : real_dlsym()(library->handle, name);
}

/// As choose(), for the name of a stub.
void* choose_stub(const char* name, void* found) {
  void* const own = exported_stub(name);
  const bool is_own = found == own;
  if (is_own) found = behind(name);
  if (found == nullptr || !watches()) return found;
  if (found == of_driver(name)) return stub_of(found);
  return is_own ? own : found;
}

/// As choose(), for a hook of the driver in a process that watches.
void* choose_watched(const DriverLibrary* library, void* found, const void* own) {
  for (const Hook& hook : library->hooks) {
    if (hook.real != nullptr && (hook.real == found || (hook.hook == found && found == own))) {
      return watched(&hook, hook.real);
    }
  }
  return found == own ? nullptr : found;
}

/// A look-up in all libraries finds the hooks, as this one comes first: they stand for what the
/// library behind has, or for nothing.
template <typename Library>
void* choose(const Library* library, const char* name, void* found, const void* own) {
  if (found == own) {
    if (library == nullptr) return nullptr;
    for (const Hook& hook : library->hooks) {
      if (hook.hook != found) continue;
      return hook.real != nullptr && Session::get().limits() ? hook.hook : hook.real;
    }
    return found;
  }
  if (!Session::get().limits()) return found;
  const Hook* hook = library == nullptr ? nullptr : library->with_real(found);
  if (hook != nullptr) return hook->hook;
  Session::get().note_unrouted(name);
  return found;
}

std::string_view base_name(std::string_view name) {
  for (const std::string_view suffix : {"_ptsz", "_v2"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return name;
}

/// The hook of that name; null if it is no name of one.
void* own_hook(std::string_view name) {
#define GFLOW_MATCH(export_name, type) \
  if (name == #export_name) return reinterpret_cast<void*>(&(export_name));
  GFLOW_CUDA_HOOKS(GFLOW_MATCH)
  GFLOW_NVML_HOOKS(GFLOW_MATCH)
#undef GFLOW_MATCH
  return nullptr;
}

}  // namespace

const Driver& driver() {
  static constinit const Driver none;
  const DriverLibrary* library = find_driver();
  return library == nullptr ? none : library->functions;
}

const Nvml& management() {
  static constinit const Nvml none;
  const NvmlLibrary* library = find_nvml();
  return library == nullptr ? none : library->functions;
}

void* routed_procedure(const char* name, void* found) {
  const DriverLibrary* library = find_driver();
  if (found == nullptr || library == nullptr) return found;
  if (watches()) return is_left_alone(name) ? found : watched(library->with_real(found), found);
  if (!Session::get().limits()) return found;
  if (const Hook* hook = library->with_real(found)) return hook->hook;
  for (const Hook& hook : library->hooks) {
    // The driver is asked for a base name and answers with the function of a version.
    if (base_name(hook.name) == name) Session::get().note_unrouted(name);
  }
  return found;
}

bool is_hooked(const char* name) {
  if (name == nullptr) return false;
  const bool may_be = (name[0] == 'c' && name[1] == 'u') || (name[0] == 'n' && name[1] == 'v');
  return may_be && own_hook(name) != nullptr;
}

bool is_exported(const char* name) {
  return is_hooked(name) || (name != nullptr && name[0] == 'c' && name[1] == 'u' && has_stub(name));
}

bool is_behind(const char* name) {
  if (!is_hooked(name)) return of_driver(name) != nullptr;
  if (name[0] == 'c') return find_driver() != nullptr && find_driver()->has(name);
  return find_nvml() != nullptr && find_nvml()->has(name);
}

void* behind(const char* name) {
  (void)find_driver();  // where it is loaded it stays, for what is kept of it
  void* const found = real_dlsym()(RTLD_NEXT, name);
  return found != nullptr ? found : of_driver(name);
}

void* routed(const char* name, void* found) {
  if (found == nullptr || !is_exported(name)) return found;
  if (!is_hooked(name)) return choose_stub(name, found);
  void* const own = own_hook(name);
  const bool is_watched = name[0] == 'c' && find_driver() != nullptr && watches();
  if (is_watched) return choose_watched(find_driver(), found, own);
  return name[0] == 'c' ? choose(find_driver(), name, found, own)
                        : choose(find_nvml(), name, found, own);
}

}  // namespace gflow::interpose

// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "os/file.h"

namespace gflow::devices::nvml {
namespace {

constexpr const char* kName = "libnvidia-ml.so.1";

// Where it lies when the loader's own search does not find it: GKE and COS, WSL2, the driver
// container of NVIDIA's operator, NixOS.
constexpr std::array kDirectories = {"/usr/lib/x86_64-linux-gnu",
                                     "/usr/lib64",
                                     "/usr/lib/aarch64-linux-gnu",
                                     "/usr/local/nvidia/lib64",
                                     "/usr/lib/wsl/lib",
                                     "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
                                     "/run/opengl-driver/lib"};

Result<void*> load(const std::string& path) {
  if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): the probe has one thread
  const std::string text = why == nullptr ? "unknown reason" : why;
  if (text.contains("No such file or directory")) {
    return fail(Code::NotFound, fmt::format("NVIDIA driver library {} is not installed", kName));
  }
  return fail(Code::Failure, fmt::format("cannot load the NVIDIA driver: {}", printable(text)));
}

}  // namespace

Result<Library> Library::open(const std::string& path) {
  if (!path.empty()) return Library(GF_TRY(load(path)));
  auto loaded = load(kName);
  for (const char* directory : kDirectories) {
    if (loaded || loaded.error().code != Code::NotFound) break;
    const std::string full = fmt::format("{}/{}", directory, kName);
    if (os::exists(full)) loaded = load(full);
  }
  return Library(GF_TRY(std::move(loaded)));
}

void* Library::symbol(const char* name) const { return ::dlsym(library_, name); }

std::string Library::error_text(abi::Return code) const {
  const auto describe = reinterpret_cast<abi::ErrorString>(symbol("nvmlErrorString"));
  const char* text = describe == nullptr ? nullptr : describe(code);
  if (text == nullptr) return fmt::format("NVML error {}", static_cast<int>(code));
  return printable(text);
}

}  // namespace gflow::devices::nvml

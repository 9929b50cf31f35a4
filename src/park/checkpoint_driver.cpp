// SPDX-License-Identifier: Apache-2.0
#include "park/checkpoint_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/text.h"

namespace gflow::park {
namespace {

namespace abi = cuda::abi;

constexpr const char* kName = "libcuda.so.1";

Result<void*> load() {
  if (void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL)) return library;
  const char* const why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): no other thread yet
  return fail(
      Code::NotFound,
      fmt::format("cannot load {}: {}", kName, why == nullptr ? "unknown reason" : printable(why)));
}

template <typename Function>
[[nodiscard]] bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

std::optional<unsigned char> hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return static_cast<unsigned char>(letter - '0');
  if (letter >= 'a' && letter <= 'f') return static_cast<unsigned char>(letter - 'a' + 10);
  return std::nullopt;
}

/// "GPU-" and 32 digits in groups.
Result<abi::Uuid> read_uuid(const std::string& text) {
  constexpr std::string_view kPrefix = "GPU-";
  constexpr unsigned kBits = 4;
  abi::Uuid uuid{};
  constexpr std::size_t kDigits = 2 * sizeof uuid.bytes;
  std::size_t digits = 0;
  bool is_one = text.starts_with(kPrefix);
  for (const char letter : is_one ? text.substr(kPrefix.size()) : "") {
    if (letter == '-') continue;
    const auto digit = hex_digit(letter);
    is_one = is_one && digit && digits < kDigits;
    if (!is_one) break;
    auto& byte = uuid.bytes[digits / 2];
    byte = static_cast<unsigned char>(static_cast<unsigned>(byte << kBits) | *digit);
    ++digits;
  }
  if (is_one && digits == kDigits) return uuid;
  return fail(Code::Infeasible, fmt::format("'{}' is not the UUID of a GPU", printable(text)));
}

}  // namespace

Result<CheckpointDriver> CheckpointDriver::open() {
  void* const library = GF_TRY(load());
  CheckpointDriver made;
  const bool has_all = find(library, "cuInit", made.init_) &&
                       find(library, "cuGetErrorName", made.error_name_) &&
                       find(library, "cuDriverGetVersion", made.get_version_) &&
                       find(library, "cuCheckpointProcessGetState", made.get_state_) &&
                       find(library, "cuCheckpointProcessLock", made.lock_) &&
                       find(library, "cuCheckpointProcessCheckpoint", made.checkpoint_) &&
                       find(library, "cuCheckpointProcessRestore", made.restore_) &&
                       find(library, "cuCheckpointProcessUnlock", made.unlock_);
  if (has_all) return made;
  return fail(Code::Infeasible,
              "the NVIDIA driver is older than 570, the first that can take the GPU memory of a "
              "process to host memory");
}

std::string CheckpointDriver::text_of(abi::Result result) const {
  const char* name = nullptr;
  if (error_name_(result, &name) == abi::kSuccess && name != nullptr) return printable(name);
  return fmt::format("error {}", static_cast<int>(result));
}

Result<void> CheckpointDriver::initialize() const {
  const abi::Result result = init_(0);
  if (result == abi::kSuccess) return {};
  return fail(Code::Failure, fmt::format("the NVIDIA driver cannot be used: {}", text_of(result)));
}

std::optional<Standing> CheckpointDriver::standing_of(int pid) const {
  abi::ProcessState state = -1;  // drivers have been seen to answer and write nothing
  if (get_state_(pid, &state) != abi::kSuccess) return std::nullopt;
  switch (state) {
    case abi::kProcessRunning:
      return Standing::Running;
    case abi::kProcessLocked:
      return Standing::Locked;
    case abi::kProcessCheckpointed:
      return Standing::Parked;
    case abi::kProcessFailed:
      return Standing::Broken;
    default:
      return std::nullopt;
  }
}

Result<void> CheckpointDriver::lock(int pid, std::chrono::milliseconds most) const {
  abi::CheckpointLockArgs args{};
  args.timeout_ms = static_cast<unsigned int>(most.count());
  const abi::Result result = lock_(pid, &args);
  if (result == abi::kSuccess) return {};
  if (result == abi::kNotReady) {
    return fail(Code::Timeout,
                fmt::format("process {} was not done with what its GPU computes after {} s",
                            pid,
                            std::chrono::ceil<std::chrono::seconds>(most).count()));
  }
  return fail(Code::Failure, fmt::format("process {} cannot be locked: {}", pid, text_of(result)));
}

Result<void> CheckpointDriver::checkpoint(int pid) const {
  const abi::Result result = checkpoint_(pid, nullptr);
  if (result == abi::kSuccess) return {};
  if (result == abi::kNotSupported) {
    return fail(Code::Infeasible,
                fmt::format("the driver cannot take away what process {} has: several GPUs, or "
                            "memory it shares with another process or the host",
                            pid));
  }
  return fail(
      Code::Failure,
      fmt::format(
          "the GPU memory of process {} cannot be taken to host memory: {}", pid, text_of(result)));
}

bool CheckpointDriver::can_move() const {
  constexpr int kFirstWithPairs = 13'000;
  int version = 0;
  return get_version_(&version) == abi::kSuccess && version >= kFirstWithPairs;
}

Result<void> CheckpointDriver::restore(int pid) const {
  return restored(pid, restore_(pid, nullptr));
}

Result<void> CheckpointDriver::restore_onto(int pid, const GpuPair& pair) const {
  abi::CheckpointGpuPair its{.old_uuid = GF_TRY(read_uuid(pair.from)),
                             .new_uuid = GF_TRY(read_uuid(pair.to))};
  abi::CheckpointRestoreArgs args{};
  args.gpu_pairs = &its;
  args.gpu_pairs_count = 1;
  const abi::Result result = restore_(pid, &args);
  if (result == abi::kInvalidValue || result == abi::kNotSupported) {
    return fail(Code::Infeasible,
                fmt::format("the driver cannot bring process {} from GPU {} to GPU {}: {}",
                            pid,
                            printable(pair.from),
                            printable(pair.to),
                            text_of(result)));
  }
  return restored(pid, result);
}

Result<void> CheckpointDriver::restored(int pid, abi::Result result) const {
  if (result == abi::kSuccess) return {};
  if (result == abi::kOutOfMemory) {
    return fail(Code::Exhausted,
                fmt::format("the GPU of process {} has no room for its memory", pid));
  }
  return fail(result == abi::kIllegalState ? Code::WrongState : Code::Damaged,
              fmt::format("process {} cannot have its GPU memory back: {}", pid, text_of(result)));
}

Result<void> CheckpointDriver::unlock(int pid) const {
  const abi::Result result = unlock_(pid, nullptr);
  if (result == abi::kSuccess) return {};
  return fail(Code::Failure,
              fmt::format("process {} cannot be unlocked: {}", pid, text_of(result)));
}

}  // namespace gflow::park

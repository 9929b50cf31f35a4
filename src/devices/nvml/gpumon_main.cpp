// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "devices/nvml/host_facts.h"
#include "devices/nvml/sampler.h"
#include "os/file.h"
#include "os/user.h"

// gflow-gpumon: the one program that loads NVIDIA's library, so that a driver that hangs or aborts
// takes this process with it and not the daemon. For each line "read" on stdin one line of JSON on
// stdout; the end of stdin ends it.
namespace gflow::devices::nvml {
namespace {

constexpr std::string_view kHelp =
    "Usage: gflow-gpumon [--once] [--sysfs DIR]\n"
    "Reads the NVIDIA GPUs of this machine for gflowd: one line of JSON for each line \"read\".\n"
    "  --once       read once and end\n"
    "  --sysfs DIR  where sysfs is mounted (/sys)\n"
    "GFLOW_NVML_LIBRARY names the driver library to load instead of libnvidia-ml.so.1.\n";

constexpr std::size_t kLongestCommand = 4096;

struct Options {
  bool once = false;
  bool help = false;
  std::string sysfs = "/sys";
  std::string wrong;  ///< the argument that is not understood
};

Options read_options(std::span<char*> arguments) {
  Options options;
  for (std::size_t at = 1; at < arguments.size(); ++at) {
    const std::string_view word = arguments[at];
    if (word == "--once") {
      options.once = true;
    } else if (word == "--help") {
      options.help = true;
    } else if (word == "--sysfs" && at + 1 < arguments.size()) {
      options.sysfs = arguments[++at];
    } else {
      options.wrong = word;
    }
  }
  return options;
}

/// Why there is no reading, with what the PCI bus knows without any driver.
Report no_library(const Error& error, const std::string& sysfs) {
  Report report;
  report.error = error.message;
  const int present = count_nvidia_on_pci(sysfs);
  if (present > 0) {
    report.error += fmt::format(", but there are NVIDIA GPUs on the PCI bus ({})", present);
  }
  return report;
}

class Gpumon {
 public:
  explicit Gpumon(Options options)
      : options_(std::move(options)),
        library_(Library::open(os::environment("GFLOW_NVML_LIBRARY").value_or(""))) {
    if (library_) sampler_.emplace(*library_, options_.sysfs);
  }

  /// 0 if all could be written.
  int answer() {
    const Report report =
        sampler_ ? sampler_->read() : no_library(library_.error(), options_.sysfs);
    return os::write_all(STDOUT_FILENO, to_line(report) + "\n") ? 0 : 1;
  }

  int serve() {
    std::string pending;
    std::array<char, 512> buffer{};
    while (pending.size() < kLongestCommand) {
      const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (got <= 0) return 0;
      pending.append(buffer.data(), static_cast<std::size_t>(got));
      for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
        const bool known = std::string_view(pending).substr(0, end) == "read";
        if (!known || answer() != 0) return 1;
        pending.erase(0, end + 1);
      }
    }
    return 1;
  }

 private:
  Options options_;
  Result<Library> library_;
  std::optional<Sampler> sampler_;
};

}  // namespace
}  // namespace gflow::devices::nvml

int main(int argc, char** argv) {
  using namespace gflow::devices::nvml;
  const Options options = read_options({argv, static_cast<std::size_t>(argc)});
  if (options.help) return gflow::os::write_all(STDOUT_FILENO, kHelp) ? 0 : 1;
  if (!options.wrong.empty()) {
    (void)gflow::os::write_all(STDERR_FILENO, kHelp);  // the exit code says it as well
    return 2;
  }
  Gpumon gpumon(options);
  return options.once ? gpumon.answer() : gpumon.serve();
}

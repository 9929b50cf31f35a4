// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "devices/nvml/cutting.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/user.h"

// gflow-mig: makes a slice of MIG for gflowd, or removes one, and says what became of it in a line.
// A process of its own for each, so that a driver that hangs takes this one with it.
namespace gflow::devices::nvml {
namespace {

constexpr std::string_view kHelp =
    "Usage: gflow-mig make|remove --gpu UUID --profile PROFILE --start N --size N --lock FILE\n"
    "                 [--uuid UUID --instance N] [--again yes] [--look yes] [--parent PID]\n"
    "Makes or removes a slice of MIG for gflowd, which starts it.\n"
    "  --again yes    it may have been made before, and is found then\n"
    "  --look yes     what was begun is finished, and nothing begun\n"
    "  --lock FILE    held meanwhile: where another one holds it nothing is done\n"
    "  --parent PID   nothing is done if that is not the parent any more\n"
    "GFLOW_NVML_LIBRARY names the driver library to load instead of libnvidia-ml.so.1.\n";

int usage() {
  (void)os::write_all(STDERR_FILENO, kHelp);  // the exit code says it as well
  return 2;
}

int say(const SliceOutcome& outcome) {
  return os::write_all(STDOUT_FILENO, to_line(outcome) + "\n") ? 0 : 1;
}

using Options = std::map<std::string_view, std::string>;

SliceOutcome act(const Options& options, const MadeSlice& slice) {
  const os::Fd lock(::open(options.at("--lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return not_looked_at(slice, os::errno_error("open the lock").error().message);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return not_looked_at(slice, kEarlier);
  }
  // Who ordered it is gone: whoever comes next knows what is wanted then.
  const auto parent = options.find("--parent");
  if (parent != options.end() && parent->second != std::to_string(::getppid())) {
    return not_looked_at(slice, "gflowd has ended");
  }
  const auto library = Library::open(os::environment("GFLOW_NVML_LIBRARY").value_or(""));
  if (!library) return not_looked_at(slice, library.error().message);
  return cut(*library, slice);
}

int run(std::span<char*> arguments) {
  if (arguments.size() < 2) return usage();
  const std::string_view what = arguments[1];
  if (what == "--help") return os::write_all(STDOUT_FILENO, kHelp) ? 0 : 1;
  Options options;
  for (std::size_t at = 2; at + 1 < arguments.size(); at += 2) {
    options[arguments[at]] = arguments[at + 1];
  }
  for (const char* needed : {"--gpu", "--profile", "--start", "--size", "--lock"}) {
    if (!options.contains(needed)) return usage();
  }
  if (what != "make" && what != "remove") return usage();
  const auto number = [&options](const char* name) {
    return static_cast<int>(parse_number(options[name]).value_or(0));
  };
  MadeSlice slice{.gpu = options["--gpu"],
                  .profile = options["--profile"],
                  .start = number("--start"),
                  .size = number("--size"),
                  .stage = what == "make" ? SliceStage::Making : SliceStage::Removing};
  slice.again = options["--again"] == "yes";
  slice.only_looks = options["--look"] == "yes";
  slice.uuid = options["--uuid"];
  slice.gpu_instance = number("--instance");
  return say(act(options, slice));
}

}  // namespace
}  // namespace gflow::devices::nvml

int main(int argc, char** argv) {
  return gflow::devices::nvml::run({argv, static_cast<std::size_t>(argc)});
}

// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.h"

#include <fcntl.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <sys/stat.h>

#include "os/file.h"

namespace gflow::daemon {
namespace {

constexpr const char* kDevices = "gpu_resource_manager";
constexpr const char* kAudit = "audit";

spdlog::logger& named(const char* name) {
  const auto found = spdlog::get(name);  // kept by spdlog until the process ends
  return found ? *found : *spdlog::default_logger_raw();
}

}  // namespace

Result<void> open_log(const std::string& path, const std::string& level) {
  constexpr std::size_t kSize = 10U << 20;
  constexpr std::size_t kFiles = 3;
  try {
    // What spdlog creates has the mode the umask leaves; one that is there may have another.
    const os::Fd own = GF_TRY(os::open_file(path, O_WRONLY | O_CREAT));
    if (::fchmod(own.get(), 0600) != 0) return os::errno_error("set the mode of", path);
    const auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, kSize, kFiles);
    auto daemon = std::make_shared<spdlog::logger>("gflowd", sink);
    auto devices = std::make_shared<spdlog::logger>(kDevices, sink);
    auto audit = std::make_shared<spdlog::logger>(kAudit, sink);
    spdlog::drop(kDevices);
    spdlog::drop(kAudit);
    for (const auto& logger : {daemon, devices, audit}) {
      logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %n: %v");
      logger->flush_on(spdlog::level::debug);
    }
    spdlog::set_default_logger(std::move(daemon));
    spdlog::register_logger(std::move(devices));
    spdlog::register_logger(std::move(audit));
    set_log_level(level);
    return {};
  } catch (const spdlog::spdlog_ex& error) {
    return fail(Code::Failure, error.what());
  }
}

void set_log_level(const std::string& level) {
  spdlog::set_level(spdlog::level::from_str(level));
  if (const auto audit = spdlog::get(kAudit)) audit->set_level(spdlog::level::info);
}

spdlog::logger& device_log() { return named(kDevices); }
spdlog::logger& audit_log() { return named(kAudit); }

}  // namespace gflow::daemon

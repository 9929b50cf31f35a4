// SPDX-License-Identifier: Apache-2.0
#include "daemon/rebuilt_job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string_view>
#include <tuple>

#include "base/kept_sentence.h"
#include "base/text.h"
#include "core/cpu_list.h"
#include "core/gpu_request.h"
#include "core/job_description.h"
#include "os/file.h"
#include "os/user.h"
#include "runner/attempt_files.h"
#include "server/holder.h"

namespace gflow::daemon {
namespace {

/// What the job was told, by name.
class Told {
 public:
  explicit Told(const std::vector<std::string>& environment) {
    for (const std::string& text : environment) {
      const std::size_t equals = text.find('=');
      if (equals != std::string::npos) values_[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? "" : found->second;
  }
  [[nodiscard]] int number(const std::string& name) const {
    constexpr std::uint64_t kMax = 1'000'000'000;
    return static_cast<int>(std::min(parse_number(text(name)).value_or(0), kMax));
  }
  [[nodiscard]] std::vector<int> list(const std::string& name) const {
    return parse_cpu_list(text(name)).value_or(std::vector<int>());
  }

 private:
  std::map<std::string, std::string> values_;
};

GpuMode mode_of(const std::string& name) {
  for (const GpuMode mode : {GpuMode::Fraction, GpuMode::TimeSlice}) {
    if (name == gpu_mode_name(mode)) return mode;
  }
  return GpuMode::Whole;
}

/// What share_text() wrote of a part of a device: "0.3333". The whole if it is not that.
Share share_of(const std::string& text) {
  if (!text.starts_with("0.") || text.size() > 6) return Share::whole();
  std::string digits = text.substr(2);
  digits.resize(4, '0');
  const auto parts = parse_number(digits);
  return parts && *parts > 0 ? Share{static_cast<int>(*parts)} : Share::whole();
}

Request request_of(const Told& told) {
  Request request;
  request.gpus = told.number("GFLOW_GPUS");
  request.mode = mode_of(told.text("GFLOW_GPU_MODE"));
  if (request.mode == GpuMode::Fraction) {
    request.share = share_of(told.text("GFLOW_GPU_SHARE"));
    const std::string limit = told.text("GFLOW_GPU_SHARE_LIMIT");
    if (!limit.empty()) request.share_limit = share_of(limit);
  }
  request.gpu_memory = Memory::mib(told.number("GFLOW_GPU_MEMORY_MIB"));
  request.cpus = told.number("GFLOW_CPUS");
  request.memory = Memory::mib(told.number("GFLOW_MEMORY_MIB"));
  return request;
}

User user_of(const attempt::Order& order) {
  const os::Account account = order.uid ? os::account_of(*order.uid) : os::own_account();
  return {account.uid, account.name};
}

JobSpec spec_of(const attempt::Order& order, const Told& told) {
  JobSpec spec;
  spec.name = told.text("GFLOW_JOB_NAME");
  spec.user = user_of(order);
  spec.project = told.text("GFLOW_PROJECT");
  spec.request = request_of(told);
  spec.time_limit = order.time_limit;
  spec.grace = order.grace;
  spec.allocation = server::is_holder_command(order.argv);
  spec.command =
      spec.allocation ? "allocation of " + gpu_request_text(spec.request) : shown_line(order.argv);
  spec.work_dir = order.work_dir;
  return spec;
}

/// A file of the user's in a directory of the daemon's below that of the attempt. Its content may
/// be anything; that it is another file, or one that waits, is ruled out (docs/design/0009).
Result<std::optional<std::string>> read_given(const std::string& path,
                                              const std::string& directory) {
  if (!path.starts_with(directory + "/") || path.find("/../") != std::string::npos) {
    return std::nullopt;
  }
  const auto file = os::open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  // What its user has put in its place or closed; the job was given it and may do so.
  const auto is_users_doing = [](const Error& error) {
    return error.code == Code::NotFound || error.code == Code::Permission ||
           error.number == ELOOP || error.number == ENXIO;
  };
  if (!file && is_users_doing(file.error())) return std::nullopt;
  if (!file) return std::unexpected(file.error());
  struct stat facts{};
  if (::fstat(file->get(), &facts) != 0) return os::errno_error("look at", path);
  constexpr off_t kMax = 64 << 20;
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMax) return std::nullopt;
  std::string content(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t got = ::read(file->get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::errno_error("read", path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  content.resize(filled);
  return content;
}

Result<Payload> payload_of(const attempt::Order& order,
                           const Told& told,
                           const std::string& directory) {
  Payload payload;
  payload.argv = order.argv;
  payload.environment = order.environment;
  payload.umask = order.umask;
  payload.script = GF_TRY(read_given(order.script, directory));
  const std::string config = told.text("GFLOW_JOB_CONFIG");
  if (auto content = GF_TRY(read_given(config, directory))) {
    payload.config_name = std::filesystem::path(config).filename().string();
    payload.config = std::move(*content);
  }
  return payload;
}

/// When its order was written; now if that cannot be told.
WallTime ordered_at(const std::string& directory, Now now) {
  struct stat facts{};
  if (::stat((directory + "/order").c_str(), &facts) != 0) return now.wall;
  const std::chrono::seconds since(facts.st_mtim.tv_sec);
  return std::min(WallTime(since), now.wall);
}

}  // namespace

// A new field: what an attempt has on disk tells it, or a rebuilt job has its default.
static_assert(kJobFields == 9 && std::tuple_size_v<decltype(Description<Attempt>::kFields)> == 11);

Result<std::optional<RebuiltJob>> rebuild_job(const std::string& attempts_dir,
                                              JobId job,
                                              int attempt,
                                              Now now) {
  const runner::AttemptFiles files(attempts_dir, job, attempt);
  const auto order = GF_TRY(files.order());
  if (!order) return std::nullopt;
  const Told told(order->environment);
  Attempt run;
  run.number = attempt;
  run.allocation.gpus = told.list("GFLOW_GPU_INDICES");
  run.allocation.cpus = told.list("GFLOW_CPU_LIST");
  run.started = ordered_at(files.directory(), now);
  run.started_mono = now.mono - (now.wall - run.started);
  run.boot_id = order->boot_id;
  run.placed_because = kept<Kept::Rebuilt>();
  RebuiltJob rebuilt;
  rebuilt.job.id = job;
  rebuilt.job.spec = spec_of(*order, told);
  rebuilt.job.submitted = run.started;
  rebuilt.job.attempts = attempt;
  rebuilt.job.state = Starting{std::move(run), std::nullopt, 0};
  rebuilt.payload = GF_TRY(payload_of(*order, told, files.directory()));
  return rebuilt;
}

}  // namespace gflow::daemon

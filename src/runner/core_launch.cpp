// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"
#include "os/file.h"
#include "runner/core.h"
#include "runner/outcome.h"
#include "runner/processes.h"
#include "runner/spawn.h"

namespace gflow::runner {
namespace {

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  (void)::getrandom(bytes.data(), bytes.size(), 0);  // up to 256 bytes cannot fail (getrandom(2))
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (const unsigned char byte : bytes) {
    id.push_back(kDigits[byte >> 4]);
    id.push_back(kDigits[byte & 15]);
  }
  return id;
}

/// A job submitted from within a job carries the other one's marker.
void set_marker(std::vector<std::string>& environment, const std::string& launch_id) {
  const std::string start = std::string(kMarker) + "=";
  std::erase_if(environment, [&](const std::string& text) { return text.starts_with(start); });
  environment.push_back(start + launch_id);
}

}  // namespace

Result<attempt::Order> Runner::Core::order_for(const LaunchOrder& given) const {
  const AttemptFiles files(options.attempts_dir, given.job, given.attempt);
  attempt::Order order;
  order.job = given.job.value;
  order.attempt = static_cast<std::uint32_t>(given.attempt);
  order.launch_id = random_id();
  order.boot_id = options.boot_id;
  if (given.user.uid != ::geteuid()) {
    if (::geteuid() != 0) {
      return fail(Code::Permission,
                  "only a daemon run by root can run jobs of other users; this one is of " +
                      printable(given.user.name));
    }
    order.uid = given.user.uid;
  }
  order.work_dir = given.work_dir;
  order.log_path = options.logs_dir + "/" + std::to_string(given.job.value) + ".log";
  order.script = files.script_path(given.payload);
  order.argv = given.payload.argv;
  if (order.argv.empty() && given.payload.script) order.argv.emplace_back("script");
  if (order.argv.empty()) return fail(Code::Usage, "the job has no program to run");
  order.environment = given.environment;
  set_marker(order.environment, order.launch_id);
  order.umask = given.payload.umask & 0777;
  order.open_files = options.open_files;
  order.time_limit = given.time_limit;
  order.grace = std::max(given.grace, std::chrono::seconds(0));
  order.cpus.assign(given.cpus.begin(), given.cpus.end());
  return order;
}

Result<void> Runner::Core::start(const LaunchOrder& given) {
  const AttemptFiles files(options.attempts_dir, given.job, given.attempt);
  if (files.exist()) return fail(Code::WrongState, "the attempt has been started before");
  attempt::Order order = GF_TRY(order_for(given));
  GF_CHECK(cgroups.create(attempt_name(given.job, given.attempt), given.limits, order));
  GF_CHECK(files.create(order, given.payload));
  Shim shim = GF_TRY(spawn_shim(options.shim, files.directory()));
  Watched& watched = watch(given.job, given.attempt, shim.pid, std::move(shim.process));
  watched.status = std::move(shim.status);
  if (!listen(watched, Source::Status, watched.status)) watched.status.reset();
  if (!listen(watched, Source::Shim, watched.shim)) {
    return os::errno_error("watch the supervisor");
  }
  return {};
}

void Runner::Core::launch(const LaunchOrder& order) {
  const auto started = start(order);
  if (started) return;
  const Key key(order.job, order.attempt);
  if (attempts.contains(key)) {
    // It runs but cannot be watched (no room in epoll): take it back or end it, and report it now.
    stop(key, SIGKILL, EndReason::LaunchFailed);
    end(attempts.at(key), outcome_without_record(EndReason::LaunchFailed, started.error().message));
    return;
  }
  report(Gone{order.job,
              order.attempt,
              outcome_without_record(EndReason::LaunchFailed, started.error().message)});
}

void Runner::Core::remove(const AttemptFiles& files) const {
  if (options.remove) return options.remove(files.directory());
  (void)files.remove();  // what cannot be removed now is swept at the next start
}

void Runner::Core::forget(Key key) {
  if (const auto found = attempts.find(key); found != attempts.end()) {
    by_serial.erase(found->second.serial);
    by_shim.erase(found->second.shim_pid);
    attempts.erase(found);
  }
  const AttemptFiles files(options.attempts_dir, key.first, key.second);
  const auto order = files.order();
  // As the order has them: the daemon may have stood in another group when it started the attempt.
  Cgroups::remove(order ? order->cgroups : cgroups.groups_of(attempt_name(key.first, key.second)));
  remove(files);
}

}  // namespace gflow::runner

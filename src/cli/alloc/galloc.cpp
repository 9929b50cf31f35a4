// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>

#include "api/gpu_resources.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/alloc/follow.h"
#include "cli/commands.h"
#include "command/context.h"
#include "command/times.h"
#include "core/gpu_request.h"
#include "os/held_child.h"
#include "os/process.h"
#include "os/signals.h"
#include "os/terminal.h"
#include "os/user.h"

namespace gflow::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr int kBySignal = 128;
constexpr int kNotFound = 127;  // as shells have it

/// What is wanted, held for as long as a process lives.
Result<api::GpuNeed> need_of(const Invocation& invocation, const Context& context, int pid) {
  api::GpuNeed need;
  need.gpus = invocation.has("gpus") ? invocation.get("gpus") : "1";
  const GpuConfig config = GF_TRY(context.gpu_config());
  (void)GF_TRY(parse_gpu_request(need.gpus, config.resources));
  need.wait = !invocation.has("immediate");
  need.pid = pid;
  // What it is held for may be another process, which lives on when this one is killed.
  need.wait_pid = os::process_id();
  if (invocation.has("ttl")) {
    const auto ttl = parse_duration(invocation.get("ttl"));
    if (!ttl) return with_context(ttl.error(), "--ttl");
    need.ttl_seconds = ttl->count();
  }
  return need;
}

/// The process whose environment is to be set.
Result<int> shell_of(const Invocation& invocation) {
  if (!invocation.has("pid")) return os::parent_process_id();
  const auto pid = parse_number(invocation.get("pid"));
  if (pid && *pid > 0 && *pid <= static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    return static_cast<int>(*pid);
  }
  return fail(
      Code::Usage,
      tr_format("--pid: '{}' is not the number of a process", printable(invocation.get("pid"))));
}

/// In the time zone of who reads it: what the allocation says is in that of the daemon.
std::string until_text(const api::GpuAllocation& allocation, Context& context) {
  const auto job = context.daemon().job(allocation.allocation_id);
  if (!job || !job->started || !job->spec.time_limit) return printable(allocation.expires_at);
  return local_text(*job->started + *job->spec.time_limit);
}

std::string granted_text(const api::GpuAllocation& allocation, Context& context) {
  std::vector<std::string> gpus;
  for (const api::GrantedGpu& gpu : allocation.gpu_config->devices) {
    gpus.push_back(std::to_string(gpu.index));
  }
  return tr_format("allocation {}: GPU {} of {}{}",
                   allocation.allocation_id.value,
                   join(gpus, ","),
                   printable(allocation.node_name),
                   allocation.expires_at.empty()
                       ? ""
                       : tr_format(", until {}", until_text(allocation, context)));
}

std::vector<std::pair<std::string, std::string>> environment_of(
    const api::GpuAllocation& allocation) {
  auto environment = allocation.gpu_config->environment;
  environment.emplace_back("GFLOW_JOB_ID", std::to_string(allocation.allocation_id.value));
  return environment;
}

std::vector<std::string> command_of(const Invocation& invocation) {
  if (!invocation.words.empty()) return invocation.words;
  return {os::environment("SHELL").value_or("/bin/sh")};
}

void release(Context& context, JobId id) {
  auto done = context.another_daemon().act("cancel", {.jobs = {id}, .signal = 0, .at = {}});
  // That it is over already is what was wanted.
  if (!done && done.error().code == Code::Unreachable) context.error(done.error());
}

/// Which of them has something to read; neither if the call was interrupted.
struct Ready {
  bool first = false;
  bool second = false;
};
Ready wait_for_either(int first, int second) {
  std::array<pollfd, 2> waits{{{first, POLLIN, 0}, {second, POLLIN, 0}}};
  if (::poll(waits.data(), waits.size(), -1) < 0) return {};
  return {waits[0].revents != 0, waits[1].revents != 0};
}

/// Until it is granted; a signal gives it back, which stays as `stopped_by`.
Result<api::GpuAllocation> wait_for_grant(Context& context,
                                          api::GpuAllocation allocation,
                                          const os::SignalWatch& signals,
                                          int& stopped_by) {
  if (allocation.success) return allocation;
  context.hint(tr_format("allocation {} waits: {}",
                         allocation.allocation_id.value,
                         printable(allocation.error_message)));
  const Follower follower(context.another_daemon(), allocation.allocation_id, Until::Granted);
  while (true) {
    const Ready ready = wait_for_either(follower.fd(), signals.fd());
    if (ready.first) return follower.answer();
    if (const auto signal = signals.next(); ready.second && signal) {
      stopped_by = *signal;
      release(context, allocation.allocation_id);
      return allocation;
    }
  }
}

/// A shell at the terminal takes SIGHUP, and tells its jobs; it does not take SIGTERM.
int ending_signal(const Invocation& invocation) {
  return invocation.words.empty() ? SIGHUP : SIGTERM;
}

/// The end of the program and of all it started, once its GPUs are another's: told first, and
/// killed when its grace is over.
class Ending {
 public:
  explicit Ending(int signal) { (void)os::HeldChild::signal_all(signal); }

  static constexpr int kPauseMs = 100;  ///< until it is to be looked at again
  [[nodiscard]] bool is_complete() {
    const bool is_due = std::chrono::steady_clock::now() >= kill_at_;
    return os::HeldChild::signal_all(is_due ? SIGKILL : 0) == 0;
  }

 private:
  std::chrono::steady_clock::time_point kill_at_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);  // as the grace of a job
};

void say_over(const Follower& follower, JobId id, Context& context) {
  const auto over = follower.answer();
  const std::string why = over ? over->error_message : over.error().message;
  context.note(tr_format("allocation {} has ended{}: its program is ended, too",
                         id.value,
                         why.empty() ? "" : " (" + printable(why) + ")"));
}

/// Until it ends, or what it was given does; its exit code.
int accompany(os::HeldChild& child,
              const Follower& follower,
              const os::SignalWatch& signals,
              int ending_signal,
              const std::function<void()>& on_over) {
  std::optional<Ending> ending;
  while (true) {
    std::array<pollfd, 3> waits{{{ending ? -1 : child.fd(), POLLIN, 0},
                                 {signals.fd(), POLLIN, 0},
                                 {ending ? -1 : follower.fd(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), ending ? Ending::kPauseMs : -1) < 0) continue;
    if (waits[0].revents != 0 || (ending && ending->is_complete())) {
      return child.wait_for_exit_code();
    }
    // The terminal sends SIGINT and SIGQUIT to the program itself.
    if (const auto signal = signals.next(); signal && *signal != SIGINT && *signal != SIGQUIT) {
      (void)::kill(child.pid(), *signal);
    }
    if (waits[2].revents == 0) continue;
    on_over();
    ending.emplace(ending_signal);
  }
}

Result<int> run_with(const api::GpuAllocation& allocation,
                     os::HeldChild& child,
                     const Invocation& invocation,
                     const os::SignalWatch& signals,
                     Context& context) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : environment_of(allocation)) {
    environment.push_back(name + "=" + value);
  }
  if (auto became = child.become(command_of(invocation), environment); !became) {
    context.error(became.error());
    return kNotFound;
  }
  const Follower follower(context.another_daemon(), allocation.allocation_id, Until::Over);
  return accompany(child, follower, signals, ending_signal(invocation), [&] {
    say_over(follower, allocation.allocation_id, context);
  });
}

void print_environment(const api::GpuAllocation& allocation, Context& context) {
  if (context.json) {
    context.out << api::write(allocation) << '\n';
    return;
  }
  for (const auto& [name, value] : environment_of(allocation)) {
    context.out << fmt::format("export {}={}\n", name, shell_quote(std::array{value}));
  }
}

Result<int> run(const Invocation& invocation, Context& context) {
  GF_CHECK(context.needs_own_machine(
      tr("what holds the GPUs is a process where they are; log in there, or ask for an allocation "
         "by POST /api/v1/gpu/allocate")));
  if (invocation.has("env") && !invocation.words.empty()) {
    return fail(Code::Usage, tr("--env runs no command; omit one of them"));
  }
  if (context.json && !invocation.has("env")) {
    return fail(Code::Usage, tr("--json requires --env: the output of a command is its own"));
  }
  // What is held is held for the program itself: it keeps it should this process be killed.
  std::optional<os::HeldChild> child;
  if (!invocation.has("env")) child = GF_TRY(os::HeldChild::start());
  const int pid = child ? child->pid() : GF_TRY(shell_of(invocation));
  const api::GpuNeed need = GF_TRY(need_of(invocation, context, pid));
  const os::SignalWatch signals = GF_TRY(os::SignalWatch::open(kSignals));
  const std::string answer =
      GF_TRY(context.daemon().call("POST", "/api/v1/gpu/allocate", api::write(need)));
  auto allocation = GF_TRY(api::read_gpu_allocation(answer));
  if (!allocation.success && (!allocation.allocation_id.is_set() || !need.wait)) {
    return fail(Code::Exhausted, allocation.error_message);
  }
  int stopped_by = 0;
  allocation = GF_TRY(wait_for_grant(context, std::move(allocation), signals, stopped_by));
  if (stopped_by != 0) return kBySignal + stopped_by;
  if (!allocation.success) return fail(Code::Failure, allocation.error_message);
  if (!child) {
    print_environment(allocation, context);
    const auto signal = signals.next();  // that came during the request
    if (context.out.flush() && !signal) return 0;
    release(context, allocation.allocation_id);
    if (signal) return kBySignal + *signal;
    return fail(Code::Failure, tr("the environment could not be printed; the GPUs are released"));
  }
  context.hint(granted_text(allocation, context));
  auto code = run_with(allocation, *child, invocation, signals, context);
  release(context, allocation.allocation_id);
  return code;
}

}  // namespace

Command galloc_command() {
  return {
      .name = "galloc",
      .summary = tr("hold GPUs for a command or a shell"),
      .usage = {"[options] [--] [COMMAND [ARGS...]]", "[options] --env"},
      .description =
          tr("Allocates GPUs, runs a command with them in this terminal and releases them when it "
             "ends; without a command, runs a shell. If no GPUs are free, it waits in the queue "
             "like a job. The command sees only the GPUs it holds. An allocation is a job: "
             "'gqueue' shows it and 'gcancel' ends it.\n\nThe exit code is that of the command."),
      .options =
          {
              {.name = "gpus",
               .letters = "g",
               .value = "REQUEST",
               .help = tr("GPUs to hold, as in 'gbatch --gpus' (default: 1).")},
              {.name = "ttl",
               .letters = "t",
               .aliases = {"time"},
               .value = "TIME",
               .help = tr("Release the GPUs after this time, even if the command still runs (2h, "
                          "1-12:00:00).")},
              {.name = "immediate",
               .letters = "I",
               .help = tr("Fail if the GPUs are not free now, instead of waiting.")},
              {.name = "pid",
               .value = "PID",
               .help = tr("With --env: hold the GPUs until this process ends (default: the parent "
                          "of galloc)."),
               .needs = "env"},
              {.name = "env",
               .help = tr("Run no command: print the variables for a shell to set, and hold the "
                          "GPUs until that shell ends.")},
          },
      .words = {.name = "COMMAND [ARGS...]",
                .help = tr("Command to run instead of a shell."),
                .most = kAnyNumber,
                .complete = Complete::Command},
      .order = Order::FirstWordEndsOptions,
      .examples = {{"galloc --gpus 2 python train.py", tr("run a program on two GPUs")},
                   {"galloc --gpus '1(A100)' --ttl 2h", tr("a shell with an A100, for two hours")},
                   {"eval \"$(galloc --env)\"", tr("hold a GPU until this shell ends")}},
      .run = run,
  };
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "core/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/kept_sentence.h"
#include "base/result.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

constexpr std::size_t kMaxLine = 4096;  ///< bytes of what shown_line() shows
/// Of a text no more is looked at: it is too long by then, and its last character is whole.
constexpr std::size_t kMostShown = kMaxLine + 4;

std::string run_time_text(std::chrono::milliseconds run_time) {
  return duration_text(std::chrono::floor<std::chrono::seconds>(run_time));
}

/// What the reason alone says, without the message.
std::string reason_sentence(const Outcome& outcome) {
  switch (outcome.reason) {
    case EndReason::Exited:
      return tr_format("exited with code {}", outcome.exit_code);
    case EndReason::Signalled:
      return tr_format("killed by signal {}", signal_text(outcome.signal));
    case EndReason::TimeLimit:
      return tr_format("reached its time limit after {}", run_time_text(outcome.run_time));
    case EndReason::Cancelled:
      return tr("cancelled");
    case EndReason::OutOfMemory:
      if (outcome.peak_memory.bytes <= 0) return tr("killed at its memory limit");
      return tr_format("killed at its memory limit, having used {}",
                       memory_text(outcome.peak_memory));
    case EndReason::LaunchFailed:
      return tr("launch failed");
    case EndReason::SupervisorDied:
      return tr("its supervisor was killed, so its exit code is not known");
    case EndReason::Rebooted:
      return tr("the machine went down while it ran");
    case EndReason::DependencyFailed:
      return tr("a job it depends on did not finish");
    case EndReason::NotStarted:
      return tr("never started");
    case EndReason::Preempted:
      return tr("preempted by a job ahead of it");
  }
  return tr("ended");
}

/// The reason with its message, where the two are kept together (Queued::why); "" elsewhere.
std::string with_detail(const Outcome& outcome) {
  switch (outcome.reason) {
    case EndReason::LaunchFailed:
      return kept<Kept::LaunchFailedFor>(outcome.message);
    case EndReason::NotStarted:
      return kept<Kept::NeverStartedFor>(outcome.message);
    case EndReason::Rebooted:
      return kept<Kept::WentDownFor>(outcome.message);
    case EndReason::DependencyFailed:
      return kept<Kept::DependencyFailedFor>(outcome.message);
    default:
      return "";
  }
}

struct StatusVisitor {
  Status operator()(const Queued&) const { return Status::Queued; }
  Status operator()(const Held&) const { return Status::Hold; }
  Status operator()(const Starting& state) const {
    return state.stop ? Status::Completing : Status::Starting;
  }
  Status operator()(const Running& state) const {
    if (state.stop) return Status::Completing;
    return state.suspended ? Status::Suspended : Status::Running;
  }
  Status operator()(const Ended& state) const { return state.status; }
};

}  // namespace

std::size_t bytes_of(const Payload& payload) {
  constexpr std::size_t kLength = 4;
  std::size_t bytes = payload.config.size();
  if (payload.script) bytes += payload.script->size();
  for (const std::string& word : payload.argv) bytes += kLength + word.size();
  for (const std::string& variable : payload.environment) bytes += kLength + variable.size();
  return bytes;
}

std::int64_t bytes_of(const Job& job) {
  return static_cast<std::int64_t>(bytes_of(job.spec)) + job.payload_bytes;
}

std::string shown_line(std::string_view text) {
  std::string line = printable(text.substr(0, kMostShown));
  if (line.size() <= kMaxLine) return line;
  line.resize(kMaxLine);
  while (!is_utf8(line)) line.pop_back();
  return line + "...";
}

std::string shown_line(std::span<const std::string> argv) {
  std::vector<std::string> words;
  for (std::size_t length = 0; words.size() < argv.size() && length <= kMaxLine;) {
    words.push_back(argv[words.size()].substr(0, kMostShown));
    length += words.back().size() + (words.size() > 1 ? 1 : 0);
  }
  return shown_line(shell_quote(words));
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("{}", signal) : fmt::format("{} (SIG{})", signal, name);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? tr_format("signal {}", signal) : fmt::format("SIG{}", name);
}

Status status_of(const Job& job) { return std::visit(StatusVisitor{}, job.state); }

bool is_pending(const Job& job) {
  return std::holds_alternative<Queued>(job.state) || std::holds_alternative<Held>(job.state);
}

bool is_active(const Job& job) {
  return std::holds_alternative<Starting>(job.state) || std::holds_alternative<Running>(job.state);
}

bool is_ended(const Job& job) { return std::holds_alternative<Ended>(job.state); }

std::unexpected<Error> wrong_state(const Job& job, std::string_view wish) {
  return fail(Code::WrongState,
              tr_format("job {} is {}: {}", job.id.value, status_name(status_of(job)), wish));
}

const Attempt* attempt_of(const Job& job) {
  if (const auto* starting = std::get_if<Starting>(&job.state)) return &starting->attempt;
  if (const auto* running = std::get_if<Running>(&job.state)) return &running->attempt;
  const auto* ended = std::get_if<Ended>(&job.state);
  return ended != nullptr && ended->attempt ? &*ended->attempt : nullptr;
}

std::vector<Allocation> allocations_of(const Attempt& attempt) {
  std::vector<Allocation> all = {attempt.allocation};
  all.insert(all.end(), attempt.peers.begin(), attempt.peers.end());
  return all;
}

std::int64_t gpu_parts_of(const Request& request) {
  return std::int64_t{request.gpus} * request.share.parts * request.nodes;
}

std::chrono::milliseconds gpu_time_of(const Request& request, std::chrono::milliseconds held) {
  return held * gpu_parts_of(request) / Share::kWholeParts;
}

std::chrono::milliseconds gpu_time_of(const Job& job, const Ended& ended) {
  const auto ran = ended.attempt ? ended.outcome.run_time : std::chrono::milliseconds(0);
  return job.served_gpu_time + gpu_time_of(job.spec.request, ran);
}

std::chrono::milliseconds run_time_of(const Job& job, MonoTime now) {
  using std::chrono::milliseconds;
  if (const auto* ended = std::get_if<Ended>(&job.state)) return ended->outcome.run_time;
  if (!is_active(job)) return milliseconds(0);
  MonoTime until = now;
  milliseconds stood{0};
  if (const auto* running = std::get_if<Running>(&job.state)) {
    const bool counts = running->lends && running->suspended_by.empty();
    if (!counts) until = running->suspended.value_or(now);
    stood = running->stood;
  }
  return std::max(milliseconds(0), until - attempt_of(job)->started_mono - stood);
}

Status status_for(const Outcome& outcome) {
  switch (outcome.reason) {
    case EndReason::Exited:
      return outcome.exit_code == 0 ? Status::Finished : Status::Failed;
    case EndReason::Signalled:
    case EndReason::OutOfMemory:
    case EndReason::LaunchFailed:
    case EndReason::NotStarted:
      return Status::Failed;
    case EndReason::TimeLimit:
      return Status::Timeout;
    case EndReason::Cancelled:
    case EndReason::DependencyFailed:
    case EndReason::Preempted:
      return Status::Cancelled;
    case EndReason::SupervisorDied:
    case EndReason::Rebooted:
      return Status::Lost;
  }
  return Status::Failed;
}

std::string outcome_text(const Outcome& outcome) {
  const std::string sentence = reason_sentence(outcome);
  const std::string& message = outcome.message;
  if (message.empty()) return sentence;
  // What is known of an end that nobody saw is the whole of it, and who cancelled is said with it.
  if (outcome.reason == EndReason::SupervisorDied || is_kept(message, Kept::CancelledBeforeStart)) {
    return printable(kept_text(message));
  }
  if (const std::string both = with_detail(outcome); !both.empty()) {
    return printable(kept_text(both));
  }
  return tr_format("{}: {}", sentence, printable(kept_text(message)));
}

Outcome public_part(Outcome outcome) {
  if (outcome.reason == EndReason::LaunchFailed || outcome.reason == EndReason::NotStarted) {
    outcome.message.clear();
  }
  return outcome;
}

std::string public_part(const std::string& why) {
  if (why.empty() || is_kept(why, Kept::PodRefused)) return why;
  return kept<Kept::LastAttemptFailed>();
}

}  // namespace gflow

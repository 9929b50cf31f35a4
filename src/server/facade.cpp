// SPDX-License-Identifier: Apache-2.0
#include "server/facade.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "base/translate.h"
#include "base/version.h"
#include "os/clock.h"
#include "server/routes.h"

namespace gflow::server {
namespace {

template <typename... Kinds>
struct Overloaded : Kinds... {
  using Kinds::operator()...;
};

std::unexpected<Error> not_here() {
  // No route leads here: server/facade_for_tests.h compares both tables with that of the routes.
  return fail(Code::Usage, "not of another scheduler");
}

/// Those of which something is another, new and gone ones, too.
std::set<JobId> changes_between(const engine::State& was, const engine::State& is) {
  std::set<JobId> changed;
  for (const Job* job : was.list({})) {
    if (is.find(job->id) == nullptr) changed.insert(job->id);
  }
  for (const Job* job : is.list({})) {
    const Job* known = was.find(job->id);
    if (known == nullptr || status_of(*known) != status_of(*job) || known->spec != job->spec) {
      changed.insert(job->id);
    }
  }
  return changed;
}

}  // namespace

const Elsewhere* elsewhere_of(std::span<const Elsewhere> table, const Route& route) {
  const auto found = std::ranges::find_if(table, [&route](const Elsewhere& one) {
    return (one.method.empty() || one.method == route.method) &&
           route.pattern.starts_with(one.path);
  });
  return found == table.end() ? nullptr : &*found;
}

Facade::Facade(boost::asio::io_context& io, About about)
    : about_(std::move(about)), state_({}, ""), started_(os::now()), feed_(io) {}

Now Facade::now() const { return os::now(); }

void Facade::trouble(const std::string& kind, const std::string& what) {
  if (what.empty()) {
    troubles_.erase(kind);
  } else {
    troubles_[kind] = what;
  }
}

void Facade::show(engine::State state, std::map<JobId, std::string> told) {
  const engine::State was = std::exchange(state_, std::move(state));
  told_ = std::move(told);
  feed_.record(state_.revision(), changes_between(was, state_));
}

Result<const Job*> Facade::find(JobId id) const {
  if (const Job* job = state_.find(id)) return job;
  return fail(Code::NotFound, tr_format("there is no job {}", id.value));
}

Result<void> Facade::serves(const Route& route) const {
  const Elsewhere* one = elsewhere_of(about_.elsewhere, route);
  if (one == nullptr || one->text.empty()) return {};
  return fail(Code::Usage, tr_format("gflow does not do that here: {}", tr(one->text)));
}

std::optional<std::string> Facade::told(const Job& job) const {
  const auto at = told_.find(job.id);
  return at == told_.end() ? std::nullopt : std::optional(at->second);
}

void Facade::request(engine::Event event, Answer answer, Check check) {
  auto checked = check ? check() : Result<void>{};
  if (!checked) return answer(std::unexpected(std::move(checked).error()));
  std::visit(Overloaded{
                 [&](const engine::event::Cancel& asked) { cancel(asked, answer); },
                 [&](const engine::event::Hold& asked) { hold(asked, answer); },
                 [&](const engine::event::Release& asked) { release(asked, answer); },
                 [&](const engine::event::ApplyDefrag& asked) { move(asked, answer); },
                 [&](const auto& /*other*/) { answer(not_here()); },
             },
             event);
}

std::shared_ptr<void> Facade::on_change(std::uint64_t revision,
                                        std::optional<JobId> job,
                                        std::chrono::milliseconds most,
                                        std::function<void()> then) {
  return feed_.wait(revision, job, most, std::move(then));
}

api::DaemonView Facade::daemon(OthersJobs /*shown*/) const {
  api::DaemonView view;
  view.version = std::string(kVersion);
  view.pid = static_cast<int>(::getpid());
  view.started = started_.wall;
  view.up_time = std::chrono::floor<std::chrono::seconds>(now().mono - started_.mono);
  view.mode = about_.mode;
  view.api_url = api_url_;
  view.devices = about_.source;
  for (const auto& [kind, what] : troubles_) view.warnings.push_back(what);
  return view;
}

Result<void> Facade::ready() const {
  if (troubles_.empty()) return {};
  return fail(Code::Unreachable, tr("parts of what is shown here cannot be read now"));
}

void Facade::move(const engine::event::ApplyDefrag& /*asked*/, const Answer& answer) {
  answer(not_here());
}

Result<void> Facade::keep_tokens(std::vector<Token> /*tokens*/) { return not_here(); }
Result<void> Facade::reload() { return not_here(); }

}  // namespace gflow::server

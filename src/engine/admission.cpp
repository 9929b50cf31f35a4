// SPDX-License-Identifier: Apache-2.0
#include "engine/admission.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"
#include "engine/feasible.h"
#include "engine/state.h"

namespace gflow::engine {
namespace {

/// Where in a submission of several jobs an error lies: nothing for a single job.
Result<void> at_position(Result<void> checked, std::size_t position, std::size_t count) {
  if (checked || count == 1) return checked;
  return with_context(checked.error(), tr_format("job {} of {}", position + 1, count));
}

}  // namespace

Result<void> check_edges(const Index& index,
                         std::uint32_t uid,
                         std::size_t more,
                         std::size_t fewer) {
  const auto refuse = [&](std::size_t have, std::size_t most, std::string_view whose) {
    return fail(Code::Exhausted,
                tr_format("{} more dependencies: {} waiting jobs have {}, and the maximum is {}; "
                          "let the jobs depend on one job that depends on the others",
                          more,
                          whose,
                          have - fewer,
                          most));
  };
  if (more > kMostEdgesAtOnce) {
    return fail(Code::Usage,
                tr_format("{} dependencies in one request, and {} are the maximum: let the jobs "
                          "depend on one job that depends on the others",
                          more,
                          kMostEdgesAtOnce));
  }
  const DependencyGraph& graph = index.dependencies;
  if (graph.edges_of(uid) - fewer + more > index.policy.max_dependencies_per_user) {
    return refuse(graph.edges_of(uid), index.policy.max_dependencies_per_user, "the user's");
  }
  if (graph.edges() - fewer + more > index.policy.max_dependencies) {
    return refuse(graph.edges(), index.policy.max_dependencies, "all");
  }
  return {};
}

namespace {

/// Of an array the name of the last task, which is the longest.
Result<void> check_name_of(const event::Submit& event, std::size_t position) {
  std::string name = event.specs[position].name;
  if (name.empty()) return {};
  if (!event.tasks.empty() && event.tasks[position]) {
    const TaskRange& tasks = *event.tasks[position];
    name = task_name(name, tasks.number(tasks.count - 1));
  }
  GF_CHECK(check_name(name));
  return {};
}

Result<void> check_spec(Index& index, const event::Submit& event, std::size_t position) {
  const JobSpec& spec = event.specs[position];
  GF_CHECK(check_name_of(event, position));
  GF_CHECK(check_fields(spec));
  GF_CHECK(check_preemption(spec));
  GF_CHECK(check_dependencies(index, spec.dependencies, position, sight_of(event.by)));
  GF_CHECK(check_request(index, spec.request));
  return check_gpu_quota(index.policy.gpu_quota, spec);
}

/// Whether so much more of scripts, environments and other texts may come to those of a user.
Result<void> check_stored(const Index& index, const User& user, Memory more) {
  const auto at = index.stored.find(user.uid);
  const Memory own{at == index.stored.end() ? 0 : at->second};
  if (own + more <= index.policy.max_stored_per_user) return {};
  return fail(
      Code::Exhausted,
      tr_format("{} more of scripts, environments and other texts: the waiting and running jobs of "
                "{} hold {}, and the maximum per user is {} (limits.max_stored_per_user)",
                memory_text(more),
                user.name,
                memory_text(own),
                memory_text(index.policy.max_stored_per_user)));
}

}  // namespace

Result<void> check_submission(Index& index, const event::Submit& event) {
  const std::uint64_t count = event.count();
  const std::size_t pending = index.count(kPending);
  if (count == 0) return fail(Code::Usage, tr("the submission has no jobs"));
  if (count > index.policy.max_submit) {
    return fail(
        Code::Exhausted,
        tr_format("{} jobs in one submission; the maximum is {}", count, index.policy.max_submit));
  }
  if (pending + count > index.policy.max_queued) {
    return fail(
        Code::Exhausted,
        tr_format(
            "{} jobs are already waiting; the maximum is {}", pending, index.policy.max_queued));
  }
  for (const JobSpec& spec : event.specs) GF_CHECK(may_submit_for(event.by, spec.user));
  const std::size_t own = index.pending_of(event.specs.front().user.uid);
  if (own + count > index.policy.max_queued_per_user) {
    return fail(Code::Exhausted,
                tr_format("{} jobs of {} are already waiting; the maximum per user is {}",
                          own,
                          event.specs.front().user.name,
                          index.policy.max_queued_per_user));
  }
  std::int64_t bytes = 0;
  std::size_t edges = 0;
  for (std::size_t i = 0; i < event.specs.size(); ++i) {
    auto each = static_cast<std::int64_t>(bytes_of(event.specs[i]));
    if (!event.payload_bytes.empty()) each += event.payload_bytes[i];
    bytes += each * static_cast<std::int64_t>(event.count_of(i));
    edges += event.specs[i].dependencies.jobs.size() * event.count_of(i);
  }
  GF_CHECK(check_stored(index, event.specs.front().user, Memory{bytes}));
  if (edges > 0) GF_CHECK(check_edges(index, event.specs.front().user.uid, edges, 0));
  for (std::size_t i = 0; i < event.specs.size(); ++i) {
    const JobSpec& spec = event.specs[i];
    auto checked = check_spec(index, event, i);
    if (checked) {
      checked = may_have_priority(index.policy.priority, event.by, spec.project, spec.priority);
    }
    GF_CHECK(at_position(std::move(checked), i, event.specs.size()));
  }
  return {};
}

Result<void> State::check(const event::Submit& event) const {
  return check_submission(*index_, event);
}

}  // namespace gflow::engine

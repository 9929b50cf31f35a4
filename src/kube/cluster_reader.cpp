// SPDX-License-Identifier: Apache-2.0
#include "kube/cluster_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/translate.h"
#include "base/word_hash.h"
#include "core/task_payload.h"
#include "kube/elsewhere.h"
#include "kube/want.h"
#include "os/clock.h"
#include "os/random.h"

namespace gflow::kube {
namespace {

using std::chrono::steady_clock;

/// What comes within this is shown together.
constexpr std::chrono::milliseconds kTogether{200};
constexpr int kRestPerWork = 9;

}  // namespace

ClusterReader::ClusterReader(boost::asio::io_context& io, const Hands& hands, About about)
    : Facade(io,
             {.mode = "kubernetes", .source = about.cluster, .elsewhere = elsewhere_of_cluster()}),
      about_(std::move(about)),
      writer_(hands.jobs),
      logs_(hands.logs),
      asker_(hands.moves),
      next_(io) {
  facts_.scheduler = about_.scheduler;
}

void ClusterReader::put(Node node) {
  facts_.nodes.insert_or_assign(node.uid, std::move(node));
  changed();
}

void ClusterReader::node_gone(const std::string& uid) {
  facts_.nodes.erase(uid);
  changed();
}

void ClusterReader::put(Pod pod) {
  facts_.pods.insert_or_assign(pod.uid, std::move(pod));
  changed();
}

void ClusterReader::pod_gone(const std::string& uid) {
  facts_.pods.erase(uid);
  changed();
}

void ClusterReader::put(BatchJob job) {
  const std::string uid = job.stand_in.uid;
  facts_.jobs.insert_or_assign(uid, std::move(job));
  untold_.erase(uid);
  in_doubt_.erase(uid);
  changed();
}

void ClusterReader::job_gone(const std::string& uid) {
  facts_.jobs.erase(uid);
  untold_.erase(uid);
  in_doubt_.erase(uid);
  if (under_way_ > 0) gone_meanwhile_.insert(uid);
  changed();
}

void ClusterReader::jobs_are_listed_anew() { in_doubt_ = untold_; }

void ClusterReader::jobs_were_listed() {
  for (const std::string& uid : std::exchange(in_doubt_, {})) {
    facts_.jobs.erase(uid);
    untold_.erase(uid);
    changed();
  }
}

void ClusterReader::put(Budget budget) {
  facts_.budgets.insert_or_assign(budget.uid, std::move(budget));
  changed();
}

void ClusterReader::budget_gone(const std::string& uid) {
  facts_.budgets.erase(uid);
  changed();
}

void ClusterReader::put(EndedPod pod) {
  const std::string uid = pod.uid;
  facts_.ended.insert_or_assign(uid, std::move(pod));
  changed();
}

void ClusterReader::ended_gone(const std::string& uid) {
  facts_.ended.erase(uid);
  changed();
}

void ClusterReader::limit(engine::GpuQuota quota, Levels levels, bool are_levels_unread) {
  facts_.quota = std::move(quota);
  facts_.levels = std::move(levels);
  facts_.are_levels_unread = are_levels_unread;
  changed();
}

void ClusterReader::begin() {
  has_begun_ = true;
  draw();
}

void ClusterReader::changed() { draw_soon(kTogether); }

void ClusterReader::draw_soon(std::chrono::milliseconds most) {
  if (!has_begun_ || std::exchange(is_due_, true)) return;
  next_.expires_at(std::max(not_before_, steady_clock::now() + most));
  next_.async_wait([this](const boost::system::error_code& error) {
    if (!error) draw();
  });
}

void ClusterReader::draw() {
  is_due_ = false;
  const auto begun = steady_clock::now();
  Picture fresh = picture_of(facts_, now(), next_revision());
  numbers_ = std::move(fresh.numbers);
  show(std::move(fresh.state), std::move(fresh.told));
  const auto ended = steady_clock::now();
  not_before_ = ended + kRestPerWork * (ended - begun);
  for (const auto& then : std::exchange(after_draw_, {})) then();
}

void ClusterReader::submit(api::SubmitRequest request,
                           const Principal& /*by*/,
                           Answer answer,
                           server::SubmitIf /*of allocations alone*/) {
  auto jobs = jobs_of(std::move(request));
  if (!jobs) return answer(std::unexpected(std::move(jobs).error()));
  ++under_way_;
  writer_.make(*std::move(jobs),
               [this, answer = std::move(answer)](const Result<std::vector<BatchJob>>& done) {
                 made(done, answer);
               });
}

/// What GPUs are called there, and whether containers can be given what was chosen.
JobPlace ClusterReader::place() const {
  JobPlace place{
      .name_space = about_.name_space, .scheduler = about_.scheduler, .image = about_.image};
  std::set<std::string> offered;
  for (const auto& [uid, node] : facts_.nodes) {
    for (const auto& [name, amount] : node.allocatable) {
      if (amount > 0) offered.insert(name);
    }
  }
  place.has_allocations = offered.contains(std::string(kAllocationResource));
  const auto first = std::ranges::find_if(kGpuResources, [&offered](const GpuResource& one) {
    return offered.contains(std::string(one.name));
  });
  if (first != kGpuResources.end()) place.gpus = first->name;
  return place;
}

/// All of them before one is made.
Result<std::vector<JobWriter::New>> ClusterReader::jobs_of(api::SubmitRequest request) const {
  if (no_jobs_) return std::unexpected(*no_jobs_);
  const JobPlace where = place();
  const std::string key =
      request.idempotency_key.empty() ? os::random_hex(16) : request.idempotency_key;
  std::vector<JobWriter::New> jobs;
  for (const api::SubmitRequest::Item& item : request.items) {
    if (item.tasks) {
      return fail(Code::Usage,
                  tr("the ids of a cluster's jobs are not one behind the other: submit each task "
                     "of an array as an item of its own, as gbatch does"));
    }
    if (!item.depends_on_siblings.empty()) {
      return fail(Code::Usage, tr("jobs of a cluster do not wait for each other"));
    }
    const Payload payload =
        item.like ? complete(&request.items[*item.like].payload, item.payload) : item.payload;
    const std::string position = fmt::format("/{}", jobs.size());
    const std::string digest = digest_of(key + position);
    JobWriter::New made{
        .name_space = where.name_space,
        .name = object_name_of(item.spec, payload, digest.substr(digest.find('-') + 1)),
        .submission = request.digest + position,
        .document = {}};
    made.document =
        GF_TRY(job_manifest(item.spec, payload, where, made.name, made.submission)).dump();
    jobs.push_back(std::move(made));
  }
  return jobs;
}

/// They are shown from now on, and no later than they are told of.
void ClusterReader::made(const Result<std::vector<BatchJob>>& jobs, const Answer& answer) {
  std::vector<std::string> uids;
  for (const BatchJob& job : jobs.value_or(std::vector<BatchJob>{})) {
    uids.push_back(job.stand_in.uid);
    if (gone_meanwhile_.contains(uids.back())) continue;
    if (facts_.jobs.try_emplace(uids.back(), job).second) untold_.insert(uids.back());
  }
  if (--under_way_ == 0) gone_meanwhile_.clear();
  if (!jobs) return answer(std::unexpected(jobs.error()));
  after_draw_.emplace_back([this, uids, answer] { answer(numbers_of(uids)); });
  draw_soon({});
}

Result<std::vector<JobId>> ClusterReader::numbers_of(const std::vector<std::string>& uids) const {
  std::vector<JobId> ids;
  for (const std::string& uid : uids) {
    const auto at = numbers_.find(uid);
    if (at == numbers_.end()) {
      return fail(Code::NotFound, tr("a job was deleted as soon as it was submitted"));
    }
    ids.push_back(at->second);
  }
  return ids;
}

/// All of them before one is deleted.
void ClusterReader::cancel(const engine::event::Cancel& asked, const Answer& answer) {
  if (asked.signal != 0) {
    return answer(fail(
        Code::Usage,
        tr("pods are ended by Kubernetes, with SIGTERM and then SIGKILL: leave out --signal")));
  }
  std::vector<JobWriter::Old> objects;
  for (const JobId id : asked.jobs) {
    auto object = object_of(id);
    if (!object) return answer(std::unexpected(std::move(object).error()));
    objects.push_back(*std::move(object));
  }
  writer_.remove(std::move(objects), [jobs = asked.jobs, answer](const Result<void>& done) {
    if (!done) return answer(std::unexpected(done.error()));
    answer(jobs);
  });
}

void ClusterReader::hold(const engine::event::Hold& asked, const Answer& answer) {
  suspend(asked.jobs, true, answer);
}

void ClusterReader::release(const engine::event::Release& asked, const Answer& answer) {
  if (!asked.at) return suspend(asked.jobs, false, answer);
  answer(fail(Code::Usage,
              tr("jobs of a cluster have no begin time: leave out --at, or release it then")));
}

/// Checked here by what is shown, and by the scheduler once more, by what it knows then.
void ClusterReader::move(const engine::event::ApplyDefrag& asked, const Answer& answer) {
  auto moves = moves_for(asked);
  if (!moves) return answer(std::unexpected(std::move(moves).error()));
  asker_.ask(*std::move(moves), [moved = asked.moves, answer](const Result<void>& done) {
    if (!done) return answer(std::unexpected(done.error()));
    answer(moved);
  });
}

Result<MovesAsked> ClusterReader::moves_for(const engine::event::ApplyDefrag& asked) const {
  GF_TRY(find(asked.job));
  for (const JobId id : asked.moves) GF_TRY(find(id));
  if (auto checked = state().check_moves(asked.job, asked.moves, asked.most, now()); !checked) {
    return fail(checked.error().code, with_pods_named(checked.error().message, state()));
  }
  MovesAsked moves{.id = os::random_hex(16), .pods = {GF_TRY(pod_of(asked.job))}, .moves = {}};
  for (const DefragPlan& plan : state().defrag(asked.most, now())) {
    if (plan.job != asked.job) continue;
    for (const DefragStart& other : plan.together) moves.pods.push_back(GF_TRY(pod_of(other.job)));
  }
  for (const JobId id : asked.moves) moves.moves.push_back(GF_TRY(pod_of(id)));
  if (std::max(moves.pods.size(), moves.moves.size()) > kMostPodsAsked) {
    return fail(Code::WrongState,
                tr_format("no more than {} pods start or move at once", kMostPodsAsked));
  }
  GF_CHECK(check_budgets(moves.moves));
  return moves;
}

/// They are evicted at once: what a budget lets go of that is no more than it says now. Half of
/// them moved would help nobody.
Result<void> ClusterReader::check_budgets(const std::vector<PodName>& moves) const {
  if (!no_budgets_.empty()) return fail(Code::WrongState, no_budgets_);
  std::vector<const Pod*> pods;
  for (const PodName& pod : moves) pods.push_back(&facts_.pods.at(pod.uid));
  const Budget* budget = budget_exceeded(facts_.budgets, pods);
  if (budget == nullptr) return {};
  return fail(Code::WrongState,
              tr_format("the disruption budget {}/{} lets {} pods go now, and more of those that "
                        "would move are its own: ask again when it lets all of them go",
                        budget->name_space,
                        budget->name,
                        budget->allowed));
}

/// Of a Job that gbatch made, the pod as which it is shown.
Result<PodName> ClusterReader::pod_of(JobId id) const {
  const std::string* uid = uid_of(id);
  const Pod* pod = nullptr;
  for (const auto& [its, one] : facts_.pods) {
    if (uid == nullptr || (its != *uid && one.job != *uid)) continue;
    if (pod == nullptr || pod->created < one.created) pod = &one;
  }
  if (pod != nullptr) return PodName{pod->name_space, pod->name, pod->uid};
  return fail(Code::WrongState, tr_format("job {} has no pod yet: ask again", id.value));
}

/// All of them before one is written; they are shown so from now on.
void ClusterReader::suspend(const std::vector<JobId>& ids, bool is_held, const Answer& answer) {
  std::vector<JobWriter::Old> objects;
  for (const JobId id : ids) {
    auto object = suspendable(id, is_held);
    if (!object) return answer(std::unexpected(std::move(object).error()));
    objects.push_back(*std::move(object));
  }
  writer_.hold(
      std::move(objects), is_held, [this, ids, answer](const Result<std::vector<BatchJob>>& jobs) {
        if (!jobs) return answer(std::unexpected(jobs.error()));
        for (const BatchJob& job : *jobs) {
          const auto its = facts_.jobs.find(job.stand_in.uid);
          if (its != facts_.jobs.end()) its->second = job;
        }
        after_draw_.emplace_back([ids, answer] { answer(ids); });
        draw_soon({});
      });
}

Result<JobWriter::Old> ClusterReader::suspendable(JobId id, bool is_held) const {
  JobWriter::Old object = GF_TRY(object_of(id));
  const Job& job = *GF_TRY(find(id));
  if (!facts_.jobs.contains(object.uid)) {
    return fail(Code::WrongState,
                tr_format("job {} is a pod that gbatch did not make, which Kubernetes cannot hold",
                          id.value));
  }
  if (is_held && !is_pending(job)) return wrong_state(job, tr("only a waiting job can be held"));
  const bool is_on_hold = facts_.jobs.at(object.uid).is_suspended;
  if (!is_held && !is_on_hold) return wrong_state(job, tr("it is not on hold"));
  return object;
}

/// Null where there is none.
const std::string* ClusterReader::uid_of(JobId id) const {
  const auto at =
      std::ranges::find_if(numbers_, [id](const auto& one) { return one.second == id; });
  return at == numbers_.end() ? nullptr : &at->first;
}

std::optional<ClusterReader::DistantLog> ClusterReader::distant_log(const Job& job) const {
  const std::string* uid = uid_of(job.id);
  if (uid == nullptr) return std::nullopt;
  const std::string& name_space = job.spec.user.name;
  const auto its = facts_.jobs.find(*uid);
  return logs_.of(its == facts_.jobs.end() ? one_pod(name_space, job.spec.name)
                                           : pods_of_job(name_space, its->second.name));
}

Result<JobWriter::Old> ClusterReader::object_of(JobId id) const {
  const Job* job = GF_TRY(find(id));
  const std::string* found = uid_of(id);
  if (found == nullptr) {
    return fail(Code::NotFound, tr_format("there is no job {}", id.value));
  }
  const std::string& uid = *found;
  if (const auto its = facts_.jobs.find(uid); its != facts_.jobs.end()) {
    const std::string& name = its->second.name;
    if (!is_ended(*job)) return JobWriter::Old{jobs_path(job->spec.user.name) + "/" + name, uid};
    return fail(Code::WrongState,
                tr_format("job {} has already ended; 'kubectl delete job {} -n {}' removes it and "
                          "its log",
                          id.value,
                          name,
                          job->spec.user.name));
  }
  const auto alone = facts_.pods.find(uid);
  if (alone == facts_.pods.end()) {  // it has gone, and is still drawn
    return fail(Code::NotFound, tr_format("there is no job {}", id.value));
  }
  const Pod& pod = alone->second;
  if (pod.owner.empty()) return JobWriter::Old{pods_path(pod.name_space) + "/" + pod.name, uid};
  return fail(Code::WrongState,
              tr_format("pod {} is one of {}, which would make another: delete or scale that with "
                        "kubectl",
                        pod.full_name(),
                        pod.owner));
}

}  // namespace gflow::kube

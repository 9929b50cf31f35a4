// SPDX-License-Identifier: Apache-2.0
#include "slurm/submitter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "base/word_hash.h"
#include "core/slurm_text.h"
#include "core/task_payload.h"
#include "os/random.h"
#include "slurm/look.h"
#include "slurm/programs.h"
#include "slurm/submission.h"
#include "slurm/under_way.h"

namespace gflow::slurm {
namespace {

using std::chrono::steady_clock;

/// How long an sbatch of an earlier try may still go on.
constexpr std::chrono::seconds kMostWait{75};
/// How long after its end slurmctld may still take what a killed sbatch sent.
constexpr std::chrono::seconds kMostLate{10};
constexpr std::chrono::seconds kBetweenLooks{1};

/// As a submission is known again by: of the key, its content and the position in it; and the group
/// its jobs are listed by (facts.h).
std::string comment_of(const api::SubmitRequest& request, const std::string& key, std::size_t at) {
  const std::string& group = request.items[at].spec.group;
  return fmt::format("gflow:{}:{}:{}{}{}",
                     digest_of(key),
                     digest_of(request.digest),
                     at,
                     group.empty() ? "" : ":",
                     group);
}

/// The job that an earlier try of this made. Errors: KeyReused.
Result<std::optional<JobId>> made_before(const std::vector<Job>& jobs, const std::string& comment) {
  const auto parts = fields_between(comment, ':');
  for (const Job& job : jobs) {
    if (job.uid != ::geteuid()) continue;
    // What the script says as its comment stands behind it.
    const std::string_view noted = std::string_view(job.comment).substr(0, job.comment.find(' '));
    if (noted == comment) return JobId(job.id);
    const auto its = fields_between(noted, ':');
    if (its.size() >= 4 && its[0] == parts[0] && its[1] == parts[1] && its[3] == parts[3]) {
      return fail(Code::KeyReused,
                  tr("the Idempotency-Key was used for another submission; choose a new one"));
    }
  }
  return std::nullopt;
}

/// The same of a job that may not be there yet.
Result<std::optional<JobId>> made_late(const std::string& comment) {
  const auto end = steady_clock::now() + kMostLate;
  while (true) {
    const auto jobs = read_own_jobs();
    if (jobs) {
      const auto id = GF_TRY(made_before(*jobs, comment));
      if (id) return id;
    }
    if (steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

/// "42" or "42;cluster"
Result<JobId> id_in(std::string_view said) {
  const auto id = parse_number(trim(said.substr(0, said.find(';'))));
  if (id) return JobId(*id);
  return fail(Code::Failure,
              tr_format("sbatch gave no number: {}", printable(said.substr(0, 200))));
}

struct Submission {
  Call call;
  std::string comment;
};

/// All of them before one is submitted.
Result<std::vector<Submission>> calls_of(const api::SubmitRequest& request,
                                         const std::string& key,
                                         const Facts& facts) {
  std::vector<Submission> jobs;
  for (const api::SubmitRequest::Item& item : request.items) {
    if (item.tasks) {
      return fail(Code::Usage,
                  tr("the ids of Slurm's jobs are not one behind the other: submit each task of an "
                     "array as an item of its own, as gbatch does"));
    }
    if (!item.depends_on_siblings.empty()) {
      return fail(Code::Usage, tr("submit the jobs one after the other, with --depends-on"));
    }
    const Payload payload =
        item.like ? complete(&request.items[*item.like].payload, item.payload) : item.payload;
    const std::string comment = comment_of(request, key, jobs.size());
    jobs.push_back({GF_TRY(sbatch_call(item.spec, payload, facts, comment)), comment});
  }
  return jobs;
}

/// Which jobs are there although not all of them are.
Error with_made(Error error, const std::vector<JobId>& made, std::size_t wanted) {
  if (made.empty()) return error;
  std::string ids;
  for (const JobId id : made) ids += fmt::format("{}{}", ids.empty() ? "" : " ", id.value);
  error.message = tr_format("{}; of {} jobs, {} were submitted before: 'gcancel {}' cancels them",
                            error.message,
                            wanted,
                            made.size(),
                            ids);
  return error;
}

/// Whether slurmctld may have taken it although sbatch heard nothing.
bool may_be_done(const Error& error) {
  return error.code == Code::Timeout || error.message.find("timed out") != std::string::npos ||
         error.message.find("Zero Bytes were transmitted") != std::string::npos;
}

class Submitter {
 public:
  /// `under_way`: nothing where no file can be had for it.
  Submitter(const Facts& facts, std::optional<UnderWay> under_way)
      : facts_(facts), under_way_(std::move(under_way)) {}

  Result<std::vector<JobId>> submit(const std::vector<Submission>& jobs) {
    std::vector<JobId> ids;
    for (const Submission& one : jobs) {
      const auto id = submit_one(one);
      if (!id) return std::unexpected(with_made(id.error(), ids, jobs.size()));
      ids.push_back(*id);
    }
    is_heard_of();
    return ids;
  }

 private:
  Result<JobId> submit_one(const Submission& one) {
    auto id = GF_TRY(made_before(facts_.jobs, one.comment));
    if (!id && std::exchange(may_come_late_, false)) id = GF_TRY(made_late(one.comment));
    if (id) return *id;
    Call call = one.call;
    if (under_way_) call.lock = under_way_->descriptor();
    const auto said = output_of(call);
    if (said) return id_in(*said);
    if (!may_be_done(said.error())) {
      is_heard_of();
      return std::unexpected(said.error());
    }
    id = GF_TRY(made_late(one.comment));
    if (id) return *id;
    return fail(said.error().code,
                tr_format("{}, and no job of it is to be seen: look once more, with 'gqueue', "
                          "before you submit it again",
                          said.error().message));
  }

  /// If that cannot be written, a later try looks for it in vain: ignoring.
  void is_heard_of() {
    if (under_way_) (void)under_way_->is_heard_of();
  }

  const Facts& facts_;
  std::optional<UnderWay> under_way_;
  bool may_come_late_ = under_way_ && under_way_->was_cut_short();
};

}  // namespace

Result<std::vector<JobId>> submit_all(const api::SubmitRequest& request) {
  const std::string key =
      request.idempotency_key.empty() ? os::random_hex(16) : request.idempotency_key;
  auto begun = UnderWay::begin(key, kMostWait);
  if (!begun && begun.error().code == Code::Timeout) return std::unexpected(begun.error());
  const Facts facts = GF_TRY(read_facts());
  std::optional<UnderWay> under_way;
  if (begun) under_way = *std::move(begun);
  auto jobs = calls_of(request, key, facts);
  if (!jobs) {
    if (under_way) (void)under_way->is_heard_of();  // nothing is submitted
    return std::unexpected(jobs.error());
  }
  return Submitter(facts, std::move(under_way)).submit(*std::move(jobs));
}

}  // namespace gflow::slurm

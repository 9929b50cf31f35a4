// SPDX-License-Identifier: Apache-2.0
#include "kube/job_writer.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/translate.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr int kNotFound = 404;
constexpr int kConflict = 409;
constexpr int kMostTries = 5;  // of what a busy server did not do

Result<BatchJob> job_in(const Answer& answer) {
  const Json object = Json::parse(answer.body, nullptr, false);
  if (object.is_object()) return batch_job_of(object);
  return fail(Code::Unreachable, "the API server's answer is no Job");
}

/// The server has too much to do.
bool is_busy(const Error& error) { return error.code == Code::Exhausted; }

std::chrono::milliseconds pause_after(int tries) {
  return std::chrono::milliseconds(250) * (1 << tries);
}

/// Again where nobody knows what became of it: what is asked for twice is so once.
Result<Answer> ask_twice(Api& api, const Request& request) {
  auto answer = api.ask(request);
  return answer ? answer : api.ask(request);
}

/// What was made is found by its name.
Result<BatchJob> make_one(Api& api, const JobWriter::New& job) {
  const std::string doing = fmt::format("make the Job {}/{}", job.name_space, job.name);
  const auto answer =
      ask_twice(api, {.method = "POST", .path = jobs_path(job.name_space), .body = job.document});
  if (!answer) {
    return with_context(answer.error(),
                        tr_format("it may be submitted, as Job {}/{}", job.name_space, job.name));
  }
  if (answer->is_ok()) return job_in(*answer);
  if (answer->status != kConflict)
    return std::unexpected(error_of(*answer, doing, kSubmitterRights));
  const Answer there = GF_TRY(api.ask({.path = jobs_path(job.name_space) + "/" + job.name}));
  if (there.status == kNotFound) {  // the conflict was with something else: a quota that changed
    return fail(Code::Exhausted, error_of(*answer, doing).message);
  }
  if (!there.is_ok()) return std::unexpected(error_of(there, doing, kSubmitterRights));
  BatchJob made = GF_TRY(job_in(there));
  if (made.submission == job.submission) return made;
  return fail(Code::KeyReused,
              tr("the Idempotency-Key was used for another submission; choose a new one"));
}

/// A conflict may be with another of its name, or with whoever writes it just now.
Result<bool> is_there(Api& api, const JobWriter::Old& one) {
  const Answer answer = GF_TRY(api.ask({.path = one.path}));
  if (answer.status == kNotFound) return false;
  if (!answer.is_ok()) return std::unexpected(error_of(answer, fmt::format("read {}", one.path)));
  const Json object = Json::parse(answer.body, nullptr, false);
  return text(part(object, "metadata"), "uid") == one.uid;
}

/// The Job stays, with its number, until its pods have ended.
Result<void> remove_one(Api& api, const JobWriter::Old& one) {
  const Json options = {{"apiVersion", "v1"},
                        {"kind", "DeleteOptions"},
                        {"propagationPolicy", "Foreground"},
                        {"preconditions", {{"uid", one.uid}}}};
  const Request request{.method = "DELETE", .path = one.path, .body = options.dump()};
  for (int tries = 0; tries < kMostTries; ++tries) {
    const Answer answer = GF_TRY(ask_twice(api, request));
    if (answer.is_ok() || answer.status == kNotFound) return {};
    if (answer.status != kConflict) {
      return std::unexpected(
          error_of(answer, fmt::format("delete {}", one.path), kSubmitterRights));
    }
    if (!GF_TRY(is_there(api, one))) return {};
  }
  return fail(Code::WrongState, fmt::format("delete {}: others write it all the time", one.path));
}

Result<void> remove_all(Api& api, const std::vector<JobWriter::Old>& objects) {
  for (const JobWriter::Old& one : objects) GF_CHECK(remove_one(api, one));
  return {};
}

/// Of this very Job: another of its name is a conflict.
Result<BatchJob> hold_one(Api& api, const JobWriter::Old& job, bool is_held) {
  const Json patch = {{"metadata", {{"uid", job.uid}}}, {"spec", {{"suspend", is_held}}}};
  const Answer answer = GF_TRY(ask_twice(api,
                                         {.method = "PATCH",
                                          .path = job.path,
                                          .body = patch.dump(),
                                          .content_type = "application/merge-patch+json"}));
  if (answer.is_ok()) return job_in(answer);
  const char* doing = is_held ? "hold {}" : "release {}";
  return std::unexpected(
      error_of(answer, fmt::format(fmt::runtime(doing), job.path), kSubmitterRights));
}

Result<std::vector<BatchJob>> hold_all(Api& api,
                                       const std::vector<JobWriter::Old>& objects,
                                       bool is_held) {
  std::vector<BatchJob> jobs;
  for (const JobWriter::Old& one : objects) jobs.push_back(GF_TRY(hold_one(api, one, is_held)));
  return jobs;
}

}  // namespace

void JobWriter::make(std::vector<New> jobs, Made then) {
  workers_.urgent([this, making = Making{std::move(jobs), {}, std::move(then)}](Api& api) {
    make_rest(api, making);
  });
}

/// As far as it gets; where the server is busy the rest is for later.
void JobWriter::make_rest(Api& api, Making making) {
  const auto tell = [this, &making](Result<std::vector<BatchJob>> made) {
    boost::asio::post(io_, [then = making.then, made = std::move(made)] { then(made); });
  };
  while (making.made.size() < making.jobs.size()) {
    auto one = make_one(api, making.jobs[making.made.size()]);
    if (one) {
      making.made.push_back(*std::move(one));
      making.tries = 0;
      continue;
    }
    if (is_busy(one.error()) && making.tries < kMostTries) {
      const auto pause = pause_after(making.tries++);
      return workers_.urgent_after(
          pause, [this, making = std::move(making)](Api& other) { make_rest(other, making); });
    }
    if (making.made.empty()) return tell(std::unexpected(std::move(one).error()));
    return tell(with_context(
        one.error(),
        tr_format("{} of {} jobs are submitted", making.made.size(), making.jobs.size())));
  }
  tell(std::move(making.made));
}

void JobWriter::remove(std::vector<Old> objects, Done then) {
  workers_.urgent([this, objects = std::move(objects), then = std::move(then)](Api& api) {
    boost::asio::post(io_, [then, done = remove_all(api, objects)] { then(done); });
  });
}

void JobWriter::hold(std::vector<Old> objects, bool is_held, Made then) {
  workers_.urgent([this, objects = std::move(objects), is_held, then = std::move(then)](Api& api) {
    boost::asio::post(io_, [then, jobs = hold_all(api, objects, is_held)] { then(jobs); });
  });
}

std::string jobs_path(const std::string& name_space) {
  return fmt::format("/apis/batch/v1/namespaces/{}/jobs", name_space);
}

std::string pods_path(const std::string& name_space) {
  return fmt::format("/api/v1/namespaces/{}/pods", name_space);
}

}  // namespace gflow::kube

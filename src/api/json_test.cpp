// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "api/json_value.h"
#include "api/samples_test.h"

namespace gflow::api {
namespace {

/// Text of a value read back and written again; or the error.
template <typename Read>
std::string again(const std::string& text, Read read) {
  const auto value = read(text);
  return value ? write(*value) : value.error().message;
}

TEST(Json, EveryDocumentComesBackAsItWas) {
  UpdateRequest no_limit;
  no_limit.jobs = {JobId(1)};
  no_limit.changes.set(&JobSpec::time_limit, std::nullopt);
  const std::vector<std::pair<std::string, std::function<std::string(const std::string&)>>> cases =
      {
          {write(sample_job()), [](const auto& text) { return again(text, read_job); }},
          {write(JobPage{{sample_job(), sample_job()}, "42", JobId(42), 7}),
           [](const auto& text) { return again(text, read_job_page); }},
          {write(JobPage{}), [](const auto& text) { return again(text, read_job_page); }},
          {write(sample_machine()), [](const auto& text) { return again(text, read_machine); }},
          {write(MachineView{}), [](const auto& text) { return again(text, read_machine); }},
          {write(sample_daemon()), [](const auto& text) { return again(text, read_daemon); }},
          {write(sample_submission()),
           [](const auto& text) { return again(text, read_submit_request); }},
          {write(SubmitAnswer{{{JobId(1), "a", Status::Hold, "JobHeldUser"},
                               {JobId(2), "b", Status::Queued, ""}}}),
           [](const auto& text) { return again(text, read_submit_answer); }},
          {write(JobsRequest{{JobId(1), JobId(3)}, 9, sample_time(5)}),
           [](const auto& text) { return again(text, read_jobs_request); }},
          {write(sample_update()),
           [](const auto& text) { return again(text, read_update_request); }},
          {write(no_limit), [](const auto& text) { return again(text, read_update_request); }},
      };
  for (const auto& [text, read_and_write] : cases) EXPECT_EQ(read_and_write(text), text);
}

TEST(Json, AJobComesBackFieldForField) {
  EXPECT_EQ(read_job(write(sample_job())), sample_job());
  JobView queued;
  queued.id = JobId(1);
  EXPECT_EQ(read_job(write(queued)), queued);
  for (const StatusInfo& info : kStatuses) {
    queued.status = info.status;
    EXPECT_EQ(read_job(write(queued)), queued) << info.name;
  }
  for (int number = 1; end_reason_name(static_cast<EndReason>(number)) != "unknown"; ++number) {
    queued.outcome = Outcome{static_cast<EndReason>(number), 1, 0, "", {}, {}, {}};
    EXPECT_EQ(read_job(write(queued)), queued) << end_reason_name(queued.outcome->reason);
  }
}

TEST(Json, ASubmissionComesBackFieldForField) {
  const SubmitRequest sent = sample_submission();
  const auto got = read_submit_request(write(sent));
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->items.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got->items[i].spec, sent.items[i].spec);
    EXPECT_EQ(got->items[i].payload, sent.items[i].payload);
    EXPECT_EQ(got->items[i].depends_on_siblings, sent.items[i].depends_on_siblings);
  }
}

TEST(Json, ItemsAlikeAreWrittenOnce) {
  SubmitRequest sent = sample_submission();
  SubmitRequest::Item task;
  task.spec = sent.items[1].spec;
  task.spec.name = "task 7";
  task.payload.environment = {"TASK=7"};
  task.depends_on_siblings = {0, 1};
  task.like = 1;
  sent.items.push_back(task);
  const std::string alone = write(sample_submission());
  const std::string text = write(sent);
  EXPECT_LT(text.size(), alone.size() + 200) << text;
  const auto got = read_submit_request(text);
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->items.size(), 3U);
  EXPECT_EQ(got->items[2].spec, task.spec);
  EXPECT_EQ(got->items[2].payload, task.payload);
  EXPECT_EQ(got->items[2].depends_on_siblings, task.depends_on_siblings);
  EXPECT_EQ(got->items[2].like, 1U);
}

TEST(Json, TasksAreWrittenAsOne) {
  SubmitRequest sent = sample_submission();
  sent.items.resize(1);
  sent.items[0].tasks = TaskRange{.first = 0, .count = 3, .step = 7};
  SubmitRequest::Item more;
  more.like = 0;
  more.spec = sent.items[0].spec;
  more.tasks = TaskRange{.first = 100, .count = 4};
  sent.items.push_back(more);
  const auto got = read_submit_request(write(sent));
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->items.size(), 2U);
  EXPECT_EQ(got->count(), 7U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(got->items[i].tasks, sent.items[i].tasks) << i;
}

TEST(Json, AJobWithoutALineHasThatOfItsArguments) {
  const auto got = read_submit_request(
      R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["python","a b.py","1"]}},)"
      R"({"like":0},{"like":0,"argv":["python","other.py"]},{"like":0,"command":"mine"},)"
      R"({"spec":{"work_dir":"/","command":"mine"},"payload":{"argv":["true"]}}]})");
  ASSERT_TRUE(got) << got.error().message;
  std::vector<std::string> commands;
  for (const SubmitRequest::Item& item : got->items) commands.push_back(item.spec.command);
  EXPECT_EQ(commands,
            (std::vector<std::string>{
                "python 'a b.py' 1", "python 'a b.py' 1", "python other.py", "mine", "mine"}));
}

/// A short text of many items alike is much once it is read.
TEST(Json, ItemsAlikeAreLimited) {
  std::string text = R"({"items":[{"spec":{"work_dir":"/","command":")" + std::string(15'000, 'x') +
                     R"("},"payload":{"argv":["true"]}})";
  for (int i = 0; i < 4000; ++i) text += R"(,{"like":0})";
  EXPECT_TRUE(read_submit_request(text + "]}"));
  for (int i = 0; i < 4000; ++i) text += R"(,{"like":0})";
  const auto request = read_submit_request(text + "]}");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, Code::Exhausted);
}

TEST(Json, AnUpdateTellsNoChangeFromNoLimit) {
  const auto nothing = read_update_request(R"({"jobs": [1]})");
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->changes.has(&JobSpec::time_limit));
  const auto unlimited = read_update_request(R"({"jobs": [1], "time_limit_seconds": null})");
  ASSERT_TRUE(unlimited);
  ASSERT_TRUE(unlimited->changes.has(&JobSpec::time_limit));
  EXPECT_FALSE(unlimited->changes.to().time_limit);
}

// A change here is a change of the wire: docs/format/api.md has to follow.
TEST(Json, LooksLikeThis) {
  JobView job;
  job.id = JobId(7);
  job.spec.name = "train";
  job.spec.user = {1000, "alice"};
  job.spec.command = "python train.py";
  job.spec.work_dir = "/tmp/\xff";
  job.status = Status::Running;
  job.submitted = sample_time(0);
  job.started = sample_time(1);
  job.gpu_indices = {1};
  job.attempt = 1;
  EXPECT_EQ(
      write(job),
      R"({"apiVersion":"gflow/v1","kind":"Job","id":7,"user":{"uid":1000,"name":"alice"},)"
      R"("status":"Running","status_code":"R","reason":"",)"
      R"("submitted":"2026-03-01T12:00:00.000Z","started":"2026-03-01T12:00:01.000Z",)"
      R"("ended":null,"run_time_seconds":0,"node":"","gpu_indices":[1],"cpu_indices":[],"peers":[],"node_list":"",)"
      R"("placed_because":null,"gpu_memory":[],"gpu_limits":null,"gpu_isolation":null,"parked":null,"lends":false,"move":null,"move_refused":"","gpu_idle_seconds":null,"attempt":1,"retries":0,"pid":null,)"
      R"("log_path":"","spec":{"name":"train","project":"","request":{"gpus":0,"gpu_share_parts":10000,"gpu_share_limit_parts":0,)"
      R"("gpu_memory_bytes":0,"gpu_mode":"whole","gpu_vendor":"","gpu_models":[],)"
      R"("see_all":false,"cpus":0,)"
      R"("memory_bytes":0,"nodes":1,"selector":[]},"priority":10,"time_limit_seconds":null,"grace_seconds":30,)"
      R"("begin":null,"dependencies":{"jobs":[],"mode":"all","auto_cancel":true},"hold":false,)"
      R"("requeue":false,"max_retries":0,"preemption":"none","preempt_signal":0,)"
      R"("group":"","max_concurrent":0,"allocation":false,)"
      R"("command":"python train.py","work_dir":{"base64":"L3RtcC//"}},"outcome":null,)"
      R"("blockers":[]})");
  EXPECT_EQ(write_job_ids({JobId(3), JobId(4)}),
            R"({"apiVersion":"gflow/v1","kind":"JobIds","jobs":[3,4]})");
  EXPECT_EQ(write_revision(12), R"({"apiVersion":"gflow/v1","kind":"Changes","revision":12})");
}

TEST(Json, MissingReadingsAreNullAndNotZero) {
  MachineView machine;
  machine.nodes.emplace_back().devices.emplace_back();
  const std::string text = write(machine);
  for (const std::string_view name : {"numa_node",
                                      "memory_total_bytes",
                                      "memory_used_bytes",
                                      "utilization_percent",
                                      "temperature_celsius",
                                      "power_milliwatts",
                                      "pci_address",
                                      "memory_free_bytes",
                                      "gpu_mode",
                                      "driver"}) {
    EXPECT_NE(text.find("\"" + std::string(name) + "\":null"), std::string::npos) << name;
  }
}

TEST(Json, AnswersOfANewerDaemonAreRead) {
  const auto ids = read_job_ids(
      R"({"apiVersion":"gflow/v1","kind":"JobIds","later":{"deep":[1]},"jobs":[3],"more":null})");
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, std::vector{JobId(3)});
}

TEST(Json, AnAnswerOfAnotherKindIsRefused) {
  const auto ids = read_job_ids(write_revision(1));
  ASSERT_FALSE(ids);
  EXPECT_EQ(
      ids.error(),
      (Error{Code::Failure,
             "what answers is no gflowd that this program knows: /kind: must be 'JobIds', not "
             "'Changes'"}));
  EXPECT_FALSE(read_job(R"({"apiVersion":"gflow/v2","kind":"Job","id":1})"));
}

TEST(Json, ListsOfJobsAreSortedAndEachOnce) {
  const auto request = read_jobs_request(R"({"jobs": [5, 3, 5, 4]})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->jobs, (std::vector{JobId(3), JobId(4), JobId(5)}));
}

TEST(JsonProblem, CarriesTheCode) {
  for (const Code code : {Code::Failure,
                          Code::Usage,
                          Code::NotFound,
                          Code::Unreachable,
                          Code::Permission,
                          Code::WrongState,
                          Code::Infeasible,
                          Code::Timeout,
                          Code::Exhausted,
                          Code::Damaged}) {
    const Error error{code, "why"};
    EXPECT_EQ(read_problem(http_status(code), write_problem(error)), error);
    EXPECT_GE(http_status(code), 400);
  }
  EXPECT_EQ(write_problem({Code::NotFound, "there is no job 9"}),
            R"({"apiVersion":"gflow/v1","kind":"Problem","type":"/docs#problem-not_found",)"
            R"("title":"Not Found","status":404,"detail":"there is no job 9","code":"not_found",)"
            R"("exit_code":3,"errors":[]})");
  // As a command exits: 1 for what scripts need not tell apart.
  EXPECT_TRUE(write_problem({Code::Exhausted, "full"}).contains(R"("exit_code":1,)"));
}

TEST(JsonProblem, IsMadeUpFromTheStatusWhereThereIsNone) {
  EXPECT_EQ(read_problem(404, "<html>").code, Code::NotFound);
  EXPECT_EQ(read_problem(413, "").code, Code::Exhausted);
  EXPECT_EQ(read_problem(418, "{}").code, Code::Usage);
  EXPECT_EQ(read_problem(599, "[]").code, Code::Failure);
  // A code of a newer daemon: the status says enough.
  EXPECT_EQ(read_problem(409, R"({"detail":"x","code":"new"})"), (Error{Code::WrongState, "x"}));
  EXPECT_EQ(read_problem(400, "{\"detail\":\"\\u001b[2J\",\"code\":\"usage\"}").message,
            "\\x1b[2J");
}

}  // namespace
}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "kube/batch_job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

BatchJob job_with(const std::string& spec, const std::string& conditions = "[]") {
  Json object = Json::parse(R"({"metadata": {"uid": "u", "name": "train-1f", "namespace": "default",
    "creationTimestamp": "2026-11-28T01:02:03Z", "annotations": {"gflow/name": "train"}}})");
  object["spec"] = Json::parse(spec);
  object["status"]["conditions"] = Json::parse(conditions);
  return batch_job_of(object);
}

EndedPod pod_with(const std::string& status) {
  Json object =
      Json::parse(R"({"metadata": {"uid": "p", "name": "train-1f-x", "namespace": "default",
    "creationTimestamp": "2026-11-28T01:02:04Z",
    "ownerReferences": [{"kind": "Job", "name": "train-1f", "uid": "u", "controller": true}]}})");
  object["status"] = Json::parse(status);
  return ended_pod_of(object);
}

std::string program(const std::string& terminated) {
  return R"({"containerStatuses": [{"state": {"terminated": )" + terminated + "}}]}";
}

TEST(BatchJob, StandsInForItsPod) {
  const BatchJob job = job_with(R"({"backoffLimit": 2, "suspend": true, "template": {
    "metadata": {"annotations": {"gflow/gpu": "2"}},
    "spec": {"schedulerName": "gflow", "activeDeadlineSeconds": 60}}})");
  EXPECT_EQ(job.name, "train-1f");
  EXPECT_EQ(job.stand_in.full_name(), "default/train");
  EXPECT_EQ(job.stand_in.uid, "u");
  EXPECT_EQ(job.stand_in.gpu, "2");
  EXPECT_EQ(job.stand_in.scheduler, "gflow");
  EXPECT_EQ(job.time_limit, std::chrono::seconds(60));
  EXPECT_EQ(job.max_retries, 2);
  EXPECT_TRUE(job.is_suspended);
}

TEST(EndedPod, SaysHowItsProgramEnded) {
  struct Row {
    std::string status;
    EndReason reason;
    int exit_code;
  };
  for (const Row& row : {
           Row{program(R"({"exitCode": 0})"), EndReason::Exited, 0},
           Row{program(R"({"exitCode": 3, "reason": "Error"})"), EndReason::Exited, 3},
           Row{program(R"({"exitCode": 137, "reason": "OOMKilled"})"), EndReason::OutOfMemory, 137},
           Row{R"({"reason": "DeadlineExceeded"})", EndReason::TimeLimit, 0},
           Row{R"({"reason": "Evicted", "message": "full"})", EndReason::SupervisorDied, 0},
           Row{"{}", EndReason::SupervisorDied, 0},
           Row{R"({"containerStatuses": 7})", EndReason::SupervisorDied, 0},
       }) {
    const EndedPod pod = pod_with(row.status);
    EXPECT_EQ(pod.job, "u");
    EXPECT_EQ(pod.outcome.reason, row.reason) << row.status;
    EXPECT_EQ(pod.outcome.exit_code, row.exit_code) << row.status;
  }
}

TEST(EndedPod, RanAsLongAsItsProgram) {
  const EndedPod pod = pod_with(program(R"({"exitCode": 0, "startedAt": "2026-11-28T01:02:10Z",
                                            "finishedAt": "2026-11-28T01:03:10Z"})"));
  EXPECT_EQ(pod.outcome.run_time, std::chrono::seconds(60));
}

TEST(OutcomeOfAJob, IsKnownOnceNoOtherPodCanCome) {
  const EndedPod failed = pod_with(program(R"({"exitCode": 3})"));
  const EndedPod well = pod_with(program(R"({"exitCode": 0})"));
  EXPECT_FALSE(outcome_of(job_with("{}"), nullptr));
  EXPECT_EQ(outcome_of(job_with("{}"), &failed)->exit_code, 3);
  const BatchJob again = job_with(R"({"backoffLimit": 1})");
  EXPECT_FALSE(outcome_of(again, &failed));
  EXPECT_TRUE(outcome_of(again, &well));
  EXPECT_FALSE(outcome_of(job_with(R"({"podFailurePolicy": {"rules": []}})"), &failed));
}

TEST(OutcomeOfAJob, IsWhatItsControllerSays) {
  const EndedPod failed = pod_with(program(R"({"exitCode": 3})"));
  const BatchJob over = job_with(
      R"({"backoffLimit": 1})",
      R"([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}])");
  EXPECT_EQ(outcome_of(over, &failed)->exit_code, 3);
  EXPECT_EQ(outcome_of(over, nullptr)->reason, EndReason::SupervisorDied) << "its pods are gone";
  EXPECT_EQ(outcome_of(over, nullptr)->message, "m");
  const BatchJob done = job_with("{}", R"([{"type": "SuccessCriteriaMet", "status": "True"}])");
  EXPECT_EQ(outcome_of(done, nullptr)->reason, EndReason::Exited);
  const BatchJob not_yet =
      job_with(R"({"backoffLimit": 1})", R"([{"type": "Failed", "status": "False"}])");
  EXPECT_FALSE(outcome_of(not_yet, &failed));
}

}  // namespace
}  // namespace gflow::kube

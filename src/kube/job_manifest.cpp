// SPDX-License-Identifier: Apache-2.0
#include "kube/job_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "core/gpu_request.h"
#include "core/image_variable.h"
#include "kube/batch_job.h"
#include "kube/containers.h"
#include "kube/want.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

/// What an object may have in annotations, less what is ours.
constexpr std::size_t kMostInAnnotations = 240UL * 1024;
constexpr std::chrono::hours kKept{7 * 24};
constexpr std::string_view kScriptAnnotation = "gflow/script";
constexpr std::string_view kConfigAnnotation = "gflow/config";
constexpr std::string_view kFolder = "/gflow";
constexpr std::string_view kScriptFile = "script";

/// Of a script that names no interpreter.
constexpr std::string_view kByShell =
    R"(command -v bash >/dev/null && exec bash "$0" "$@"; exec sh "$0" "$@")";

/// What a job may ask for that a pod cannot have, and what is to be done instead.
struct Limit {
  bool (*asks)(const JobSpec& spec);
  std::string_view text;
};
constexpr auto kLimits = std::to_array<Limit>({
    {[](const JobSpec& spec) { return !spec.dependencies.jobs.empty(); },
     tr_later("jobs of a cluster do not wait for each other: submit it when the other has ended "
              "('gjob wait JOB && gbatch ...')")},
    {[](const JobSpec& spec) { return spec.begin.has_value(); },
     tr_later("jobs of a cluster have no begin time: leave out --begin, or let a CronJob of "
              "Kubernetes make it")},
    {[](const JobSpec& spec) { return spec.priority != kDefaultPriority; },
     tr_later("who goes first in a cluster is said by its PriorityClasses, which gbatch does not "
              "choose: leave out --priority and --nice")},
    {[](const JobSpec& spec) { return spec.preemption != Preemption::None; },
     tr_later("whom others may stop is decided by the priorities of the cluster: leave out "
              "--preemptible; with --requeue it is run again then")},
    {[](const JobSpec& spec) { return spec.max_concurrent > 0; },
     tr_later("how many run at once is limited for a namespace (docs/cluster.md): leave out "
              "--max-concurrent")},
    {[](const JobSpec& spec) { return spec.request.nodes > 1; },
     tr_later("a job of several nodes is a gang of pods, which 'kubectl apply' makes "
              "(docs/cluster.md)")},
    {[](const JobSpec& spec) { return spec.request.see_all; },
     tr_later("a pod sees the GPUs that it has, not all of its node: ask for some")},
    {[](const JobSpec& spec) { return spec.request.mode == GpuMode::TimeSlice; },
     tr_later("GPUs of a cluster are not time-sliced: ask for a part of one, such as 8G,0.5")},
});

Result<void> check_limits(const JobSpec& spec) {
  for (const Limit& limit : kLimits) {
    if (limit.asks(spec)) return fail(Code::Usage, tr(limit.text));
  }
  return {};
}

/// An API server takes text.
bool is_text(const Payload& payload) {
  return is_utf8(payload.script.value_or("")) && is_utf8(payload.config) &&
         std::ranges::all_of(payload.argv, is_utf8) &&
         std::ranges::all_of(payload.environment, is_utf8);
}

Result<void> check_payload(const Payload& payload) {
  if (!is_text(payload)) {
    return fail(Code::Usage,
                tr("script, configuration, arguments and variables of a job of a cluster have to "
                   "be UTF-8: put what is not into the image"));
  }
  const std::size_t size = payload.script.value_or("").size() + payload.config.size();
  if (size <= kMostInAnnotations) return {};
  return fail(Code::Exhausted,
              tr_format("script and configuration have {} KiB, and a Job of Kubernetes has room "
                        "for {}: put them into the image",
                        size / 1024,
                        kMostInAnnotations / 1024));
}

/// A kubelet makes one $ of two, and puts variables in place of $(NAME).
std::string literal(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled += c == '$' ? "$$" : std::string(1, c);
  return doubled;
}

std::string path_of(std::string_view file) { return fmt::format("{}/{}", kFolder, file); }

std::vector<std::string> command_of(const Payload& payload) {
  std::vector<std::string> words = payload.argv;
  if (payload.script) {
    words.front() = path_of(kScriptFile);
    if (!payload.script->starts_with("#!")) {
      words.insert(words.begin(), {"sh", "-c", std::string(kByShell)});
    }
  }
  for (std::string& word : words) word = literal(word);
  return words;
}

std::string config_file(const Payload& payload) { return "config/" + *payload.config_name; }

Json environment_of(const JobSpec& spec, const Payload& payload) {
  Json environment = Json::array();
  const auto add = [&environment](std::string_view name, std::string_view value) {
    environment.push_back({{"name", name}, {"value", literal(value)}});
  };
  for (const std::string& variable : payload.environment) {
    const std::size_t equals = variable.find('=');
    add(variable.substr(0, equals), variable.substr(equals + 1));
  }
  if (!spec.name.empty()) add("GFLOW_JOB_NAME", spec.name);
  if (payload.config_name) add("GFLOW_JOB_CONFIG", path_of(config_file(payload)));
  return environment;
}

Json limits_of(const gflow::Request& request, const JobPlace& place) {
  Json limits = Json::object();
  if (request.cpus > 0) limits["cpu"] = fmt::format("{}", request.cpus);
  if (request.memory.bytes > 0) limits["memory"] = fmt::format("{}", request.memory.bytes);
  if (request.gpus == 0) return limits;
  if (request.share == Share::whole()) {
    const auto known = std::ranges::find(kGpuResources, request.vendor, &GpuResource::vendor);
    const std::string_view name = known == kGpuResources.end() ? place.gpus : known->name;
    limits[std::string(name)] = fmt::format("{}", request.gpus);
  } else if (place.has_allocations) {
    limits[std::string(kAllocationResource)] = "1";
  }
  return limits;
}

/// The files of annotations of its pod.
Json files_of(const Payload& payload) {
  Json items = Json::array();
  const auto add = [&items](std::string_view file, std::string_view annotation) {
    items.push_back(
        {{"path", file},
         {"fieldRef", {{"fieldPath", fmt::format("metadata.annotations['{}']", annotation)}}}});
  };
  if (payload.script) add(kScriptFile, kScriptAnnotation);
  if (payload.config_name) add(config_file(payload), kConfigAnnotation);
  return items;
}

Json annotations_of_pod(const JobSpec& spec, const Payload& payload) {
  Json annotations = Json::object();
  if (spec.request.gpus > 0) {
    annotations[std::string(kGpuAnnotation)] = gpu_request_text(spec.request);
  }
  if (payload.script) annotations[std::string(kScriptAnnotation)] = *payload.script;
  if (payload.config_name) annotations[std::string(kConfigAnnotation)] = payload.config;
  return annotations;
}

Json container_of(const JobSpec& spec, const Payload& payload, const JobPlace& place) {
  Json container = {{"name", kMainContainer},
                    {"image", place.image},
                    {"command", command_of(payload)},
                    {"env", environment_of(spec, payload)},
                    {"resources", {{"limits", limits_of(spec.request, place)}}}};
  if (spec.work_dir != "/") container["workingDir"] = spec.work_dir;  // else that of the image
  return container;
}

Json pod_spec_of(const JobSpec& spec, const Payload& payload, const JobPlace& place) {
  Json container = container_of(spec, payload, place);
  Json pod = {{"schedulerName", place.scheduler},
              {"restartPolicy", "Never"},
              {"terminationGracePeriodSeconds", spec.grace.count()}};
  if (Json files = files_of(payload); !files.empty()) {
    constexpr int kReadAndRun = 0555;
    container["volumeMounts"] =
        Json::array({{{"name", "gflow"}, {"mountPath", kFolder}, {"readOnly", true}}});
    pod["volumes"] = Json::array(
        {{{"name", "gflow"}, {"downwardAPI", {{"defaultMode", kReadAndRun}, {"items", files}}}}});
  }
  // Of the pod and not of the Job: what counts is how long it runs, not how long it waits.
  if (spec.time_limit) pod["activeDeadlineSeconds"] = spec.time_limit->count();
  for (const Label& label : spec.request.selector) pod["nodeSelector"][label.key] = label.value;
  pod["containers"] = Json::array({std::move(container)});
  return pod;
}

Json annotations_of_job(const JobSpec& spec, const std::string& submission) {
  Json annotations = Json::object();
  const auto add = [&annotations](std::string_view name, const std::string& value) {
    if (!value.empty()) annotations[std::string(name)] = value;
  };
  add(kSubmissionAnnotation, submission);
  add(kNameAnnotation, spec.name);
  add(kCommandAnnotation, spec.command);
  add(kProjectAnnotation, spec.project);
  add(kGroupAnnotation, spec.group);
  return annotations;
}

Result<std::string> image_of(const Payload& payload, const JobPlace& place) {
  const std::string begin = std::string(kImageVariable) + "=";
  for (const std::string& variable : payload.environment) {
    if (variable.starts_with(begin) && variable != begin) return variable.substr(begin.size());
  }
  if (!place.image.empty()) return place.image;
  return fail(Code::Usage,
              tr_format("a job of a cluster runs in the container of an image: name it with "
                        "--image IMAGE, or for all jobs with {}",
                        kImageVariable));
}

}  // namespace

Result<Json> job_manifest(const JobSpec& spec,
                          const Payload& payload,
                          const JobPlace& place,
                          const std::string& name,
                          const std::string& submission) {
  GF_CHECK(check_limits(spec));
  GF_CHECK(check_payload(payload));
  JobPlace its = place;
  its.image = GF_TRY(image_of(payload, place));
  const Json labels = {{kSubmittedLabel, "true"}};
  Json made = {{"completions", 1},
               {"parallelism", 1},
               {"backoffLimit", spec.max_retries},
               {"suspend", spec.hold},
               {"podReplacementPolicy", "Failed"},  // never two of it at once
               {"ttlSecondsAfterFinished", std::chrono::seconds(kKept).count()}};
  if (spec.requeue) {
    made["podFailurePolicy"]["rules"] =
        Json::array({{{"action", "Ignore"},
                      {"onPodConditions", Json::array({{{"type", "DisruptionTarget"}}})}}});
  }
  made["template"] = {
      {"metadata", {{"labels", labels}, {"annotations", annotations_of_pod(spec, payload)}}},
      {"spec", pod_spec_of(spec, payload, its)}};
  return Json{{"apiVersion", "batch/v1"},
              {"kind", "Job"},
              {"metadata",
               {{"name", name},
                {"namespace", place.name_space},
                {"labels", labels},
                {"annotations", annotations_of_job(spec, submission)}}},
              {"spec", std::move(made)}};
}

std::string object_name_of(const JobSpec& spec, const Payload& payload, std::string_view digest) {
  constexpr std::size_t kMost = 40;  // of 63, of which a pod's has some for itself
  const std::string called =
      spec.name.empty() ? std::filesystem::path(payload.argv.front()).stem().string() : spec.name;
  std::string name;
  for (const char c : to_lower(called.substr(0, kMost))) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_letter || (!name.empty() && name.back() != '-')) name += is_letter ? c : '-';
  }
  if (name.empty()) name = "job";
  if (name.back() != '-') name += '-';
  return name + std::string(digest);
}

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#include "store/spec_row.h"

#include <SQLiteCpp/Exception.h>

#include <utility>

#include "store/payload_row.h"

namespace gflow::store {
namespace {

constexpr int kPlainMode = static_cast<int>(GpuMode::Whole);
constexpr int kPlainPreemption = static_cast<int>(Preemption::None);

void bind_strings(Query& query, const std::vector<std::string>& strings) {
  strings.empty() ? query.null() : query.copied_blob(pack(strings));
}

std::vector<std::string> read_strings(Query& query, const char* column) {
  auto strings = unpack(query.text());
  if (!strings) throw SQLite::Exception(std::string("damaged ") + column);
  return std::move(*strings);
}

std::vector<std::string> strings_of(const std::vector<Label>& labels) {
  std::vector<std::string> strings;
  for (const Label& label : labels) {
    strings.push_back(label.key);
    strings.push_back(label.value);
  }
  return strings;
}

std::vector<Label> labels_of(const std::vector<std::string>& strings) {
  if (strings.size() % 2 != 0) throw SQLite::Exception("damaged selector");
  std::vector<Label> labels;
  for (std::size_t i = 0; i < strings.size(); i += 2) {
    labels.push_back({strings[i], strings[i + 1]});
  }
  return labels;
}

void bind_more(Query& query, const JobSpec& spec) {
  const Request& request = spec.request;
  query.integer_unless(Share::kWholeParts, request.share.parts);
  query.integer_unless(0, request.gpu_memory.bytes);
  query.integer_unless(kPlainMode, static_cast<int>(request.mode));
  query.text_unless_empty(request.vendor);
  bind_strings(query, request.models);
  query.integer_unless(0, request.see_all ? 1 : 0).integer_unless(1, request.nodes);
  bind_strings(query, strings_of(request.selector));
  query.integer_unless(kPlainPreemption, static_cast<int>(spec.preemption));
  query.integer_unless(0, spec.preempt_signal);
}

void read_more(Query& query, JobSpec& spec) {
  Request& request = spec.request;
  request.share.parts = static_cast<std::int32_t>(query.integer_or(Share::kWholeParts));
  request.gpu_memory.bytes = query.integer();
  request.mode = static_cast<GpuMode>(query.integer_or(kPlainMode));
  request.vendor = query.text();
  request.models = read_strings(query, "models");
  request.see_all = query.integer() != 0;
  request.nodes = static_cast<int>(query.integer_or(1));
  request.selector = labels_of(read_strings(query, "selector"));
  spec.preemption = static_cast<Preemption>(query.integer_or(kPlainPreemption));
  spec.preempt_signal = query.as<int>();
}

}  // namespace

void bind_spec(Query& query, const JobSpec& spec) {
  query.text(spec.name).integer(spec.user.uid).text(spec.user.name).text(spec.project);
  query.integer(spec.request.gpus).integer(spec.request.cpus).integer(spec.request.memory.bytes);
  query.integer(spec.priority).integer(spec.grace.count());
  query.integer(static_cast<int>(spec.dependencies.mode)).integer(spec.dependencies.auto_cancel);
  query.integer(spec.hold).integer(spec.requeue).integer(spec.max_retries);
  query.text(spec.group).integer(spec.max_concurrent).text(spec.command).text(spec.work_dir);
  spec.time_limit ? query.integer(spec.time_limit->count()) : query.null();
  spec.begin ? query.time(*spec.begin) : query.null();
  bind_more(query, spec);
}

JobSpec read_spec(Query& query) {
  JobSpec spec;
  spec.name = query.text();
  spec.user.uid = query.as<std::uint32_t>();
  spec.user.name = query.text();
  spec.project = query.text();
  spec.request.gpus = query.as<int>();
  spec.request.cpus = query.as<int>();
  spec.request.memory.bytes = query.integer();
  spec.priority = query.as<int>();
  spec.grace = std::chrono::seconds(query.integer());
  spec.dependencies.mode = query.as<DependencyMode>();
  spec.dependencies.auto_cancel = query.integer() != 0;
  spec.hold = query.integer() != 0;
  spec.requeue = query.integer() != 0;
  spec.max_retries = query.as<int>();
  spec.group = query.text();
  spec.max_concurrent = query.as<int>();
  spec.command = query.text();
  spec.work_dir = query.text();
  if (const auto limit = query.optional<std::int64_t>()) {
    spec.time_limit = std::chrono::seconds(*limit);
  }
  if (const auto begin = query.optional<std::int64_t>()) {
    spec.begin = WallTime(std::chrono::milliseconds(*begin));
  }
  read_more(query, spec);
  return spec;
}

}  // namespace gflow::store

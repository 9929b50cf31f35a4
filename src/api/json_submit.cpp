// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <concepts>

#include "api/documents.h"
#include "api/json.h"
#include "api/spec_fields.h"
#include "core/gpu_request.h"

namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<Payload> = "Payload";
template <class Io, Like<Payload> T>
void fields(Io& io, T& payload) {
  io.some_bytes("argv", payload.argv);
  io.content("script", payload.script);
  io.bytes("environment", payload.environment);
  io.bytes("config_name", payload.config_name);
  io.content("config", payload.config);
  io.field("umask", payload.umask, Range{0, 0777});
}

template <>
inline constexpr std::string_view kSchemaName<TaskRange> = "TaskRange";
template <class Io, Like<TaskRange> T>
void fields(Io& io, T& tasks) {
  constexpr auto kMost = static_cast<std::int64_t>(kMaxTaskNumber);
  io.field("first", tasks.first, Range{0, kMost});
  io.required("count", tasks.count, Range{1, kMost});
  io.field("step", tasks.step, Range{1, kMost});
}

/// A job in full, or like one before it.
std::vector<SubmitRequest::Item> forms_of(std::type_identity<SubmitRequest::Item> /*type*/) {
  SubmitRequest::Item like_another;
  like_another.like = 0;
  return {{}, like_another};
}

template <>
inline constexpr std::string_view kSchemaName<SubmitRequest::Item> = "SubmitRequestItem";
template <class Io, Like<SubmitRequest::Item> T>
void fields(Io& io, T& item) {
  if constexpr (std::same_as<Io, Reader>) {
    io.field("like", item.like);
  } else if (item.like) {
    io.required("like", *item.like);
  }
  if (item.like) {
    io.field("name", item.spec.name);
    io.bytes("command", item.spec.command);
    io.bytes("argv", item.payload.argv);
    io.bytes("environment", item.payload.environment);
  } else {
    io.required("spec", item.spec);
    io.required("payload", item.payload);
  }
  io.field("tasks", item.tasks);
  io.field("depends_on_siblings", item.depends_on_siblings);
}

template <class Io, Like<SubmitRequest> T>
void fields(Io& io, T& request) {
  io.some("items", request.items);
}

template <>
inline constexpr std::string_view kSchemaName<SubmitAnswer::Item> = "SubmitAnswerItem";
template <class Io, Like<SubmitAnswer::Item> T>
void fields(Io& io, T& item) {
  io.required("id", item.id);
  io.field("count", item.count);
  io.field("name", item.name);
  io.field("status", item.status);
  io.derived("status_code", status_code(item.status));
  io.field("reason", item.reason);
  io.known_text("advice", item.advice);
}

template <class Io, Like<SubmitAnswer> T>
void fields(Io& io, T& answer) {
  io.required("items", answer.items);
}

namespace {

bool is_variable(const std::string& text) {
  const std::size_t equals = text.find('=');
  return equals != std::string::npos && equals > 0;
}

Asked<void> check_program(const Payload& payload, const std::string& where) {
  if (!payload.argv.empty() && !payload.argv.front().empty()) return {};
  return refuse(where + "/argv", "must name a program");
}

Asked<void> check_payload(const Payload& payload, const std::string& where) {
  for (std::size_t i = 0; i < payload.environment.size(); ++i) {
    if (is_variable(payload.environment[i])) continue;
    return refuse(fmt::format("{}/environment/{}", where, i), "must be NAME=value");
  }
  if (payload.config_name &&
      (payload.config_name->empty() || *payload.config_name == "." ||
       *payload.config_name == ".." || payload.config_name->find('/') != std::string::npos)) {
    return refuse(where + "/config_name", "must be the name of a file without directory");
  }
  return {};
}

Asked<void> check_spec(const JobSpec& spec, const std::string& where) {
  if (spec.work_dir.starts_with('/')) return {};
  return refuse(where + "/work_dir", "must be an absolute path");
}

/// What the types alone do not say; the engine judges what depends on its state.
Asked<void> check_item(std::vector<SubmitRequest::Item>& items, std::size_t position) {
  SubmitRequest::Item& item = items[position];
  const std::string where = fmt::format("/items/{}", position);
  const std::string within = item.like ? where : where + "/payload";
  if (auto spec = check_spec(item.spec, item.like ? where : where + "/spec"); !spec) return spec;
  if (auto payload = check_payload(item.payload, within); !payload) return payload;
  if (!item.like || !item.payload.argv.empty()) {
    if (auto program = check_program(item.payload, within); !program) return program;
  }
  if (const auto normal = normalise(item.spec.request); !normal) {
    return refuse(where + "/spec/request", normal.error());
  }
  put_in_order(item.spec.dependencies.jobs);
  for (const std::size_t sibling : item.depends_on_siblings) {
    if (sibling >= position) {
      return refuse(where + "/depends_on_siblings",
                    fmt::format("must be positions of items before this one, not {}", sibling));
    }
    if (items[sibling].tasks) {
      return refuse(
          where + "/depends_on_siblings",
          fmt::format("item {} has tasks: depend on their jobs once they are there", sibling));
    }
  }
  if (item.tasks && item.like && item.payload != Payload{}) {
    return refuse(where + "/tasks",
                  "tasks of an item that is like another run what that one runs, without argv and "
                  "environment of their own");
  }
  if (item.tasks && item.tasks->count > 1 &&
      item.tasks->step > (kMaxTaskNumber - item.tasks->first) / (item.tasks->count - 1)) {
    return refuse(where + "/tasks", fmt::format("a task is numbered {} at most", kMaxTaskNumber));
  }
  return {};
}

std::size_t size_of(const JobSpec& spec) {
  return sizeof spec + bytes_of(spec) + sizeof(JobId) * spec.dependencies.jobs.size();
}

/// Jobs of one user with the same line count as one program: what is learned of run times and
/// memory is of that.
void say_command(SubmitRequest::Item& item) {
  const std::vector<std::string>& argv = item.payload.argv;
  if (item.spec.command.empty() && !argv.empty()) item.spec.command = shown_line(argv);
}

/// Fills in what an item has in common with the one it is like. A short request must not become
/// much that way: `left` is what it may still be.
Asked<void> fill_in(std::vector<SubmitRequest::Item>& items, std::size_t at, std::size_t& left) {
  SubmitRequest::Item& item = items[at];
  if (!item.like) return {};
  if (*item.like >= at || items[*item.like].like) {
    return refuse(fmt::format("/items/{}/like", at),
                  fmt::format("must be the position of an item before this one that is like no "
                              "other, not {}",
                              *item.like));
  }
  JobSpec spec = items[*item.like].spec;
  if (!item.spec.name.empty()) spec.name = std::move(item.spec.name);
  if (!item.spec.command.empty()) spec.command = std::move(item.spec.command);
  item.spec = std::move(spec);
  const std::size_t size = size_of(item.spec);
  if (size > left) {
    return std::unexpected(Refusal(
        Error{Code::Exhausted, "the jobs of one submission are more than 64 MiB; submit fewer"}));
  }
  left -= size;
  return {};
}

/// Without what the items have in common with those they are like.
SubmitRequest shortened(SubmitRequest request) {
  for (SubmitRequest::Item& item : request.items) {
    const bool is_alike = item.like && item.payload.argv.empty();
    if (is_alike && item.spec.command == request.items[*item.like].spec.command) {
      item.spec.command.clear();
    }
  }
  return request;
}

}  // namespace

void put_in_order(std::vector<JobId>& jobs) {
  std::ranges::sort(jobs);
  const auto doubles = std::ranges::unique(jobs);
  jobs.erase(doubles.begin(), doubles.end());
}

std::uint64_t SubmitRequest::count() const {
  std::uint64_t count = 0;
  for (const Item& item : items) count += item.count();
  return count;
}

std::string write(const SubmitRequest& request) {
  return Writer::document("Submit", shortened(request));
}

Asked<SubmitRequest> read_submit_request(std::string_view json) {
  auto request = Reader::request<SubmitRequest>(json, "Submit");
  if (!request) return request;
  std::vector<SubmitRequest::Item>& items = request->items;
  if (items.empty()) return refuse("/items", "must have at least one job");
  std::size_t left = std::size_t{64} << 20;
  for (std::size_t i = 0; i < items.size(); ++i) {
    say_command(items[i]);
    auto right = fill_in(items, i, left);
    if (right) right = check_item(items, i);
    if (!right) return std::unexpected(std::move(right).error());
  }
  return request;
}

std::string write(const SubmitAnswer& answer) { return Writer::document("SubmitAnswer", answer); }

Result<SubmitAnswer> read_submit_answer(std::string_view json) {
  return Reader::answer<SubmitAnswer>(json, "SubmitAnswer");
}

void describe_submissions(Schemas& schemas) {
  schemas.document<SubmitRequest>("Submit", Form::Request);
  schemas.document<SubmitAnswer>("SubmitAnswer", Form::Answer);
}

}  // namespace gflow::api

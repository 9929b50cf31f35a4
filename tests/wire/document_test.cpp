// SPDX-License-Identifier: Apache-2.0
// docs/format/api.md against the code: every route is there, every example is what is written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "api/defrag.h"
#include "api/event.h"
#include "api/group.h"
#include "api/json.h"
#include "api/machine_parts.h"
#include "api/placement_view.h"
#include "api/queue.h"
#include "api/snapshot.h"
#include "api/statistics.h"
#include "api/token.h"
#include "base/text.h"
#include "core/status.h"
#include "os/file.h"
#include "server/routes.h"

namespace gflow::wire {
namespace {

std::string page() { return os::read_file(GFLOW_SOURCE_DIR "/docs/format/api.md").value(); }

/// Without the spaces and line ends between the tokens of a JSON text.
std::string compact(std::string_view json) {
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"' && (i == 0 || json[i - 1] != '\\')) quoted = !quoted;
    if (quoted || (json[i] != ' ' && json[i] != '\n')) text += json[i];
  }
  return text;
}

/// The indented blocks that are JSON, compact.
std::vector<std::string> examples() {
  std::vector<std::string> found;
  bool inside = false;
  const std::string text = page();
  for (const std::string_view line : split(text, '\n')) {
    const bool begins = !inside && line.starts_with("    {");
    inside = begins || (inside && line.starts_with("    "));
    if (begins) found.emplace_back();
    if (inside) found.back() += std::string(line) + "\n";
  }
  for (std::string& example : found) example = compact(example);
  return found;
}

template <typename Read>
std::string again(const std::string& text, Read read) {
  const auto value = read(text);
  return value ? api::write(*value) : value.error().message;
}

constexpr WallTime kNoon{std::chrono::milliseconds(1'772'366'400'000)};

/// What is only written.
std::string job_event() {
  return api::write_job_event(1'772'366'400'007,
                              kNoon,
                              {.what = Happening::Ended,
                               .job = JobId(7),
                               .user = {1000, "alice"},
                               .name = "train",
                               .status = Status::Failed,
                               .attempt = 1,
                               .node = "lab1",
                               .gpus = {1, 2},
                               .reason = EndReason::Exited,
                               .exit_code = 3});
}
std::string device_event() {
  return api::write_device_event(kNoon,
                                 {.node = "lab1",
                                  .gpu = 1,
                                  .uuid = "GPU-...",
                                  .quantity = DeviceChange::Quantity::Utilization,
                                  .before = 3,
                                  .now = 97});
}

std::string refused_submission() {
  constexpr std::string_view kBody =
      R"({"items":[{"spec":{"work_dir":"/","priority":300},"payload":{"argv":["true"]}}]})";
  return api::write_problem(api::read_submit_request(kBody).error());
}

/// The example read and written by the code, or empty if it is not a whole document.
std::optional<std::string> rewritten(const std::string& text) {
  const auto is = [&text](std::string_view kind) {
    return text.find("\"kind\":\"" + std::string(kind) + "\"") != std::string::npos;
  };
  if (is("Submit")) return again(text, api::read_submit_request);
  if (is("SubmitAnswer")) return again(text, api::read_submit_answer);
  if (is("Job")) return again(text, api::read_job);
  if (is("JobPage")) return again(text, api::read_job_page);
  if (is("Jobs")) return again(text, api::read_jobs_request);
  if (is("Update")) return again(text, api::read_update_request);
  if (is("Machine")) return again(text, api::read_machine);
  if (is("Queue")) return again(text, api::read_queue);
  if (is("Place")) return again(text, api::read_place_request);
  if (is("Placement")) return again(text, api::read_placement);
  if (is("Defrag")) return again(text, api::read_defrag);
  if (is("DefragRequest")) return again(text, api::read_defrag_request);
  if (is("Version")) return api::write(api::VersionView{"0.1.0"});
  if (is("Daemon")) return again(text, api::read_daemon);
  if (is("JobIds")) return api::write_job_ids(api::read_job_ids(text).value());
  if (is("Changes")) return api::write_revision(api::read_revision(text).value());
  if (is("JobUpdate")) return api::write_job_update(api::read_job_update(text).value());
  if (is("Topology")) return again(text, api::read_topology);
  if (is("GroupPage")) return again(text, api::read_group_page);
  if (is("Statistics")) return again(text, api::read_statistics);
  if (is("Drain")) return again(text, api::read_drain_request);
  if (is("Drains")) return api::write_drains(api::read_drains(text).value());
  if (is("TokenRequest")) return again(text, api::read_token_request);
  if (is("Token")) return again(text, api::read_new_token);
  if (is("Tokens")) return api::write_tokens(api::read_tokens(text).value());
  if (is("JobEvent")) return job_event();
  if (is("DeviceEvent")) return device_event();
  if (is("Problem")) return refused_submission();
  return {};
}

TEST(Document, NamesStatesAndTheirCodesInOneOrder) {
  std::string names;
  std::string codes;
  for (const StatusInfo& info : kStatuses) {
    names += fmt::format("`{}`", info.name);
    codes += fmt::format("`{}`", info.code);
  }
  std::string text = page();
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_TRUE(text.contains(names)) << names;
  EXPECT_TRUE(text.contains(codes)) << codes;
}

TEST(Document, HasEveryExampleAsTheCodeWritesIt) {
  int documents = 0;
  for (const std::string& text : examples()) {
    if (const auto written = rewritten(text)) {
      EXPECT_EQ(*written, text);
      ++documents;
      continue;
    }
    // A part of a job.
    const std::string member = text.substr(1, text.size() - 2);
    const std::string job = again("{\"id\":7," + member + "}", api::read_job);
    EXPECT_NE(job.find(member), std::string::npos) << job << "\n" << member;
  }
  EXPECT_EQ(documents, 28) << "one of each kind";
}

/// What is named like an event in a text: "job.ended" of "type=job.started,job.ended".
std::vector<std::string> event_names(const std::string& text) {
  // In quotes, in a list or after a sign; a file (job.h), a call and a member are none.
  static const std::regex kName(
      R"re((^|[`"',=:“])((job|device|node)\.[a-z_]+)(?![A-Za-z0-9_(.]))re");
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), kName); at != std::sregex_iterator();
       ++at) {
    if ((*at)[2] != "job.h") found.push_back((*at)[2]);
  }
  return found;
}

/// What people read: the documents and, in the catalogue, every help, hint and message.
std::vector<std::string> read_by_people() {
  std::vector<std::string> paths = {GFLOW_SOURCE_DIR "/po/zh_CN.po",
                                    GFLOW_SOURCE_DIR "/README.md",
                                    GFLOW_SOURCE_DIR "/README.zh-CN.md",
                                    GFLOW_SOURCE_DIR "/CHANGELOG.md"};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(GFLOW_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") paths.push_back(entry.path().string());
  }
  return paths;
}

TEST(Document, NamesOnlyEventsThatThereAre) {
  std::set<std::string> known = {std::string(api::kDeviceEvent), std::string(api::kNodeEvent)};
  for (const HappeningName& name : kHappenings) known.emplace(name.type);
  std::set<std::string> told;
  for (const std::string& path : read_by_people()) {
    for (const std::string& name : event_names(os::read_file(path).value())) {
      EXPECT_TRUE(known.contains(name)) << path << " names an event '" << name << "'";
      told.insert(name);
    }
  }
  EXPECT_EQ(told, known) << "each is told of";
}

/// What the table says of each route.
std::map<std::string, std::string> rows() {
  std::map<std::string, std::string> found;
  const std::string text = page();
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with("| `")) continue;
    const std::size_t end = line.find("` |");
    found.emplace(line.substr(3, end - 3), line.substr(end));
  }
  return found;
}

TEST(Document, HasEveryRouteWithItsParametersAndDocuments) {
  const auto table = rows();
  for (const server::Route& route : server::routes()) {
    const std::string name = std::string(route.method) + " " + std::string(route.pattern);
    ASSERT_TRUE(table.contains(name)) << name;
    const std::string& row = table.at(name);
    for (const api::QueryParameter& told : route.handler.query()) {
      EXPECT_TRUE(row.contains(std::string(told.name) + "=")) << name << " " << told.name;
    }
    const auto tells_of = [&](std::string_view document) {
      const std::string quoted = "`" + std::string(document) + "`";
      EXPECT_TRUE(document.empty() || row.contains(quoted)) << name << ' ' << document;
    };
    tells_of(route.about.body);
    for (const api::Answered& answer : route.about.answers) tells_of(answer.document);
    EXPECT_EQ(row.contains("Idempotency-Key"), route.about.takes_key) << name;
  }
}

}  // namespace
}  // namespace gflow::wire

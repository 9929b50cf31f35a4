// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ostream>

#include "api/json.h"
#include "api/snapshot.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/subcommands.h"
#include "command/context.h"
#include "command/table.h"

namespace gflow::cli {
namespace {

constexpr const char* kPath = "/api/v1/drain";
constexpr std::uint64_t kMaxGpu = 65'535;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// "3", "0,2-4", "n1:0-3", "GPU-5ad1": one request for each GPU.
Result<void> read_gpus(const std::string& word, std::vector<api::DrainRequest>& requests) {
  const std::size_t colon = word.find(':');
  const std::string node = colon == std::string::npos ? "" : word.substr(0, colon);
  const std::string_view list =
      std::string_view(word).substr(colon == std::string::npos ? 0 : colon + 1);
  for (const std::string_view part : split(list, ',')) {
    if (!part.empty() && is_letter(part.front()) && colon != 0) {
      requests.push_back({.node = node, .gpu = {}, .uuid = std::string(part), .reason = ""});
      continue;
    }
    const std::size_t dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kMaxGpu || colon == 0) {
      return fail(Code::Usage,
                  tr_format("'{}' is not a GPU; write '3', '0,2' or '4-7', with several nodes "
                            "'NODE:3', or a UUID",
                            printable(word)));
    }
    for (std::uint64_t gpu = *first; gpu <= *last; ++gpu) {
      requests.push_back({.node = node, .gpu = static_cast<int>(gpu), .uuid = "", .reason = ""});
    }
  }
  return {};
}

/// "gpu 3", "gpu n1:0-3", "node", "node NAME": one request for each.
Result<std::vector<api::DrainRequest>> read_what(const std::vector<std::string>& words) {
  if (words.front() == "node") {
    if (words.size() > 2) return fail(Code::Usage, tr("name one node at a time"));
    if (words.size() == 2 && trim(words[1]).empty()) {
      return fail(Code::Usage, tr("the name of the node is empty; without a name it is this node"));
    }
    const std::string node = words.size() == 2 ? words[1] : "";
    return std::vector{api::DrainRequest{.node = node, .gpu = {}, .uuid = "", .reason = ""}};
  }
  if (words.front() != "gpu") {
    return fail(Code::Usage,
                tr_format("'{}' is neither 'gpu' nor 'node'", printable(words.front())));
  }
  std::vector<api::DrainRequest> requests;
  for (std::size_t i = 1; i < words.size(); ++i) GF_CHECK(read_gpus(words[i], requests));
  if (requests.empty()) return fail(Code::Usage, tr("no GPU given; 'ginfo -1' lists them"));
  return requests;
}

/// "GPU 3", "GPU 3 of node n1", "this node", "node n1".
std::string name_of(const std::string& name, std::optional<int> gpu) {
  const std::string node = name.empty() ? tr("this node") : tr_format("node {}", printable(name));
  if (!gpu) return node;
  return name.empty() ? fmt::format("GPU {}", *gpu) : tr_format("GPU {} of {}", *gpu, node);
}

/// As it was named: "GPU 3 of node n1", "GPU-5ad1".
std::string name_of(const api::DrainRequest& request) {
  if (request.uuid.empty()) return name_of(request.node, request.gpu);
  const std::string uuid = printable(request.uuid);
  return request.node.empty() ? uuid : tr_format("{} of {}", uuid, name_of(request.node, {}));
}

/// "GPU 3 of node n1", "was GPU 3 of node n1 (not present)": another one may be GPU 3 by now.
std::string shown_name(const Drain& drain, bool present) {
  const std::string name = drain.gpu || drain.is_of_node()
                               ? name_of(drain.node, drain.gpu)
                               : tr_format("a cut GPU of {}", name_of(drain.node, {}));
  if (present) return name;
  return !drain.is_of_node() ? tr_format("was {} (not present)", name)
                             : tr_format("{} (not present)", name);
}

enum class DrainChange { Drain, Resume };

Result<int> run_change(const Invocation& invocation, Context& context, DrainChange change) {
  auto requests = GF_TRY(read_what(invocation.words));
  for (api::DrainRequest& request : requests) {
    request.resume = change == DrainChange::Resume;
    if (invocation.has("reason")) request.reason = invocation.get("reason");
    GF_CHECK(context.daemon().call("POST", kPath, api::write(request)));
    if (!context.json) {
      const std::string name = name_of(request);
      context.out << (request.resume ? tr_format("{} is back in service\n", name)
                                     : tr_format("{} is drained\n", name));
    }
  }
  if (context.json) context.out << GF_TRY(context.daemon().call("GET", kPath)) << '\n';
  return 0;
}

Result<int> run_drain_devices(const Invocation& invocation, Context& context) {
  return run_change(invocation, context, DrainChange::Drain);
}
Result<int> run_resume_devices(const Invocation& invocation, Context& context) {
  return run_change(invocation, context, DrainChange::Resume);
}

Result<int> run_show_drained(const Invocation& /*invocation*/, Context& context) {
  if (context.json) {
    context.out << GF_TRY(context.daemon().call("GET", kPath)) << '\n';
    return 0;
  }
  const auto drains = GF_TRY(context.daemon().drains());
  if (drains.empty()) {
    context.out << tr("nothing is drained\n");
    return 0;
  }
  std::vector<Row> rows;
  for (const auto& [drain, present] : drains) {
    rows.push_back({{shown_name(drain, present)},
                    {drain.uuid.empty() ? "-" : printable(drain.uuid)},
                    {printable(drain.by)},
                    {printable(drain.reason)}});
  }
  const std::vector<Column> columns = {{.header = tr("DRAINED")},
                                       {.header = "UUID", .leaves = 1},
                                       {.header = tr("BY"), .leaves = 2},
                                       {.header = tr("REASON"), .cut = Cut::Wrap, .narrowest = 12}};
  context.out << screen_table(columns, rows, context.columns, Header::Shown, context.paint);
  return 0;
}

Positional what_words(Complete gpus) {
  return {.name = "gpu [NODE:]N|UUID... | node [NAME]",
          .help = tr("GPUs by index ('3', '0,2' or '4-7') or UUID, or a whole node. With several "
                     "nodes, name the node. An index is that of a GPU that is present now; a "
                     "drained one that is not is named by its UUID, which 'gctl show' has."),
          .least = 1,
          .most = kAnyNumber,
          .first = {{"gpu", gpus}, {"node"}}};
}

}  // namespace

Command gctl_show_command() {
  return {.name = "show",
          .summary = tr("show what is drained, by whom and why"),
          .usage = {"[options]"},
          .run = run_show_drained};
}

Command gctl_drain_command() {
  return {
      .name = "drain",
      .summary = tr("stop starting new jobs on a GPU or node"),
      .usage = {"gpu [NODE:]N|UUID... [--reason TEXT]", "node [NAME] [--reason TEXT]"},
      .description = tr("Running jobs continue; no new jobs are started. The drain lasts until "
                        "'gctl resume', across restarts of the daemon. Only operators may drain."),
      .options = {{.name = "reason",
                   .letters = "r",
                   .value = "TEXT",
                   .help =
                       tr("Reason for the drain, which ginfo and 'gjob why' show to all users.")}},
      .words = what_words(Complete::Gpu),
      .examples = {{"gctl drain gpu 3 --reason 'ECC errors'", tr("drain GPU 3")},
                   {"gctl drain node -r 'reboot at noon'", tr("drain the whole machine")}},
      .run = run_drain_devices,
  };
}

Command gctl_resume_command() {
  return {
      .name = "resume",
      .summary = tr("return drained GPUs or nodes to service"),
      .usage = {"gpu [NODE:]N|UUID...", "node [NAME]"},
      .words = what_words(Complete::DrainedGpu),
      .examples = {{"gctl resume gpu 3", tr("return GPU 3 to service")}},
      .run = run_resume_devices,
  };
}

}  // namespace gflow::cli

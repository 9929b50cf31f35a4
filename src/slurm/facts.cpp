// SPDX-License-Identifier: Apache-2.0
#include "slurm/facts.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "core/slurm_text.h"

namespace gflow::slurm {
namespace {

constexpr std::size_t kMostHosts = 10'000;
constexpr std::uint64_t kMostIndices = 1024;
constexpr std::string_view kNone = "(null)";
constexpr std::string_view kNoTask = "4294967294";  ///< of what was left of an array that ended

std::int64_t number_of(std::string_view text, std::int64_t otherwise = 0) {
  const auto read = parse_number(text);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return read && *read <= kMost ? static_cast<std::int64_t>(*read) : otherwise;
}

int small_number_of(std::string_view text) {
  return static_cast<int>(std::min<std::int64_t>(number_of(text), 10'000'000));
}

std::string_view unless_none(std::string_view text) {
  return text == kNone || text == "N/A" ? std::string_view{} : text;
}

/// Where commas part it that are in no brackets of this kind.
std::vector<std::string_view> outside(std::string_view text, char open, char close) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == open) ++depth;
    if (i < text.size() && text[i] == close) --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (i > begin) parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

/// "0-1,3": each number; nothing of what is none.
std::vector<std::string_view> ends_of(std::string_view range) {
  const std::size_t dash = range.find('-');
  return {range.substr(0, dash), dash == std::string_view::npos ? range : range.substr(dash + 1)};
}

std::vector<int> indices_in(std::string_view text) {
  std::vector<int> all;
  for (const std::string_view range : fields_between(text, ',')) {
    const auto ends = ends_of(range);
    const auto first = parse_number(ends[0]);
    const auto last = parse_number(ends[1]);
    if (!first || !last || *last >= kMostIndices) return {};
    for (std::uint64_t i = *first; i <= *last; ++i) all.push_back(static_cast<int>(i));
  }
  return all;
}

/// "0/10,2/10": of each GPU in turn how many shards it has in use, and in all.
std::vector<int> shared_indices_in(std::string_view text) {
  std::vector<int> all;
  int index = 0;
  for (const std::string_view one : fields_between(text, ',')) {
    const std::size_t slash = one.find('/');
    if (slash == std::string_view::npos) return {};
    if (number_of(one.substr(0, slash)) > 0) all.push_back(index);
    ++index;
  }
  return all;
}

/// Slurm 22.05 and 24.11 write it in different ways.
Gres gres_of(std::string_view text) {
  Gres gres;
  constexpr std::string_view kIndices = "IDX:";
  const std::size_t open = std::min(text.find('('), text.size());
  if (open < text.size()) {
    const std::string_view inside = text.substr(open + 1, text.find(')', open) - open - 1);
    gres.indices = inside.starts_with(kIndices) ? indices_in(inside.substr(kIndices.size()))
                                                : shared_indices_in(inside);
  }
  text = text.substr(0, open);
  if (text.starts_with("gres:")) text.remove_prefix(5);
  if (text.starts_with("gres/")) text.remove_prefix(5);
  std::vector<std::string_view> words = fields_between(text.substr(0, text.find('=')), ':');
  if (const std::size_t at = text.find('='); at != std::string_view::npos) {
    words.push_back(text.substr(at + 1));
  }
  gres.kind = words.front();
  gres.count = 1;
  if (words.size() > 1 && parse_number(words.back())) {
    gres.count = number_of(words.back());
    words.pop_back();
  }
  if (words.size() > 1) gres.type = words[1];
  return gres;
}

void add_hosts(std::vector<std::string>& hosts, std::string_view text) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) return hosts.emplace_back(text), void();
  const std::size_t close = std::min(text.find(']', open), text.size());
  const std::string before(text.substr(0, open));
  const std::string_view after = text.substr(std::min(close + 1, text.size()));
  for (const std::string_view range :
       fields_between(text.substr(open + 1, close - open - 1), ',')) {
    const auto ends = ends_of(range);
    const auto first = parse_number(ends[0]);
    const auto last = parse_number(ends[1]);
    if (!first || !last) return;
    for (std::uint64_t i = *first; i <= *last && hosts.size() < kMostHosts; ++i) {
      std::string number = std::to_string(i);
      if (number.size() < ends[0].size()) number.insert(0, ends[0].size() - number.size(), '0');
      add_hosts(hosts, before + number + std::string(after));
    }
  }
}

/// One field of squeue, and where it goes.
struct Field {
  char letter;
  void (*take)(Job& job, std::string_view text);
};
constexpr auto kFields = std::to_array<Field>({
    {'A',
     [](Job& job, std::string_view text) { job.id = static_cast<std::uint64_t>(number_of(text)); }},
    {'K',
     [](Job& job, std::string_view text) {
       job.tasks = text == kNoTask ? std::string_view{} : unless_none(text);
     }},
    {'j', [](Job& job, std::string_view text) { job.name = text; }},
    {'u', [](Job& job, std::string_view text) { job.user = text; }},
    {'U',
     [](Job& job, std::string_view text) {
       job.uid = static_cast<std::uint32_t>(number_of(text));
     }},
    {'T', [](Job& job, std::string_view text) { job.state = text; }},
    {'r', [](Job& job, std::string_view text) { job.reason = text; }},
    {'b', [](Job& job, std::string_view text) { job.gres = read_gres(unless_none(text)); }},
    {'C', [](Job& job, std::string_view text) { job.cpus = small_number_of(text); }},
    {'D',
     [](Job& job, std::string_view text) {
       job.nodes = std::clamp(small_number_of(text), 1, 10'000);
     }},
    {'N', [](Job& job, std::string_view text) { job.node_names = read_host_list(text); }},
    {'l',
     [](Job& job, std::string_view text) {
       const auto span = read_span(text);
       if (span && span->count() > 0) job.limit = std::chrono::ceil<std::chrono::seconds>(*span);
     }},
    {'V',
     [](Job& job, std::string_view text) { job.submitted = read_time(text).value_or(WallTime{}); }},
    {'S', [](Job& job, std::string_view text) { job.started = read_time(text); }},
    {'e', [](Job& job, std::string_view text) { job.ended = read_time(text); }},
    {'M',
     [](Job& job, std::string_view text) {
       job.run_time = read_span(text).value_or(std::chrono::milliseconds(0));
     }},
    {'y', [](Job& job, std::string_view text) { job.nice = number_of(text); }},
    {'Z', [](Job& job, std::string_view text) { job.work_dir = unless_none(text); }},
    {'k', [](Job& job, std::string_view text) { job.comment = unless_none(text); }},
    {'o', [](Job& job, std::string_view text) { job.command = unless_none(text); }},
    {'a', [](Job& job, std::string_view text) { job.account = unless_none(text); }},
    {'F',
     [](Job& job, std::string_view text) {
       job.array = static_cast<std::uint64_t>(number_of(text));
     }},
});

std::vector<std::string_view> parts_between(std::string_view text, std::string_view mark) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(mark);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + mark.size());
  }
}

/// The value behind " NAME=" up to the next blank; "" if it is not there.
std::string_view value_in(std::string_view line, std::string_view name) {
  std::size_t at = 0;
  while ((at = line.find(name, at)) != std::string_view::npos) {
    const std::size_t end = at + name.size();
    const bool is_its = (at == 0 || line[at - 1] == ' ') && end < line.size() && line[end] == '=';
    if (is_its) return line.substr(end + 1, line.find(' ', end) - end - 1);
    at = end;
  }
  return {};
}

/// Without " [root@2026-11-28T12:00:00]" and what is behind it.
std::string_view without_who(std::string_view reason) {
  for (std::size_t at = 0; (at = reason.find(" [", at)) != std::string_view::npos; ++at) {
    const std::string_view rest = reason.substr(at, reason.find(']', at) - at);
    const std::size_t when = rest.find('@');
    if (when != std::string_view::npos && read_time(rest.substr(when + 1))) {
      return reason.substr(0, at);
    }
  }
  return reason;
}

Node node_of(std::string_view line) {
  Node node;
  node.name = value_in(line, "NodeName");
  node.gres = read_gres(unless_none(value_in(line, "Gres")));
  node.cpus = small_number_of(value_in(line, "CPUTot"));
  node.memory =
      Memory::mib(std::min<std::int64_t>(number_of(value_in(line, "RealMemory")), 1LL << 40));
  node.state = value_in(line, "State");
  constexpr std::string_view kReason = " Reason=";
  if (const std::size_t at = line.find(kReason); at != std::string_view::npos) {
    node.reason = trim(without_who(line.substr(at + kReason.size())));
  }
  return node;
}

/// What one description of a job says beyond squeue.
struct Details {
  int times = 0;
  int tasks = 1;
  std::vector<Part> parts{};
  std::vector<Gres> of_job{};   ///< of all its nodes
  std::vector<Gres> of_task{};  ///< of each task
  std::string output{};
};

/// What it asks for on each node, however it said that.
std::vector<Gres> gres_of_node(const Details& details, int nodes) {
  std::vector<Gres> gres = details.of_job.empty() ? details.of_task : details.of_job;
  const std::int64_t times = details.of_job.empty() ? details.tasks : 1;
  for (Gres& one : gres) one.count = (one.count * times + nodes - 1) / nodes;
  return gres;
}

void take_line(Details& details, std::string_view line) {
  const std::string_view text = trim(line);
  if (line.starts_with("     Nodes=")) {
    for (std::string& node : read_host_list(value_in(text, "Nodes"))) {
      details.parts.push_back({std::move(node), read_gres(value_in(text, "GRES"))});
    }
  } else if (line.starts_with("   NumNodes=")) {
    details.tasks = std::max(small_number_of(value_in(text, "NumTasks")), 1);
  } else if (line.starts_with("   TresPerJob=")) {
    details.of_job = read_gres(value_in(text, "TresPerJob"));
  } else if (line.starts_with("   TresPerTask=")) {
    details.of_task = read_gres(value_in(text, "TresPerTask"));
  } else if (line.starts_with("   StdOut=")) {
    details.output = text.substr(std::string_view("StdOut=").size());
  }
}

/// Code and signal: "3:9", or until Slurm 23.02 the number wait() gives.
std::optional<std::pair<int, int>> exit_of(std::string_view text) {
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto code = parse_number(text.substr(0, colon));
    const auto signal = parse_number(text.substr(colon + 1));
    if (!code || !signal) return std::nullopt;
    return std::pair(small_number_of(text.substr(0, colon)),
                     small_number_of(text.substr(colon + 1)));
  }
  const auto status = parse_number(text);
  if (!status) return std::nullopt;
  return std::pair(static_cast<int>(*status >> 8 & 0xFF), static_cast<int>(*status & 0x7F));
}

}  // namespace

std::vector<Gres> read_gres(std::string_view text) {
  std::vector<Gres> all;
  for (const std::string_view one : outside(text, '(', ')')) all.push_back(gres_of(one));
  return all;
}

std::vector<std::string> read_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string_view one : outside(text, '[', ']')) {
    if (hosts.size() < kMostHosts) add_hosts(hosts, one);
  }
  return hosts;
}

std::string name_of(const Job& job) {
  if (job.tasks.empty()) return std::to_string(job.id);
  const std::string tasks = job.tasks.substr(0, job.tasks.find('%'));
  const std::string array = std::to_string(job.array) + '_';
  return parse_number(tasks) ? array + tasks : array + '[' + tasks + ']';
}

std::string squeue_format(const std::string& mark) {
  std::string format = mark + ";";
  for (const Field& field : kFields) format += '%' + std::string(1, field.letter) + mark + ',';
  return format;
}

std::vector<Job> read_squeue(std::string_view text, const std::string& mark) {
  std::vector<Job> jobs;
  for (const std::string_view record : parts_between(text, mark + ";")) {
    const std::vector<std::string_view> fields = parts_between(record, mark + ",");
    if (fields.size() != kFields.size() + 1) continue;
    Job job;
    for (std::size_t i = 0; i < kFields.size(); ++i) kFields.at(i).take(job, trim(fields[i]));
    if (job.id > 0) jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<Node> read_nodes(std::string_view text) {
  std::vector<Node> nodes;
  for (const std::string_view line : fields_between(text, '\n')) {
    Node node = node_of(line);
    if (!node.name.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string exit_format(const std::string& mark) {
  return "JobID:.;" + mark + ",exit_code:.;" + mark;
}

void add_exits(std::vector<Job>& jobs, std::string_view text, const std::string& mark) {
  const std::vector<std::string_view> fields = parts_between(text, ';' + mark);
  std::map<std::uint64_t, std::pair<int, int>> exits;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    const auto id = parse_number(trim(fields[i]));
    const auto exit = exit_of(trim(fields[i + 1]));
    if (id && exit) exits[*id] = *exit;
  }
  for (Job& job : jobs) {
    const auto at = exits.find(job.id);
    if (at != exits.end()) job.exit = at->second;
  }
}

std::vector<std::uint64_t> add_details(std::vector<Job>& jobs, std::string_view text) {
  std::map<std::uint64_t, Details> all;
  Details* its = nullptr;
  for (const std::string_view line : fields_between(text, '\n')) {
    if (line.starts_with("JobId=")) {
      its = &all[static_cast<std::uint64_t>(number_of(value_in(line, "JobId")))];
      ++its->times;
    } else if (its != nullptr) {
      take_line(*its, line);
    }
  }
  std::vector<std::uint64_t> doubtful;
  for (Job& job : jobs) {
    const auto at = all.find(job.id);
    if (at == all.end()) continue;
    if (at->second.times != 1) {
      doubtful.push_back(job.id);
      continue;
    }
    job.parts = at->second.parts;
    job.output = at->second.output;
    if (job.gres.empty()) job.gres = gres_of_node(at->second, job.nodes);
  }
  return doubtful;
}

}  // namespace gflow::slurm

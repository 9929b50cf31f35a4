// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "core/topology.h"

// The matrix as text. `nvidia-smi topo -m` parts its columns by tabs, mails and issues by spaces;
// both are read word by word, so the header has to tell which words end a row.
namespace gflow {
namespace {

constexpr std::string_view kCorner = "GPU";
constexpr int kLinksOfOneGpu = 18;  // NVLink 4 and 5; no generation has more

struct Line {
  int number = 0;  ///< from 1
  std::vector<std::string> words;
};

/// The text without what a terminal takes as an order (nvidia-smi underlines its header).
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      plain += text[at];
      continue;
    }
    while (at < text.size() && !(text[at] >= 'a' && text[at] <= 'z')) ++at;
  }
  return plain;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool open = false;
  for (const char c : line) {
    const bool space = c == ' ' || c == '\t' || c == '\r';
    if (!space && !open) words.emplace_back();
    if (!space) words.back() += c;
    open = !space;
  }
  return words;
}

std::optional<int> gpu_number(std::string_view word) {
  if (!word.starts_with("GPU")) return std::nullopt;
  const auto number = parse_number(word.substr(3));
  if (!number || *number >= kMaxTopologyGpus) return std::nullopt;
  return static_cast<int>(*number);
}

struct Columns {
  int line = 0;
  int gpus = 0;
  std::size_t others = 0;  ///< NICs between the GPUs and the last columns
  bool cpus = false;
  bool numa = false;
};

/// The header: "GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity GPU NUMA ID"; empty if it is another
/// line.
std::optional<Columns> columns_of(const Line& line) {
  // A corner that is not empty: indented text in YAML has to begin where its rows begin.
  std::size_t at = !line.words.empty() && line.words.front() == kCorner ? 1 : 0;
  if (at >= line.words.size() || line.words[at] != "GPU0") return std::nullopt;
  Columns columns{.line = line.number};
  while (at < line.words.size() && gpu_number(line.words[at]) == columns.gpus) {
    ++columns.gpus;
    ++at;
  }
  const auto ends = [](const std::string& word) {
    return word == "CPU" || word == "NUMA" || word == "GPU";
  };
  for (; at < line.words.size() && !ends(line.words[at]); ++at) ++columns.others;
  columns.cpus = at < line.words.size() && line.words[at] == "CPU";
  if (columns.cpus) at += 2;
  columns.numa = at < line.words.size() && line.words[at] == "NUMA";
  const bool is_row = columns.gpus == 1 && line.words.size() > 1 && line.words[1] == "X";
  return is_row ? std::nullopt : std::optional(columns);
}

std::unexpected<Error> wrong(const Line& line, std::string_view what) {
  return fail(Code::Usage, fmt::format("line {}: {}", line.number, what));
}

Result<void> take_cell(Topology& topology, const Line& line, int column) {
  const int row = *gpu_number(line.words.front());
  const std::string& word = line.words[static_cast<std::size_t>(column) + 1];
  const auto at = topology.at(row, column);
  if (const auto path = parse_path_class(word)) {
    topology.paths[at] = *path;
    return {};
  }
  for (const std::string_view name : {"NV", "XGMI"}) {
    if (!word.starts_with(name)) continue;
    const auto links = parse_number(std::string_view(word).substr(name.size()));
    if (!links || *links < 1 || *links > kMaxLinks) continue;
    topology.links[at] = static_cast<int>(*links);
    topology.link_name = name;
    return {};
  }
  return wrong(
      line,
      fmt::format(
          "'{}' is none of X, PIX, PXB, PHB, NODE, SYS, NV1 to NV{}", printable(word), kMaxLinks));
}

Result<void> take_row(Topology& topology, const Columns& columns, const Line& line) {
  const auto gpus = static_cast<std::size_t>(columns.gpus);
  if (line.words.size() < gpus + 1) return wrong(line, "too few columns");
  for (int column = 0; column < columns.gpus; ++column) {
    GF_CHECK(take_cell(topology, line, column));
  }
  std::size_t at = gpus + 1 + columns.others;
  const int row = *gpu_number(line.words.front());
  std::string cpus;
  if (columns.cpus && at < line.words.size()) cpus = line.words[at++];
  if (!columns.numa || at >= line.words.size()) return {};
  const auto node = parse_number(line.words[at]);  // "N/A" and "0-1" tell of no single node
  if (!node || *node > 1023) return {};
  topology.numa[static_cast<std::size_t>(row)] = static_cast<int>(*node);
  const auto is_node = [&](const NumaCpus& known) { return known.node == static_cast<int>(*node); };
  const bool are_cpus = !cpus.empty() && cpus.find_first_not_of("0123456789,-") == cpus.npos;
  if (are_cpus && std::ranges::none_of(topology.cpus, is_node)) {
    topology.cpus.push_back({static_cast<int>(*node), cpus});
  }
  return {};
}

/// The path that the name of a link stands in place of.
void guess_hidden_paths(Topology& topology) {
  for (int a = 0; a < topology.gpus; ++a) {
    for (int b = 0; b < topology.gpus; ++b) {
      if (topology.links_between(a, b) == 0) continue;
      const auto node_a = topology.numa[static_cast<std::size_t>(a)];
      const auto node_b = topology.numa[static_cast<std::size_t>(b)];
      const bool near = node_a && node_a == node_b;
      topology.paths[topology.at(a, b)] = near ? PathClass::Node : PathClass::Sys;
    }
  }
}

/// A GPU with more links in all than any GPU has shares them: they go to a switch.
void find_switch(Topology& topology) {
  if (topology.gpus < 2) return;
  const int each = topology.links_between(0, 1);
  if (each * (topology.gpus - 1) <= kLinksOfOneGpu) return;
  for (int a = 0; a < topology.gpus; ++a) {
    for (int b = 0; b < topology.gpus; ++b) {
      if (a != b && topology.links_between(a, b) != each) return;
    }
  }
  topology.switch_links.assign(static_cast<std::size_t>(topology.gpus), each);
  std::ranges::fill(topology.links, 0);
}

std::string cell_text(const Topology& topology, int a, int b) {
  if (a == b) return "X";
  int links = topology.links_between(a, b);
  if (topology.has_switch()) {
    links = std::max(links,
                     std::min(topology.switch_links[static_cast<std::size_t>(a)],
                              topology.switch_links[static_cast<std::size_t>(b)]));
  }
  if (links > 0) return fmt::format("{}{}", topology.link_name, links);
  return std::string(path_class_name(topology.path_between(a, b)));
}

std::string cpus_of(const Topology& topology, int node) {
  const auto found = std::ranges::find(topology.cpus, node, &NumaCpus::node);
  return found == topology.cpus.end() ? "" : found->cpus;
}

}  // namespace

Result<Topology> parse_topology(std::string_view text, const LinkSpeeds& speeds) {
  const std::string plain = without_escapes(text);
  std::optional<Columns> columns;
  Topology topology;
  std::vector<bool> seen;
  int number = 0;
  for (const std::string_view piece : split(plain, '\n')) {
    const Line line{++number, words_of(piece)};
    if (!columns) {
      columns = columns_of(line);
      if (!columns) continue;
      topology = plain_topology(columns->gpus, PathClass::Sys);
      seen.resize(static_cast<std::size_t>(columns->gpus));
      continue;
    }
    const auto row = line.words.empty() ? std::nullopt : gpu_number(line.words.front());
    if (!row) continue;
    if (*row >= columns->gpus) return wrong(line, "a row without a column");
    if (seen[static_cast<std::size_t>(*row)]) break;  // the next matrix of the text
    seen[static_cast<std::size_t>(*row)] = true;
    GF_CHECK(take_row(topology, *columns, line));
  }
  if (!columns) return fail(Code::Usage, "there is no line with GPU0 above a matrix");
  if (std::ranges::find(seen, false) != seen.end()) {
    return fail(Code::Usage, fmt::format("line {}: a column without a row", columns->line));
  }
  topology.speeds = speeds;
  std::ranges::sort(topology.cpus, {}, &NumaCpus::node);
  guess_hidden_paths(topology);
  GF_CHECK(check(topology));
  find_switch(topology);
  return topology;
}

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows matrix_rows(const Topology& topology) {
  Rows rows(1, {std::string(kCorner)});
  for (int gpu = 0; gpu < topology.gpus; ++gpu) rows[0].push_back(fmt::format("GPU{}", gpu));
  rows[0].insert(rows[0].end(), {"CPU Affinity", "NUMA Affinity"});
  for (int a = 0; a < topology.gpus; ++a) {
    std::vector<std::string> row = {fmt::format("GPU{}", a)};
    for (int b = 0; b < topology.gpus; ++b) row.push_back(cell_text(topology, a, b));
    const auto node = topology.numa[static_cast<std::size_t>(a)];
    const std::string cpus = node ? cpus_of(topology, *node) : "";
    row.push_back(cpus.empty() ? "N/A" : cpus);
    row.push_back(node ? std::to_string(*node) : "N/A");
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Of each column, with what stands between it and the next.
std::vector<std::size_t> widths_of(const Rows& rows, int gpus) {
  // Eight and more stand closer, so that eight fit a usual terminal.
  constexpr int kMany = 8;
  std::vector<std::size_t> widths(rows[0].size());
  for (std::size_t at = 0; at < widths.size(); ++at) {
    for (const auto& row : rows) widths[at] = std::max(widths[at], row[at].size());
    widths[at] += gpus >= kMany && at < static_cast<std::size_t>(gpus) ? 1 : 2;
  }
  return widths;
}

/// The first column, and from `first` on up to `end`.
std::string part_of(const Rows& rows,
                    const std::vector<std::size_t>& widths,
                    std::size_t first,
                    std::size_t end) {
  std::string out;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t at = first; at < end; ++at) {
      line += fmt::format("{:<{}}", row[at], widths[at]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::string topology_text(const Topology& topology, std::size_t columns) {
  const Rows rows = matrix_rows(topology);
  const std::vector<std::size_t> widths = widths_of(rows, topology.gpus);
  constexpr std::size_t kGap = 2;  // behind the last column there is none
  std::string out;
  for (std::size_t first = 1, end = 1; first < widths.size(); first = end) {
    std::size_t used = widths[0];
    do {
      used += widths[end++];
    } while (end < widths.size() && (columns == 0 || used + widths[end] <= columns + kGap));
    out += (first == 1 ? "" : "\n") + part_of(rows, widths, first, end);
  }
  return out;
}

}  // namespace gflow

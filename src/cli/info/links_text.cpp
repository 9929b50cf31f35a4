// SPDX-License-Identifier: Apache-2.0
#include "cli/info/links_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/translate.h"
#include "command/wrap.h"

namespace gflow::cli {

namespace {

struct Meaning {
  PathClass path;
  std::string_view text;
};
constexpr std::array kMeanings = std::to_array<Meaning>({
    {PathClass::Pix, tr_later("at most one PCIe bridge")},
    {PathClass::Pxb, tr_later("several PCIe bridges, not the host bridge")},
    {PathClass::Phb, tr_later("the host bridge of a CPU")},
    {PathClass::Node, tr_later("several host bridges of one NUMA node")},
    {PathClass::Sys, tr_later("the interconnect between NUMA nodes")},
});

/// "20.6 GB/s", "12 GB/s".
std::string speed_text(int mb_per_second) {
  return fmt::format("{:g} GB/s", static_cast<double>(mb_per_second) / 1000);
}

bool has_links(const Topology& topology) {
  return topology.has_switch() ||
         std::ranges::any_of(topology.links, [](int links) { return links > 0; });
}

/// Whether the matrix shows this path: a link or a switch stands in its place.
bool shows(const Topology& topology, PathClass path) {
  for (int a = 0; a < topology.gpus; ++a) {
    for (int b = 0; b < a; ++b) {
      const bool linked = topology.has_switch() || topology.links_between(a, b) > 0;
      if (!linked && topology.path_between(a, b) == path) return true;
    }
  }
  return false;
}

std::string legend(const Topology& topology, std::size_t columns) {
  std::string out;
  const auto add = [&](std::string_view word, const std::string& text) {
    out += labelled(fmt::format("  {:<6}", word), text, columns);
  };
  if (has_links(topology)) {
    // A message of its own: that of kept_sentence.h counts links.
    const std::string links =
        topology.link_name == "NV" ? "NVLinks" : tr_format("{0} links", topology.link_name);
    const std::string speed = speed_text(topology.speeds.link);
    add(topology.link_name + "#",
        topology.has_switch() ? tr_format("that many {} to a switch, {} each", links, speed)
                              : tr_format("that many {}, {} each", links, speed));
  }
  for (const Meaning& meaning : kMeanings) {
    if (!shows(topology, meaning.path)) continue;
    const int speed = topology.speeds.path.at(static_cast<std::size_t>(meaning.path));
    add(path_class_name(meaning.path),
        fmt::format(
            "{}, {}", tr(meaning.text), speed == 0 ? tr("speed not known") : speed_text(speed)));
  }
  return out.empty() ? "" : "\n" + out;
}

}  // namespace

Result<std::string> links_text(const api::NodeView& node, std::size_t columns) {
  if (node.devices.empty()) {
    return node.note.empty()
               ? tr("No GPUs\n")
               : fit_lines(tr_format("No GPUs: {}\n", tr(printable(node.note))), columns);
  }
  Topology topology = GF_TRY(api::topology_of(node.topology));
  if (topology.gpus == 0)
    return fit_lines(tr("How the GPUs are connected is not known.\n"), columns);
  // Text of a daemon that need not be ours.
  topology.link_name = printable(topology.link_name);
  for (NumaCpus& one : topology.cpus) one.cpus = printable(one.cpus);
  return topology_text(topology, columns) + legend(topology, columns);
}

}  // namespace gflow::cli

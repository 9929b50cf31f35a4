// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow {

/// How two devices reach each other over PCIe, from near to far, as `nvidia-smi topo -m` names it.
enum class PathClass : std::uint8_t {
  Same,  ///< X: the device itself
  Pix,   ///< PIX: at most one PCIe bridge
  Pxb,   ///< PXB: several PCIe bridges, not the host bridge
  Phb,   ///< PHB: the host bridge of one CPU
  Node,  ///< NODE: several host bridges of one NUMA node
  Sys,   ///< SYS: the interconnect between NUMA nodes
};
constexpr std::size_t kPathClasses = 6;

/// "X", "PIX", ... "SYS".
[[nodiscard]] constexpr std::string_view path_class_name(PathClass path) {
  switch (path) {
    case PathClass::Same:
      return "X";
    case PathClass::Pix:
      return "PIX";
    case PathClass::Pxb:
      return "PXB";
    case PathClass::Phb:
      return "PHB";
    case PathClass::Node:
      return "NODE";
    case PathClass::Sys:
      return "SYS";
  }
  return "unknown";
}
[[nodiscard]] std::optional<PathClass> parse_path_class(std::string_view name);

/// MB/s in one direction, as the collective libraries count them. 0 is not known.
struct LinkSpeeds {
  int link = 0;                          ///< of one direct link
  std::array<int, kPathClasses> path{};  ///< of each path class; Same is not used
  friend bool operator==(const LinkSpeeds&, const LinkSpeeds&) = default;
};

/// The CPUs of a NUMA node, written as the kernel writes lists: "0-23,48-71".
struct NumaCpus {
  int node = 0;
  std::string cpus;
  friend bool operator==(const NumaCpus&, const NumaCpus&) = default;
};

constexpr int kMaxTopologyGpus = 256;
constexpr int kMaxLinks = 64;  ///< of one pair, and of one GPU to its switch

/// How the GPUs of one machine are connected: facts. `gpus` 0 means that nothing is known. Matrices
/// are stored row by row, gpus * gpus values.
struct Topology {
  int gpus = 0;
  std::string link_name = "NV";   ///< what a link is called before its number: "NV", "XGMI"
  std::vector<int> links;         ///< direct links of each pair; without those to a switch
  std::vector<int> switch_links;  ///< of each GPU to a switch all are on; empty: there is none
  std::vector<PathClass> paths;   ///< the PCIe path of each pair, also where there are links
  LinkSpeeds speeds;
  std::vector<std::optional<int>> numa;  ///< NUMA node of each GPU; empty if not known
  std::vector<NumaCpus> cpus;            ///< by node; empty if not known

  [[nodiscard]] int links_between(int a, int b) const { return links[at(a, b)]; }
  [[nodiscard]] PathClass path_between(int a, int b) const { return paths[at(a, b)]; }
  [[nodiscard]] bool has_switch() const { return !switch_links.empty(); }
  /// MB/s between two different GPUs: their links or the switch, else their PCIe path.
  [[nodiscard]] int pair_speed(int a, int b) const;

  /// Where a pair is in the matrices.
  [[nodiscard]] std::size_t at(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(gpus) +
           static_cast<std::size_t>(b);
  }

  friend bool operator==(const Topology&, const Topology&) = default;
};

/// A machine of so many GPUs without links where every pair has the same path. The shape to start
/// from: all vectors but `cpus` and `switch_links` have their size.
[[nodiscard]] Topology plain_topology(int gpus, PathClass path);

/// Where a device of one topology is in another.
struct TopologyPlace {
  int origin = 0;  ///< the GPU there; negative: nothing is known of it
  /// One of several MIG devices that GPU is cut into. They have neither its links nor any to each
  /// other, and are as near to each other as two GPUs can be.
  bool is_slice = false;
};
/// The same paths, links and NUMA nodes for devices that are at these places of `before`. Empty
/// where that is, or there are more than kMaxTopologyGpus.
[[nodiscard]] Topology placed_topology(const Topology& before,
                                       const std::vector<TopologyPlace>& places);

/// Errors: Code::Usage for a matrix that is not square, not symmetric or out of its limits.
[[nodiscard]] Result<void> check(const Topology& topology);

/// The speeds of a GPU by the driver's name for it ("Tesla V100-SXM2-32GB"): NVLink or xGMI
/// generation, whether it has such links or not, and PCIe generation. One that is not known is
/// taken for NVLink 3 and PCIe 4.
[[nodiscard]] LinkSpeeds speeds_of_model(std::string_view model);

/// Reads what `nvidia-smi topo -m` prints, with its NICs, CPU and NUMA columns or without; XGMI2 is
/// read as NV2 is. What the text does not tell: `speeds` (given), the PCIe path of a linked pair
/// (taken from the NUMA nodes), and whether links go to a switch (assumed where all pairs have the
/// same number and that is more than a GPU has). Errors: Code::Usage with the line.
[[nodiscard]] Result<Topology> parse_topology(std::string_view text, const LinkSpeeds& speeds);

/// The matrix for people: a header, a row for each GPU with its NUMA node and CPUs, each line
/// ended. parse_topology() reads it, unless it is for a screen of so many columns: then what is too
/// wide for it goes on below, under a header of its own. 0: no screen.
[[nodiscard]] std::string topology_text(const Topology& topology, std::size_t columns = 0);

}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
// Sizes are those of the makers' data sheets. One device is what the driver counts as one: a die of
// an MI250X, a GPU of a K80.
#include <algorithm>

#include "core/catalogue.h"

namespace gflow::catalogue {
namespace {

// clang-format off
const std::vector<Listed>& listed() {
  static const std::vector<Listed> models = {
    // Data centre.
    {"A100", "nvidia", {80, 40}}, {"A100X", "nvidia", {80}},  {"A800", "nvidia", {80, 40}},
    {"A30", "nvidia", {24}},      {"A40", "nvidia", {48}},    {"A10", "nvidia", {24}},
    {"A10G", "nvidia", {24}},     {"A10M", "nvidia", {24}},   {"A16", "nvidia", {16}},
    {"A2", "nvidia", {16}},
    {"H100", "nvidia", {80, 94, 96, 64}}, {"H800", "nvidia", {80}}, {"H20", "nvidia", {96, 141}},
    {"H200", "nvidia", {141}},    {"GH200", "nvidia", {96, 144}}, {"B200", "nvidia", {180}},
    {"GB200", "nvidia", {186}},   {"B300", "nvidia", {288}},  {"GB300", "nvidia", {288}},
    {"L4", "nvidia", {24}},       {"L40", "nvidia", {48}},    {"L40S", "nvidia", {48}},
    {"L20", "nvidia", {48}},      {"L2", "nvidia", {24}},
    {"V100", "nvidia", {32, 16}}, {"V100S", "nvidia", {32}},  {"T4", "nvidia", {16}},
    {"P100", "nvidia", {16, 12}}, {"P40", "nvidia", {24}},    {"P4", "nvidia", {8}},
    {"K80", "nvidia", {12}},      {"M60", "nvidia", {8}},     {"M40", "nvidia", {12, 24}},
    // Workstations.
    {"RTXPRO6000", "nvidia", {96}}, {"RTX6000Ada", "nvidia", {48}}, {"RTX5880Ada", "nvidia", {48}},
    {"RTX5000Ada", "nvidia", {32}}, {"RTX4500Ada", "nvidia", {24}}, {"RTX4000Ada", "nvidia", {20}},
    {"A6000", "nvidia", {48}},    {"A5500", "nvidia", {24}},  {"A5000", "nvidia", {24}},
    {"A4500", "nvidia", {20}},    {"A4000", "nvidia", {16}},  {"A2000", "nvidia", {12, 6}},
    {"RTX8000", "nvidia", {48}},  {"RTX6000", "nvidia", {24}}, {"RTX5000", "nvidia", {16}},
    {"RTX4000", "nvidia", {8}},   {"GV100", "nvidia", {32}},  {"P6000", "nvidia", {24}},
    // Desktops.
    {"RTX5090", "nvidia", {32}},  {"RTX5090D", "nvidia", {32}}, {"RTX5080", "nvidia", {16}},
    {"RTX5070Ti", "nvidia", {16}}, {"RTX5070", "nvidia", {12}}, {"RTX5060Ti", "nvidia", {16, 8}},
    {"RTX4090", "nvidia", {24}},  {"RTX4090D", "nvidia", {24}}, {"RTX4080", "nvidia", {16}},
    {"RTX4080S", "nvidia", {16}}, {"RTX4070TiS", "nvidia", {16}}, {"RTX4070Ti", "nvidia", {12}},
    {"RTX4070S", "nvidia", {12}}, {"RTX4070", "nvidia", {12}}, {"RTX4060Ti", "nvidia", {8, 16}},
    {"RTX4060", "nvidia", {8}},
    {"RTX3090", "nvidia", {24}},  {"RTX3090Ti", "nvidia", {24}}, {"RTX3080", "nvidia", {10, 12}},
    {"RTX3080Ti", "nvidia", {12}}, {"RTX3070", "nvidia", {8}}, {"RTX3070Ti", "nvidia", {8}},
    {"RTX3060", "nvidia", {12, 8}}, {"RTX3060Ti", "nvidia", {8}},
    {"RTX2080Ti", "nvidia", {11}}, {"RTX2080", "nvidia", {8}}, {"RTX2080S", "nvidia", {8}},
    {"RTX2070", "nvidia", {8}},   {"RTX2070S", "nvidia", {8}}, {"RTX2060", "nvidia", {6, 12}},
    {"GTX1080Ti", "nvidia", {11}}, {"GTX1080", "nvidia", {8}}, {"GTX1070", "nvidia", {8}},
    {"GTX1060", "nvidia", {6, 3}}, {"GTX1660Ti", "nvidia", {6}}, {"GTX1660S", "nvidia", {6}},
    {"TITANRTX", "nvidia", {24}}, {"TITANV", "nvidia", {12}}, {"TITANXP", "nvidia", {12}},
    {"TITANX", "nvidia", {12}},
    // AMD.
    {"MI355X", "amd", {288}},     {"MI350X", "amd", {288}},   {"MI325X", "amd", {256}},
    {"MI308X", "amd", {192}},     {"MI300X", "amd", {192}},   {"MI300A", "amd", {128}},
    {"MI250X", "amd", {64}},      {"MI250", "amd", {64}},     {"MI210", "amd", {64}},
    {"MI100", "amd", {32}},       {"MI60", "amd", {32}},      {"MI50", "amd", {16, 32}},
    {"W7900", "amd", {48}},       {"W7800", "amd", {32, 48}}, {"W6800", "amd", {32}},
    {"RX9070XT", "amd", {16}},    {"RX7900XTX", "amd", {24}}, {"RX7900XT", "amd", {20}},
    {"RX7900GRE", "amd", {16}},   {"RX6900XT", "amd", {16}},  {"RX6800XT", "amd", {16}},
    {"RadeonVII", "amd", {16}},
    // Intel.
    {"Max1550", "intel", {128}},  {"Max1100", "intel", {48}}, {"Flex170", "intel", {16}},
    {"A770", "intel", {16, 8}},   {"A750", "intel", {8}},     {"B580", "intel", {12}},
    {"B570", "intel", {10}},      {"B60", "intel", {24}},
    // Huawei Ascend.
    {"910", "ascend", {32}},      {"910B", "ascend", {64}},      {"910B1", "ascend", {64}},
    {"910B2", "ascend", {64}},    {"910B3", "ascend", {64}},  {"910B4", "ascend", {32, 64}},
    {"910C", "ascend", {64}},     {"310P3", "ascend", {}},
  };
  return models;
}
// clang-format on

}  // namespace

std::span<const Listed> list() { return listed(); }

const Listed* find(std::string_view short_name) {
  static const std::vector<const Listed*> by_name = [] {
    std::vector<const Listed*> all;
    for (const Listed& model : listed()) all.push_back(&model);
    std::ranges::sort(all, {}, &Listed::name);
    return all;
  }();
  const auto at = std::ranges::lower_bound(by_name, short_name, {}, &Listed::name);
  return at == by_name.end() || (*at)->name != short_name ? nullptr : *at;
}

const std::vector<std::string>& known_models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Listed& model : listed()) all.emplace_back(model.name);
    return all;
  }();
  return names;
}

}  // namespace gflow::catalogue

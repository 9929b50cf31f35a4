// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/catalogue.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace gflow::devices::sim {
namespace {

constexpr Memory mib(std::int64_t n) { return Memory::mib(n); }

// Names and memory are what the drivers report (nvidia-smi, amd-smi, npu-smi), which is a little
// less than what is printed on the box where ECC or firmware takes a share.
constexpr std::array kModels = std::to_array<Model>({
    // clang-format off
    // key          aliases                          name                                vendor    memory       cap  idle  C  used
    {"H100",        "H100-80GB H100-SXM H100-SXM5",  "NVIDIA H100 80GB HBM3",            "nvidia", mib(81559),  700, 70, 34, mib(0)},
    {"H100-PCIe",   "",                              "NVIDIA H100 PCIe",                 "nvidia", mib(81559),  350, 48, 36, mib(0)},
    {"H200",        "H200-SXM",                      "NVIDIA H200",                      "nvidia", mib(143771), 700, 76, 33, mib(0)},
    {"B200",        "",                              "NVIDIA B200",                      "nvidia", mib(183359), 1000, 140, 34, mib(0)},
    {"A100",        "A100-80GB A100-SXM",            "NVIDIA A100-SXM4-80GB",            "nvidia", mib(81920),  400, 60, 31, mib(0)},
    {"A100-40GB",   "A100-SXM4-40",                  "NVIDIA A100-SXM4-40GB",            "nvidia", mib(40960),  400, 50, 30, mib(0)},
    {"A100-PCIe",   "",                              "NVIDIA A100 80GB PCIe",            "nvidia", mib(81920),  300, 44, 33, mib(0)},
    {"A800",        "",                              "NVIDIA A800-SXM4-80GB",            "nvidia", mib(81920),  400, 60, 31, mib(0)},
    {"H800",        "",                              "NVIDIA H800",                      "nvidia", mib(81559),  700, 70, 34, mib(0)},
    {"H20",         "",                              "NVIDIA H20",                       "nvidia", mib(97871),  500, 72, 33, mib(0)},
    {"V100",        "V100-32GB V100-SXM2",           "Tesla V100-SXM2-32GB",             "nvidia", mib(32768),  300, 42, 33, mib(0)},
    {"V100-16GB",   "",                              "Tesla V100-SXM2-16GB",             "nvidia", mib(16384),  300, 41, 33, mib(0)},
    {"P100",        "",                              "Tesla P100-PCIE-16GB",             "nvidia", mib(16384),  250, 26, 30, mib(0)},
    {"T4",          "",                              "Tesla T4",                         "nvidia", mib(15360),  70, 9, 35, mib(0)},
    {"L4",          "",                              "NVIDIA L4",                        "nvidia", mib(23034),  72, 12, 37, mib(0)},
    {"L40",         "",                              "NVIDIA L40",                       "nvidia", mib(46068),  300, 34, 31, mib(0)},
    {"L40S",        "",                              "NVIDIA L40S",                      "nvidia", mib(46068),  350, 34, 31, mib(0)},
    {"A10",         "",                              "NVIDIA A10",                       "nvidia", mib(23028),  150, 16, 32, mib(0)},
    {"A30",         "",                              "NVIDIA A30",                       "nvidia", mib(24576),  165, 28, 31, mib(0)},
    {"A40",         "",                              "NVIDIA A40",                       "nvidia", mib(46068),  300, 30, 33, mib(0)},
    {"A6000",       "RTXA6000",                      "NVIDIA RTX A6000",                 "nvidia", mib(49140),  300, 22, 34, mib(8)},
    {"RTX6000Ada",  "6000Ada",                       "NVIDIA RTX 6000 Ada Generation",   "nvidia", mib(49140),  300, 20, 33, mib(8)},
    {"RTX5090",     "5090",                          "NVIDIA GeForce RTX 5090",          "nvidia", mib(32607),  575, 22, 33, mib(8)},
    {"RTX4090",     "4090",                          "NVIDIA GeForce RTX 4090",          "nvidia", mib(24564),  450, 21, 33, mib(8)},
    {"RTX4080S",    "4080S RTX4080SUPER",            "NVIDIA GeForce RTX 4080 SUPER",    "nvidia", mib(16376),  320, 14, 34, mib(8)},
    {"RTX4080",     "4080",                          "NVIDIA GeForce RTX 4080",          "nvidia", mib(16376),  320, 14, 34, mib(8)},
    {"RTX3090",     "3090",                          "NVIDIA GeForce RTX 3090",          "nvidia", mib(24576),  350, 25, 35, mib(8)},
    {"RTX3080",     "3080",                          "NVIDIA GeForce RTX 3080",          "nvidia", mib(10240),  320, 20, 35, mib(8)},
    {"RTX2080Ti",   "2080Ti",                        "NVIDIA GeForce RTX 2080 Ti",       "nvidia", mib(11264),  250, 18, 35, mib(8)},
    {"GTX1080Ti",   "1080Ti",                        "NVIDIA GeForce GTX 1080 Ti",       "nvidia", mib(11264),  250, 16, 35, mib(8)},
    {"MI300X",      "",                              "AMD Instinct MI300X",              "amd",    mib(196592), 750, 140, 38, mib(285)},
    {"MI250X",      "",                              "AMD Instinct MI250X",              "amd",    mib(65520),  560, 90, 37, mib(12)},
    {"910B",        "Ascend910B 910B4",              "910B4-1",                          "ascend", mib(65536),  400, 90, 33, mib(3197)},
    // clang-format on
});

std::string normal(std::string_view text) {
  std::string kept;
  for (const char c : to_lower(text)) {
    if (c != ' ' && c != '-' && c != '_') kept += c;
  }
  return kept;
}

bool answers_to(const Model& model, const std::string& wanted) {
  if (normal(model.key) == wanted || normal(model.name) == wanted) return true;
  for (const std::string_view alias : split(model.aliases, ' ')) {
    if (!alias.empty() && normal(alias) == wanted) return true;
  }
  return false;
}

}  // namespace

std::optional<Model> find_model(std::string_view text) {
  const std::string wanted = normal(text);
  for (const Model& model : kModels) {
    if (answers_to(model, wanted)) return model;
  }
  return std::nullopt;
}

std::vector<std::string> model_keys() {
  std::vector<std::string> keys;
  for (const Model& model : kModels) keys.emplace_back(model.key);
  return keys;
}

std::string unknown_model_text(std::string_view text) {
  const std::vector<std::string> keys = model_keys();
  const auto near = nearest(text, keys);
  return fmt::format("unknown GPU model '{}'{}; there are {}",
                     printable(text),
                     near ? fmt::format(", did you mean '{}'?", *near) : "",
                     join(keys, ", "));
}

}  // namespace gflow::devices::sim

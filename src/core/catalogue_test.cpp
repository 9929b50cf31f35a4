// SPDX-License-Identifier: Apache-2.0
#include "core/catalogue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "base/text.h"

namespace gflow::catalogue {
namespace {

struct DriverName {
  std::string_view name;
  int mib;  ///< that the driver reports; 0: none
  std::string_view short_model;
  std::string_view device_model;
};

/// Names as NVML, amd-smi, Level Zero, npu-smi and the PCI ID list give them.
constexpr std::array kDriverNames = std::to_array<DriverName>({
    {"NVIDIA A100-SXM4-80GB", 81920, "A100", "A100-80G"},
    {"NVIDIA A100-SXM4-40GB", 40960, "A100", "A100-40G"},
    {"A100-SXM4-40GB", 0, "A100", "A100-40G"},
    {"NVIDIA A100 80GB PCIe", 81920, "A100", "A100-80G"},
    {"NVIDIA A100-PCIE-40GB", 40960, "A100", "A100-40G"},
    {"NVIDIA A100-PG509-200", 40960, "A100", "A100-40G"},
    {"NVIDIA A100-SXM-64GB", 65536, "A100", "A100"},
    {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, "A100-1g.5gb", "A100-1g.5gb"},
    {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", 9984, "H100-1g.10gb", "H100-1g.10gb"},
    {"NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", 9984, "H100-1g.10gb+me", "H100-1g.10gb+me"},
    {"NVIDIA A100 80GB PCIe MIG 1c.3g.40gb", 0, "A100-1c.3g.40gb", "A100-1c.3g.40gb"},
    {"NVIDIA-A100-SXM4-40GB-MIG-3g.20gb-SHARED", 19968, "A100-3g.20gb", "A100-3g.20gb"},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb+gfx",
     0,
     "RTXPRO6000-1g.24gb+gfx",
     "RTXPRO6000-1g.24gb+gfx"},
    {"a100_3g.20gb", 0, "A100-3g.20gb", "A100-3g.20gb"},
    {"1g.5gb", 0, "1g.5gb", "1g.5gb"},
    {"NVIDIA A100X", 81920, "A100X", "A100X"},
    {"NVIDIA A800-SXM4-80GB", 81920, "A800", "A800-80G"},
    {"NVIDIA A800 40GB Active", 40960, "A800", "A800-40G"},
    {"Tesla V100-SXM2-32GB", 32768, "V100", "V100-32G"},
    {"Tesla V100-SXM2-16GB", 16384, "V100", "V100-16G"},
    {"Tesla V100-SXM3-32GB-H", 32768, "V100", "V100-32G"},
    {"Tesla V100-SXM2-32GB-LS", 32768, "V100", "V100-32G"},
    {"Tesla V100-DGXS-32GB", 32508, "V100", "V100-32G"},
    {"Tesla V100-FHHL-16GB", 16160, "V100", "V100-16G"},
    {"Tesla V100-PCIE-16GB", 16384, "V100", "V100-16G"},
    {"Tesla V100S-PCIE-32GB", 32768, "V100S", "V100S"},
    {"Tesla P100-SXM2-16GB", 16384, "P100", "P100-16G"},
    {"Tesla P100-PCIE-12GB", 12198, "P100", "P100-12G"},
    {"Tesla P40", 24576, "P40", "P40"},
    {"Tesla T4", 15360, "T4", "T4"},
    {"Tesla K80", 11441, "K80", "K80"},
    {"NVIDIA H100 80GB HBM3", 81559, "H100", "H100-80G"},
    {"NVIDIA H100 PCIe", 81559, "H100", "H100-80G"},
    {"NVIDIA H100 NVL", 95830, "H100", "H100-94G"},
    {"NVIDIA H100 64GB HBM2", 65247, "H100", "H100-64G"},
    {"NVIDIA H800", 81559, "H800", "H800"},
    {"NVIDIA H20", 97871, "H20", "H20-96G"},
    {"NVIDIA H20-3e", 143771, "H20", "H20-141G"},
    {"NVIDIA H200", 143771, "H200", "H200"},
    {"NVIDIA H200 NVL", 143771, "H200", "H200"},
    {"NVIDIA GH200 480GB", 97871, "GH200", "GH200-96G"},
    {"NVIDIA GH200 144G HBM3e", 146831, "GH200", "GH200-144G"},
    {"NVIDIA B200", 183359, "B200", "B200"},
    {"NVIDIA GB200", 189471, "GB200", "GB200"},
    {"NVIDIA B300 SXM6 AC", 275040, "B300", "B300"},
    {"NVIDIA L4", 23034, "L4", "L4"},
    {"NVIDIA L40", 46068, "L40", "L40"},
    {"NVIDIA L40S", 46068, "L40S", "L40S"},
    {"NVIDIA A10", 23028, "A10", "A10"},
    {"NVIDIA A10G", 23028, "A10G", "A10G"},
    {"NVIDIA A30", 24576, "A30", "A30"},
    {"NVIDIA A40", 46068, "A40", "A40"},
    {"NVIDIA A40-12Q", 12288, "A40", "A40"},
    {"GRID V100-8C", 8192, "V100", "V100"},
    {"NVIDIA RTX A6000", 49140, "A6000", "A6000"},
    {"NVIDIA RTX A5500 Laptop GPU", 16384, "A5500", "A5500"},
    {"NVIDIA RTX 6000 Ada Generation", 49140, "RTX6000Ada", "RTX6000Ada"},
    {"NVIDIA RTX 4000 SFF Ada Generation", 20475, "RTX4000SFFAda", "RTX4000SFFAda"},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "RTXPRO6000", "RTXPRO6000"},
    {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 0, "RTXPRO6000", "RTXPRO6000"},
    {"Quadro RTX 8000", 46080, "RTX8000", "RTX8000"},
    {"Quadro RTX 6000", 24576, "RTX6000", "RTX6000"},
    {"Quadro RTX 5000 with Max-Q Design", 16384, "RTX5000", "RTX5000"},
    {"Quadro P6000", 24576, "P6000", "P6000"},
    {"Quadro GV100", 32508, "GV100", "GV100"},
    {"NVIDIA GeForce RTX 5090", 32607, "RTX5090", "RTX5090"},
    {"NVIDIA GeForce RTX 5090 D", 32607, "RTX5090D", "RTX5090D"},
    {"NVIDIA GeForce RTX 4090", 24564, "RTX4090", "RTX4090"},
    {"NVIDIA GeForce RTX 4080 SUPER", 16376, "RTX4080S", "RTX4080S"},
    {"NVIDIA GeForce RTX 4070 Ti SUPER", 16376, "RTX4070TiS", "RTX4070TiS"},
    {"NVIDIA GeForce RTX 4060 Ti", 16380, "RTX4060Ti", "RTX4060Ti-16G"},
    {"NVIDIA GeForce RTX 3090", 24576, "RTX3090", "RTX3090"},
    {"GeForce RTX 3090", 24268, "RTX3090", "RTX3090"},
    {"NVIDIA GeForce RTX 3090 Ti", 24564, "RTX3090Ti", "RTX3090Ti"},
    {"NVIDIA GeForce RTX 3080", 10240, "RTX3080", "RTX3080-10G"},
    {"NVIDIA GeForce RTX 3080 Laptop GPU", 16384, "RTX3080", "RTX3080"},
    {"NVIDIA GeForce RTX 2080 Ti", 11264, "RTX2080Ti", "RTX2080Ti"},
    {"GeForce GTX 1080 Ti", 11178, "GTX1080Ti", "GTX1080Ti"},
    {"GeForce GTX 1660 SUPER", 5944, "GTX1660S", "GTX1660S"},
    {"NVIDIA TITAN RTX", 24576, "TITANRTX", "TITANRTX"},
    {"TITAN X (Pascal)", 12196, "TITANX", "TITANX"},
    {"NVIDIA TITAN Xp", 12196, "TITANXP", "TITANXP"},
    {"NVIDIA TITAN V", 12066, "TITANV", "TITANV"},
    {"NVIDIA RTX 7090 Ultra", 65536, "RTX7090ULTRA", "RTX7090ULTRA"},
    {"AMD Instinct MI300X", 196592, "MI300X", "MI300X"},
    {"AMD Instinct MI300X OAM", 196592, "MI300X", "MI300X"},
    {"AMD INSTINCT MI250 (MCM) OAM AC MBA", 65520, "MI250", "MI250"},
    {"AMD Instinct MI250X / MI250", 65520, "MI250X", "MI250X"},
    {"Aldebaran/MI200 [Instinct MI250X/MI250]", 65520, "MI250X", "MI250X"},
    {"AMD Instinct MI210", 65520, "MI210", "MI210"},
    {"AMD Instinct MI100", 32752, "MI100", "MI100"},
    {"Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]", 0, "RX7900XT", "RX7900XT"},
    {"AMD Radeon RX 7900 XTX", 24560, "RX7900XTX", "RX7900XTX"},
    {"AMD Radeon PRO W7900", 49136, "W7900", "W7900"},
    {"AMD Radeon VII", 16368, "RadeonVII", "RadeonVII"},
    {"Intel(R) Data Center GPU Max 1550", 131072, "Max1550", "Max1550"},
    {"Ponte Vecchio XT [Data Center GPU Max 1100]", 49152, "Max1100", "Max1100"},
    {"Intel(R) Data Center GPU Flex 170", 14248, "Flex170", "Flex170"},
    {"Intel(R) Arc(TM) A770 Graphics", 16225, "A770", "A770-16G"},
    {"Intel(R) Arc(TM) Pro B60 Graphics", 24480, "B60", "B60"},
    {"Ascend910B3", 65536, "910B3", "910B3"},
    {"910B3", 65536, "910B3", "910B3"},
    {"910B4", 32768, "910B4", "910B4-32G"},
    {"910B4-1", 65536, "910B4", "910B4-64G"},
    {"910B4-1", 0, "910B4", "910B4-64G"},
    {"Ascend910", 0, "910", "910"},
    {"Ascend910_9392", 65536, "910C", "910C"},
    {"Toaster", 0, "TOASTER", "TOASTER"},
    {"", 0, "", ""},
});

TEST(Catalogue, KnowsWhatDriversWrite) {
  for (const DriverName& row : kDriverNames) {
    EXPECT_EQ(short_model("", row.name), row.short_model) << row.name;
    const auto memory = row.mib > 0 ? std::optional(Memory::mib(row.mib)) : std::nullopt;
    EXPECT_EQ(device_model("", row.name, memory), row.device_model) << row.name;
  }
}

TEST(Catalogue, AShortNameIsItsOwn) {
  for (const DriverName& row : kDriverNames) {
    EXPECT_EQ(short_model("", row.short_model), row.short_model);
    if (!read_model(row.name).empty()) {
      EXPECT_EQ(read_model(read_model(row.name)), read_model(row.name)) << row.name;
    }
  }
  for (const Listed& model : list()) {
    EXPECT_EQ(short_model("", model.name), model.name);
    EXPECT_EQ(read_model(model.name), model.name);
    EXPECT_EQ(read_model(to_lower(model.name)), model.name);
    EXPECT_EQ(vendor_of(model.name), model.vendor);
    for (const int size : model.sizes) {
      const std::string wanted = read_model(fmt::format("{}-{}G", model.name, size));
      const auto memory = std::optional(Memory::mib(size * 1020));
      EXPECT_TRUE(answers(wanted, device_model("", model.name, memory))) << wanted;
    }
  }
}

TEST(Catalogue, ReadsWhatPeopleWrite) {
  struct Row {
    std::string_view model;
    std::vector<std::string_view> written;
  };
  const std::array rows = {
      Row{"A100", {"A100", "a100", " a100 ", "NVIDIA A100", "A100-SXM", "a100sxm4", "A100-PCIe"}},
      Row{"A100-80G",
          {"a100-80g", "A100 80GB", "a100_80gb", "A100-SXM4-80GB", "A100-80", "A100-80 GB"}},
      Row{"A100-40G", {"A100-40G", "A100-SXM4-40", "NVIDIA-A100-PCIE-40GB", "A100M40"}},
      Row{"V100-32G", {"V100M32", "v100-32g", "Tesla V100-SXM2-32GB"}},
      Row{"V100-16G", {"V100M16", "V100 16G"}},
      Row{"RTX3090",
          {"3090",
           "RTX 3090",
           "rtx3090",
           "RTX-3090",
           "GeForce RTX 3090",
           "rtx_3090",
           "RTX3090-24G",
           "GeForceRTX3090"}},
      Row{"RTX3090Ti", {"3090ti", "RTX 3090 Ti"}},
      Row{"RTX4080S", {"4080s", "4080 SUPER", "RTX4080SUPER"}},
      Row{"GTX1080Ti", {"1080ti", "GTX 1080 Ti"}},
      Row{"RTX6000Ada", {"6000 Ada", "rtx6000ada", "RTX 6000 Ada"}},
      Row{"A6000", {"A6000", "RTX A6000", "rtxa6000"}},
      Row{"RTX8000", {"Quadro RTX 8000", "8000"}},
      Row{"RX7900XTX", {"7900XTX", "rx 7900 xtx"}},
      Row{"MI300X", {"mi300x", "Instinct MI300X", "AMD-MI300X"}},
      Row{"Max1550", {"max1550", "Max 1550"}},
      Row{"910B", {"910b", "Ascend910B", "ascend 910B"}},
      Row{"T4", {"t4", "Tesla-T4-SHARED", "T4-16G"}},
      Row{"B200", {"b200", "B200-192G"}},
      Row{"T4-32G", {"T4-32G"}},
      Row{"G2", {"g2"}},
      Row{"1g.5gb", {"1g.5gb", "1G.5GB", " 1g.5gb ", "MIG 1g.5gb", "mig-1g.5gb"}},
      Row{"1g.10gb+me", {"1g.10gb+me", "mig-1g.10gb.me"}},
      Row{"1g.24gb-me", {"1g.24gb-me"}},
      Row{"1c.3g.20gb", {"1c.3g.20gb"}},
      Row{"A100-3g.20gb",
          {"A100-3g.20gb",
           "a100_3g.20gb",
           "A100 3g.20gb",
           "A100-40G-3g.20gb",
           "NVIDIA A100-SXM4-40GB MIG 3g.20gb"}},
      Row{"", {"two-3g.20gb", "MIG", "3g."}},
      Row{"", {"", "two", "16G", "1", "x", "GPU", "Radeon Graphics", "-", "??"}}};
  for (const Row& row : rows) {
    for (const std::string_view text : row.written) EXPECT_EQ(read_model(text), row.model) << text;
  }
  EXPECT_EQ(read_model(std::string(200, 'A') + "1"), "");
}

TEST(Catalogue, ARequestWithoutASizeTakesEverySize) {
  EXPECT_TRUE(answers("A100", "A100-80G"));
  EXPECT_TRUE(answers("A100-80G", "A100-80G"));
  EXPECT_FALSE(answers("A100-80G", "A100-40G"));
  EXPECT_FALSE(answers("A100-80G", "A100"));
  EXPECT_FALSE(answers("A10", "A100-80G"));
  EXPECT_TRUE(answers("910B", "910B3"));
  EXPECT_TRUE(answers("910B", "910B4-64G"));
  EXPECT_FALSE(answers("910", "910B3"));
  EXPECT_FALSE(answers("V100", "V100S"));
}

TEST(Catalogue, ASliceIsAskedForByItsProfile) {
  EXPECT_TRUE(answers("3g.20gb", "A100-3g.20gb"));
  EXPECT_TRUE(answers("A100-3g.20gb", "A100-3g.20gb"));
  EXPECT_FALSE(answers("A100", "A100-3g.20gb"));
  EXPECT_FALSE(answers("A100-40G", "A100-3g.20gb"));
  EXPECT_FALSE(answers("A100-3g.20gb", "H100-3g.20gb"));
  EXPECT_FALSE(answers("3g.20gb", "A100-1c.3g.20gb"));
  EXPECT_FALSE(answers("1g.10gb", "H100-1g.10gb+me"));
  EXPECT_FALSE(answers("3g.20gb", "A100"));
  EXPECT_EQ(profile_of("A100-3g.20gb"), "3g.20gb");
  EXPECT_EQ(profile_of("1g.10gb+me"), "1g.10gb+me");
  EXPECT_EQ(profile_of("A100-80G"), "");
  EXPECT_FALSE(is_slice("RTX3090"));
  EXPECT_EQ(memory_of("A100-3g.20gb"), Memory::gib(20));
  EXPECT_EQ(vendor_of("3g.20gb"), "nvidia");
  EXPECT_TRUE(is_known("3g.20gb"));
  EXPECT_TRUE(is_known("A100-3g.20gb"));
  EXPECT_FALSE(is_known("TOASTER1-3g.20gb"));
}

TEST(Catalogue, HasTheSpecsOfTheDocuments) {
  struct Row {
    std::string_view model;
    int gigabytes;
  };
  for (const Row& row : {Row{"T4", 16},
                         Row{"V100", 32},
                         Row{"A100", 80},
                         Row{"H100", 80},
                         Row{"RTX3090", 24},
                         Row{"RTX4090", 24},
                         Row{"A6000", 48},
                         Row{"A40", 48},
                         Row{"A100-40G", 40},
                         Row{"V100-16G", 16}}) {
    EXPECT_EQ(memory_of(row.model), Memory::gib(row.gigabytes)) << row.model;
  }
  EXPECT_EQ(memory_of("TOASTER1"), std::nullopt);
  EXPECT_EQ(vendor_of("A100-40G"), "nvidia");
  EXPECT_EQ(vendor_of("TOASTER1"), "");
  EXPECT_TRUE(is_known("H100-94G"));
  EXPECT_FALSE(is_known("TOASTER1"));
}

}  // namespace
}  // namespace gflow::catalogue

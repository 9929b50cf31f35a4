// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gflow {

/// What a MIG device is as NVIDIA names it: "3g.20gb" is a GPU instance of 3 of the GPU's compute
/// slices with 20 GB, "1c.3g.20gb" a compute instance of one of these three, "1g.10gb+me" one that
/// has the media engines.
struct MigProfile {
  int compute_slices = 0;  ///< of the compute instance
  int gpu_slices = 0;      ///< of the GPU instance
  int gigabytes = 0;
  std::string attributes{};  ///< "+me", "-me", "+gfx", "+me.all"; "" for most

  friend bool operator==(const MigProfile&, const MigProfile&) = default;
};

/// "1c.3g.20gb".
[[nodiscard]] std::string mig_profile_text(const MigProfile& profile);

/// Where a profile is written in a text.
struct MigProfileAt {
  MigProfile profile;
  std::size_t begin = 0;  ///< bytes of the text, [begin, end)
  std::size_t end = 0;
};
/// The first profile in a text, in letters of either case, as drivers, Slurm and Kubernetes write
/// it: "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100_1g.5gb", "mig-1g.10gb.me".
[[nodiscard]] std::optional<MigProfileAt> find_mig_profile(std::string_view text);
/// The profile that is the whole text.
[[nodiscard]] std::optional<MigProfile> parse_mig_profile(std::string_view text);

}  // namespace gflow

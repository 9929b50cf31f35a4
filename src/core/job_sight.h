// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/job.h"

namespace gflow {

/// What users are shown of others' jobs: [access] others_jobs. Each shows what those before it do.
enum class OthersJobs {
  None,   ///< nothing: they are as jobs that do not exist
  Usage,  ///< that they are there, whose, their states, what they ask for and have, their times
  All,    ///< and what they are called: each text that has an alias (FieldInfo::alias)
};
inline constexpr std::array<std::string_view, 3> kOthersJobsNames = {"none", "usage", "all"};

/// The jobs that one who asks is shown, and how much of them.
struct JobSight {
  OthersJobs others = OthersJobs::All;
  std::optional<std::uint32_t> own{};  ///< the account whose own jobs are shown whatever that is

  /// That such a job is there.
  [[nodiscard]] bool knows(const User& owner) const {
    return others != OthersJobs::None || own == owner.uid;
  }
  /// What such a job is called: its name, project and group.
  [[nodiscard]] bool names(const User& owner) const {
    return others == OthersJobs::All || own == owner.uid;
  }

  friend bool operator==(const JobSight&, const JobSight&) = default;
};

}  // namespace gflow

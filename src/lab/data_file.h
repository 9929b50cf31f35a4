// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::lab {

/// A public data set an experiment reads.
struct DataSet {
  std::string_view folder;  ///< below the data directory: "openb"
  std::string_view what;
  std::string_view from;  ///< where it can be had
};
/// The one of that folder; null if there is none.
[[nodiscard]] const DataSet* data_set(std::string_view folder);

/// The whole file; one that gzip packed is unpacked. Errors: NotFound, or Failure with the reason;
/// Exhausted beyond 1 GiB of text.
[[nodiscard]] Result<std::string> read_data(const std::string& path);
/// The same for DIRECTORY/FOLDER/NAME. Errors say what the file is and where it can be had.
[[nodiscard]] Result<std::string> read_data(const std::string& directory,
                                            std::string_view folder,
                                            const std::string& name);

}  // namespace gflow::lab

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/made_slice.h"

namespace gflow::devices {

/// What became of an order.
struct SliceNews {
  MadeSlice slice;  ///< as it was ordered
  SliceOutcome outcome;
};

/// Makes slices of MIG and removes them, by their stage. To order what is done already is to be
/// told that it is. One thread; never blocks.
class Slicer {
 public:
  virtual ~Slicer() = default;
  virtual void order(const MadeSlice& slice) = 0;
  /// Readable when poll() has something to report; -1 if there never is.
  [[nodiscard]] virtual int fd() const = 0;
  [[nodiscard]] virtual std::vector<SliceNews> poll() = 0;
};

struct SlicerOptions {
  std::string program;                ///< absolute path of gflow-mig; "": it is not installed
  std::string lock;                   ///< file that one gflow-mig at a time holds
  std::chrono::seconds patience{30};  ///< an order that is not done by then is told as unclear
  std::vector<std::string> environment = {};  ///< "NAME=value" for the program besides our own
};

/// For the machine of Machine::source: simulated slices, or those of NVIDIA's driver.
/// Errors: the system's.
[[nodiscard]] Result<std::unique_ptr<Slicer>> open_slicer(const std::string& source,
                                                          const SlicerOptions& options);

}  // namespace gflow::devices

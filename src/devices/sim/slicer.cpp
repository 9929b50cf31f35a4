// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/slicer.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "devices/sim/made_instances.h"
#include "os/fd.h"
#include "os/file.h"

namespace gflow::devices::sim {
namespace {

using slice_outcome::Made;
using slice_outcome::Refused;
using slice_outcome::Removed;
using slice_outcome::Unclear;

class SimSlicer final : public Slicer {
 public:
  SimSlicer(std::string file, os::Fd ready) : file_(std::move(file)), ready_(std::move(ready)) {}

  void order(const MadeSlice& slice) override {
    const bool makes = slice.stage == SliceStage::Making;
    reports_.push_back({slice, makes ? make(slice) : remove(slice)});
    const std::uint64_t once = 1;
    // Fails only if 2^64-1 are waiting already.
    [[maybe_unused]] const ssize_t written = ::write(ready_.get(), &once, sizeof once);
  }
  [[nodiscard]] int fd() const override { return ready_.get(); }
  [[nodiscard]] std::vector<SliceNews> poll() override {
    std::uint64_t times = 0;
    (void)!::read(ready_.get(), &times, sizeof times);  // nothing is there if nobody ordered
    return std::exchange(reports_, {});
  }

 private:
  /// An earlier order may have done some of it.
  static SliceOutcome not_looked_at(const MadeSlice& slice, const Error& error) {
    if (slice.again) return Unclear{error.message};
    return Refused{error.message};
  }

  [[nodiscard]] SliceOutcome make(const MadeSlice& slice) const {
    const auto made = read_made(file_);
    if (!made) return not_looked_at(slice, made.error());
    const auto there = std::ranges::find_if(made->all, [&slice](const MadeInstance& one) {
      return one.gpu == slice.gpu && one.instance.start == slice.start &&
             one.instance.profile == slice.profile;
    });
    if (there == made->all.end()) {
      if (slice.only_looks) return Refused{"nobody wants it any more"};
      const auto begun = make_instance(file_, slice.gpu, slice.profile, slice.start);
      return begun ? make_device(slice, begun->id) : Refused{begun.error().message};
    }
    if (!slice.again) return Refused{"somebody else has taken its place meanwhile"};
    if (there->uuid.empty()) return make_device(slice, there->instance.id);
    return Made{there->uuid, there->instance.id};
  }
  [[nodiscard]] SliceOutcome make_device(const MadeSlice& slice, int id) const {
    const auto uuid = make_compute(file_, slice.gpu, id);
    if (!uuid) return Unclear{uuid.error().message};
    return Made{*uuid, id};
  }

  [[nodiscard]] SliceOutcome remove(const MadeSlice& slice) const {
    const auto made = read_made(file_);
    if (!made) return not_looked_at(slice, made.error());
    const auto there = std::ranges::find_if(made->all, [&slice](const MadeInstance& one) {
      return one.gpu == slice.gpu && one.instance.id == slice.gpu_instance &&
             one.instance.start == slice.start;
    });
    if (there == made->all.end()) return Removed{};
    if (there->uuid.empty()) {
      // Left by an earlier order; where there was none, made by somebody else.
      return slice.again ? destroy(slice) : Removed{};
    }
    if (there->uuid != slice.uuid) return Removed{};
    const auto gone = destroy_compute(file_, slice.gpu, slice.gpu_instance);
    return gone ? destroy(slice) : Refused{gone.error().message};
  }
  [[nodiscard]] SliceOutcome destroy(const MadeSlice& slice) const {
    const auto gone = destroy_instance(file_, slice.gpu, slice.gpu_instance);
    if (!gone) return Unclear{gone.error().message};
    return Removed{};
  }

  std::string file_;
  os::Fd ready_;
  std::vector<SliceNews> reports_;
};

}  // namespace

Result<std::unique_ptr<Slicer>> open_slicer(const std::string& machine_file) {
  os::Fd ready(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ready.valid()) return os::errno_error("eventfd");
  return std::make_unique<SimSlicer>(machine_file, std::move(ready));
}

}  // namespace gflow::devices::sim

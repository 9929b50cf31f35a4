// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>

#include "base/text.h"
#include "daemon/loop.h"

/// Slices of MIG: what the engine decided is ordered, and what became of it is told to it.
namespace gflow::daemon {

using Wait = boost::asio::posix::stream_descriptor::wait_type;

void Loop::cut(const MadeSlice& slice) {
  spdlog::info("a slice {} of {} is to be {} (from its memory slice {} on)",
               slice.profile,
               printable(slice.gpu),
               slice.stage == SliceStage::Making ? "made" : "removed",
               slice.start);
  parts_.slicer->order(slice);
}

void Loop::watch_slicer() {
  if (!slicer_fd_.is_open()) return;
  slicer_fd_.async_wait(Wait::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    take_slice_reports();
    watch_slicer();
  });
}

void Loop::take_slice_reports() {
  for (devices::SliceNews& report : parts_.slicer->poll()) {
    const MadeSlice& slice = report.slice;
    const std::string what = fmt::format("slice {} of {}", slice.profile, printable(slice.gpu));
    if (const auto* made = std::get_if<slice_outcome::Made>(&report.outcome)) {
      spdlog::info("{} is made: {}", what, printable(made->uuid));
    } else if (std::holds_alternative<slice_outcome::Removed>(report.outcome)) {
      spdlog::info("{} is removed: {}", what, printable(slice.uuid));
    } else if (const auto* refused = std::get_if<slice_outcome::Refused>(&report.outcome)) {
      spdlog::warn("{} is not {}: {}",
                   what,
                   slice.stage == SliceStage::Making ? "made" : "removed",
                   printable(refused->why));
    } else {
      spdlog::warn("what became of {} is not known: {}",
                   what,
                   printable(std::get<slice_outcome::Unclear>(report.outcome).why));
    }
    shell_.post(
        engine::event::SliceChanged{slice.node, slice.gpu, slice.start, std::move(report.outcome)});
    // A reading that is under way may be of before: one more follows it, once all of it is there.
    reads_again_ = !parts_.source->refresh();
    soon();
  }
}

}  // namespace gflow::daemon

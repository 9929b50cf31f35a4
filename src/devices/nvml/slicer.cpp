// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/slicer.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/text.h"
#include "devices/nvml/cutting.h"
#include "os/child.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::devices::nvml {
namespace {

class MigSlicer final : public Slicer {
 public:
  struct Descriptors {
    os::Fd ready;  ///< epoll over the others and the child
    os::Fd timer;  ///< patience
    os::Fd wake;   ///< eventfd: there are reports of what was not begun
  };
  MigSlicer(SlicerOptions options, Descriptors descriptors)
      : options_(std::move(options)), descriptors_(std::move(descriptors)) {
    follow(descriptors_.timer.get());
    follow(descriptors_.wake.get());
  }

  void order(const MadeSlice& slice) override {
    waiting_.push_back(slice);
    begin_next();
  }

  [[nodiscard]] int fd() const override { return descriptors_.ready.get(); }

  [[nodiscard]] std::vector<SliceNews> poll() override {
    std::uint64_t times = 0;
    (void)!::read(descriptors_.wake.get(), &times, sizeof times);  // nobody may have rung
    const bool rang = ::read(descriptors_.timer.get(), &times, sizeof times) == sizeof times;
    if (late_ && os::reap(*late_)) late_.reset();
    if (child_ && os::reap(*child_)) {
      report(outcome_from(said()));
      child_.reset();
      set_timer(std::chrono::seconds(0));
    } else if (child_ && rang) {
      report(slice_outcome::Unclear{
          fmt::format("the driver does not answer within {} s", options_.patience.count())});
      late_ = std::exchange(child_, std::nullopt);
    }
    begin_next();
    return std::exchange(reports_, {});
  }

 private:
  void follow(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    (void)::epoll_ctl(
        descriptors_.ready.get(), EPOLL_CTL_ADD, fd, &event);  // fails only without memory
  }
  void set_timer(std::chrono::seconds after) {
    itimerspec setting{};
    setting.it_value.tv_sec = static_cast<time_t>(after.count());
    (void)::timerfd_settime(
        descriptors_.timer.get(), 0, &setting, nullptr);  // fails only for a wrong argument
  }

  /// What it wrote before it ended.
  [[nodiscard]] std::string said() const {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(child_->channel.get(), buffer.data(), buffer.size());
    const std::string_view text(buffer.data(), static_cast<std::size_t>(got > 0 ? got : 0));
    return std::string(trim(text.substr(0, text.find('\n'))));
  }

  void report(SliceOutcome outcome) { reports_.push_back({doing_, std::move(outcome)}); }

  void begin_next() {
    while (!child_ && !waiting_.empty()) {
      doing_ = std::move(waiting_.front());
      waiting_.pop_front();
      if (late_) {
        // It had its patience, and may be stuck where nothing ends it.
        (void)::syscall(SYS_pidfd_send_signal, late_->process.get(), SIGKILL, nullptr, 0);
        report(not_looked_at(doing_, kEarlier));
      } else if (auto begun = begin(); !begun) {
        report(not_looked_at(doing_, begun.error().message));
      }
    }
    const std::uint64_t once = 1;
    if (!reports_.empty()) (void)!::write(descriptors_.wake.get(), &once, sizeof once);
  }

  Result<void> begin() {
    if (options_.program.empty()) return fail(Code::NotFound, "gflow-mig is not installed");
    const bool makes = doing_.stage == SliceStage::Making;
    std::vector<std::string> words = {options_.program,
                                      makes ? "make" : "remove",
                                      "--gpu",
                                      doing_.gpu,
                                      "--profile",
                                      doing_.profile,
                                      "--start",
                                      std::to_string(doing_.start),
                                      "--size",
                                      std::to_string(doing_.size),
                                      "--lock",
                                      options_.lock,
                                      "--parent",
                                      std::to_string(os::process_id())};
    if (!makes) {
      words.insert(words.end(),
                   {"--uuid", doing_.uuid, "--instance", std::to_string(doing_.gpu_instance)});
    }
    if (doing_.again) words.insert(words.end(), {"--again", "yes"});
    if (doing_.only_looks) words.insert(words.end(), {"--look", "yes"});
    child_ = GF_TRY(os::start_child({std::move(words), options_.environment}));
    follow(child_->process.get());
    set_timer(options_.patience);
    return {};
  }

  SlicerOptions options_;
  Descriptors descriptors_;
  std::deque<MadeSlice> waiting_;
  MadeSlice doing_;
  std::optional<os::Child> child_;  ///< does it
  std::optional<os::Child> late_;   ///< was not waited for any more
  std::vector<SliceNews> reports_;
};

}  // namespace

Result<std::unique_ptr<Slicer>> open_slicer(const SlicerOptions& options) {
  MigSlicer::Descriptors all{
      .ready = os::Fd(::epoll_create1(EPOLL_CLOEXEC)),
      .timer = os::Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      .wake = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
  if (!all.ready.valid() || !all.timer.valid() || !all.wake.valid()) {
    return os::errno_error("wait for gflow-mig");
  }
  return std::make_unique<MigSlicer>(options, std::move(all));
}

}  // namespace gflow::devices::nvml

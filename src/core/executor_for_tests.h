// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/executor.h"

namespace gflow {

/// An executor that runs nothing and says nothing. A test overrides what it is about.
class IdleExecutor : public Executor {
 public:
  void launch(const LaunchOrder& /*order*/) override {}
  void stop(JobId /*job*/, int /*attempt*/, int /*signal*/, EndReason /*reason*/) override {}
  void suspend(JobId /*job*/, int /*attempt*/, Memory /*park*/) override {}
  void lend(JobId /*job*/, int /*attempt*/, Memory /*most*/) override {}
  void resume(JobId /*job*/, int /*attempt*/) override {}
  void move(JobId /*job*/, int /*attempt*/, const GpuMove& /*move*/, Memory /*most*/) override {}
  void signal(JobId /*job*/, int /*attempt*/, int /*number*/) override {}
  void change_limit(JobId /*job*/,
                    int /*attempt*/,
                    std::optional<std::chrono::seconds> /*limit*/,
                    std::chrono::milliseconds /*ran*/) override {}
  void change_share_limit(JobId /*job*/, int /*attempt*/, Share /*limit*/) override {}
  [[nodiscard]] executor::Adoption adopt(JobId /*job*/,
                                         int /*attempt*/,
                                         const std::string& /*boot_id*/,
                                         executor::Progress /*progress*/) override {
    return executor::NeverRan{};
  }
  void sweep(const std::vector<std::pair<JobId, int>>& /*known*/) override {}
  [[nodiscard]] std::vector<executor::Doubt> doubts() const override { return {}; }
  void forget(JobId /*job*/, int /*attempt*/) override {}
  void remove_log(JobId /*job*/) override {}
  [[nodiscard]] std::string log_path(JobId /*job*/) const override { return {}; }
  [[nodiscard]] Memory log_size(JobId /*job*/) const override { return {}; }
  [[nodiscard]] GpuLimits gpu_limits(JobId /*job*/, int /*attempt*/) const override { return {}; }
  [[nodiscard]] GpuIsolation gpu_isolation(JobId /*job*/, int /*attempt*/) const override {
    return GpuIsolation::None;
  }
  [[nodiscard]] PortBlock ports(JobId /*job*/, int /*attempt*/) const override { return {}; }
  [[nodiscard]] bool parks(const std::string& /*node*/) const override { return false; }
  [[nodiscard]] std::string cannot_move(const std::string& /*node*/) const override { return ""; }
  [[nodiscard]] GpuIsolation isolates(const std::string& /*node*/) const override {
    return GpuIsolation::None;
  }
  [[nodiscard]] executor::Enforcement enforcement(const std::string& /*node*/) const override {
    return {};
  }
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] std::vector<executor::Report> poll() override { return {}; }
};

}  // namespace gflow

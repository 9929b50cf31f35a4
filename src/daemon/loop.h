// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/gflow_toml.h"
#include "daemon/backups.h"
#include "daemon/device_news.h"
#include "daemon/gpu_peaks.h"
#include "daemon/hpc_jobs.h"
#include "daemon/job_traces.h"
#include "daemon/job_watch.h"
#include "daemon/machine_facts.h"
#include "daemon/node_dispatcher.h"
#include "daemon/node_news.h"
#include "daemon/options.h"
#include "daemon/owner_watch.h"
#include "daemon/remover.h"
#include "daemon/shell.h"
#include "daemon/socket_watch.h"
#include "devices/device_indices.h"
#include "devices/slicer.h"
#include "devices/source.h"
#include "engine/state.h"
#include "os/wall_timer.h"
#include "server/answered_allocations.h"
#include "server/change_feed.h"
#include "server/event_journal.h"
#include "server/http_server.h"
#include "server/service.h"
#include "store/store.h"

namespace gflow::daemon {

using config::Config;

/// What start() put together before the loop begins.
struct Parts {
  Options options;
  Config config;
  std::string node;  ///< the name of the machine this daemon runs on, whose devices it reads
  os::Fd lock;       ///< held as long as the daemon lives
  std::unique_ptr<store::Store> store;
  std::unique_ptr<devices::Source> source;
  std::unique_ptr<devices::Slicer> slicer;
  devices::DeviceIndices indices;
  std::unique_ptr<Remover> remover;
  std::vector<NodeExecutor> executors;  ///< whoever runs jobs; first that of this machine
  OwnerOf owner_of;                     ///< of this machine's processes
  os::WallTimer wall_timer;
  engine::State state;
  std::vector<Token> tokens;
};

/// The one loop, on one thread: waits for a request, a report of an executor, a reading of the
/// devices, a timer or a signal, posts it to the shell, and ticks.
class Loop : public server::Service {
 public:
  explicit Loop(Parts parts);

  /// Finds out how the attempts under way stand, takes the first tick, listens.
  [[nodiscard]] Result<void> begin();
  /// Runs until stop(), a signal, or an error that is final.
  [[nodiscard]] Result<void> run();

  // server::Service
  [[nodiscard]] const engine::State& state() const override { return state_; }
  [[nodiscard]] Now now() const override;
  [[nodiscard]] std::string log_path(JobId job) const override;
  [[nodiscard]] GpuLimits gpu_limits(const Job& job) const override;
  [[nodiscard]] std::optional<JobId> owner_of(int pid) const override;
  [[nodiscard]] std::optional<GpuIsolation> gpu_isolation(const Job& job) const override;
  [[nodiscard]] PortBlock ports(const Job& job) const override;
  void submit(api::SubmitRequest request,
              const Principal& by,
              Answer answer,
              server::SubmitIf condition = {}) override;
  void request(engine::Event event, Answer answer, Check check = {}) override;
  [[nodiscard]] std::shared_ptr<void> on_change(std::uint64_t revision,
                                                std::optional<JobId> job,
                                                std::chrono::milliseconds most,
                                                std::function<void()> then) override;
  [[nodiscard]] const server::AnsweredAllocations* answered_allocations() const override {
    return &answered_;
  }
  [[nodiscard]] server::EventJournal& events() override { return events_; }
  [[nodiscard]] api::DaemonView daemon(OthersJobs shown) const override;
  [[nodiscard]] const server::Counters& counters() const override { return counters_; }
  [[nodiscard]] const server::HttpCounters* http_counters() const override {
    return server_ ? &server_->counters() : nullptr;
  }
  [[nodiscard]] server::Vitals vitals() const override;
  [[nodiscard]] settings::Metrics metrics_wanted() const override { return parts_.config.metrics; }
  [[nodiscard]] std::vector<api::SettingView> settings() const override;
  [[nodiscard]] const server::TokenTable& tokens() const override { return tokens_; }
  Result<void> keep_tokens(std::vector<Token> tokens) override;
  [[nodiscard]] Result<void> ready() const override;
  void stop() override;
  Result<void> reload() override;

 private:
  [[nodiscard]] std::vector<std::string> warnings(OthersJobs shown) const;
  [[nodiscard]] Result<void> take_over_allocations();
  [[nodiscard]] Result<void> take_leave();
  void leave_queue(JobId allocation);
  void give_back(const Job& allocation);
  void soon();  ///< a tick, after everything that is ready now was posted
  void take_slice();
  void launch_some();
  [[nodiscard]] Result<void> tick();
  void log_disk();
  void log_changes(const Shell::Ticked& ticked) const;
  void count(const std::set<JobId>& changed);
  void show_hpc_jobs();
  void log_overuse(const std::vector<engine::effect::Overuse>& overuses) const;
  void set_timers(const Shell::Ticked& ticked);
  void look_for_room();
  void watch_executor(Executor& executor, boost::asio::posix::stream_descriptor& fd);
  void watch_devices();
  // loop_slices.cpp
  void cut(const MadeSlice& slice);
  void watch_slicer();
  void take_slice_reports();
  void watch_wall_timer();
  void watch_signals();
  void take_reports(Executor& executor);
  void log_parking(const executor::Parks& parks) const;
  void log_move(const executor::Moved& moved) const;
  [[nodiscard]] bool parks() const;
  void take_reading();
  [[nodiscard]] Machine reading();
  void refresh_later();
  [[nodiscard]] Result<void> listen();
  [[nodiscard]] Result<void> set_remote(server::HttpServer::Options& options) const;
  void configure_access();
  void set_backups();

  Parts parts_;
  engine::State& state_;
  store::Ballast ballast_;
  NodeDispatcher dispatcher_;
  Shell shell_;
  Now started_;
  boost::asio::io_context io_{1};
  std::deque<boost::asio::posix::stream_descriptor> executor_fds_;
  boost::asio::posix::stream_descriptor device_fd_;
  boost::asio::posix::stream_descriptor slicer_fd_;
  boost::asio::posix::stream_descriptor wall_fd_;
  boost::asio::steady_timer mono_timer_;
  boost::asio::steady_timer refresh_timer_;
  boost::asio::steady_timer room_timer_;
  boost::asio::signal_set signals_;
  server::ChangeFeed feed_;
  server::AnsweredAllocations answered_;
  OwnerWatch owners_;
  GpuPeaks peaks_;
  DeviceNews device_news_;
  NodeNews node_news_;
  server::EventJournal events_;
  server::Counters counters_;
  server::TokenTable tokens_;
  JobWatch job_watch_{counters_, state_};
  JobTraces traces_;
  HpcJobs hpc_jobs_;
  std::optional<WallTime> last_reading_;
  JobId first_id_;  ///< of a job submitted since this daemon runs
  Backups backups_;
  std::unique_ptr<server::HttpServer> server_;
  SocketWatch socket_watch_;
  std::vector<std::string> settings_for_restart_;  ///< that the last reload() left as they were
  std::vector<std::string> unknown_names_;         ///< of roles and projects, as sentences
  Result<void> end_;
  bool tick_is_due_ = false;
  bool launch_is_due_ = false;
  bool ticked_last_ = false;  ///< launches take turns with ticks
  bool disk_was_full_ = false;
  bool looks_for_room_ = false;
  bool reads_again_ = false;  ///< the devices, as a slice was made or removed while they were read
};

}  // namespace gflow::daemon

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/change_feed.h"
#include "server/event_journal.h"
#include "server/service.h"
#include "slurm/facts.h"
#include "slurm/picture.h"

namespace gflow::slurm {

/// What the routes are answered from: Slurm as its commands tell of it, read anew each few seconds
/// and after what was changed here. What is submitted, cancelled, held and released is so by
/// Slurm's own commands, and nothing else is changed. The loop's one thread owns it; commands run
/// on one of their own.
class Reader : public server::Service {
 public:
  /// `about`: which Slurm it is, for people.
  Reader(boost::asio::io_context& io, std::string about);
  ~Reader() override;

  /// Reads it for the first time, and each few seconds from then on. `then` is called once, with
  /// what kept it from that.
  void begin(std::function<void(Result<void>)> then);
  void listens_at(std::string url) { api_url_ = std::move(url); }

  // server::Service
  [[nodiscard]] const engine::State& state() const override { return picture_.state; }
  [[nodiscard]] Now now() const override;
  [[nodiscard]] std::string log_path(JobId job) const override;
  [[nodiscard]] GpuLimits gpu_limits(const gflow::Job& /*job*/) const override { return {}; }
  [[nodiscard]] PortBlock ports(const gflow::Job& /*job*/) const override { return {}; }
  [[nodiscard]] Result<void> serves(const server::Route& route) const override;
  [[nodiscard]] std::optional<std::string> told(const gflow::Job& job) const override;
  [[nodiscard]] bool decides() const override { return false; }
  void submit(api::SubmitRequest request, const Principal& by, Answer answer) override;
  void request(engine::Event event, Answer answer, Check check) override;
  [[nodiscard]] std::shared_ptr<void> on_change(std::uint64_t revision,
                                                std::optional<JobId> job,
                                                std::chrono::milliseconds most,
                                                std::function<void()> then) override;
  [[nodiscard]] server::EventJournal& events() override { return events_; }
  [[nodiscard]] api::DaemonView daemon(OthersJobs shown) const override;
  [[nodiscard]] const server::Counters& counters() const override { return counters_; }
  [[nodiscard]] std::vector<api::SettingView> settings() const override { return {}; }
  [[nodiscard]] const server::TokenTable& tokens() const override { return tokens_; }
  [[nodiscard]] Result<void> keep_tokens(std::vector<Token> tokens) override;
  void stop() override {}
  Result<void> reload() override;

 private:
  using Ids = Result<std::vector<JobId>>;
  void read(std::function<void(Result<void>)> then);
  void read_later(std::chrono::steady_clock::duration pause);
  void draw(Facts facts);
  void change(std::function<Ids(const Facts&)> change, Answer answer);
  void take(const engine::event::Cancel& cancel, const Answer& answer);
  void take(const engine::event::Hold& hold, const Answer& answer);
  void take(const engine::event::Release& release, const Answer& answer);
  void command(std::vector<std::string> words, std::vector<JobId> jobs, const Answer& answer);

  boost::asio::io_context& io_;
  boost::asio::thread_pool commands_{1};
  boost::asio::steady_timer next_;
  std::string about_;
  std::string api_url_;
  std::string trouble_;  ///< why it was not read the last time; "" if it was
  std::shared_ptr<const Facts> facts_;
  Picture picture_;
  std::uint64_t revision_ = 0;
  Now started_;
  server::ChangeFeed feed_;
  server::EventJournal events_;
  server::Counters counters_;
  server::TokenTable tokens_;
};

}  // namespace gflow::slurm

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/change_feed.h"
#include "server/event_journal.h"
#include "server/service.h"

namespace gflow::server {

/// What is done there by something else.
struct Elsewhere {
  std::string_view method;  ///< "": any
  std::string_view path;    ///< what the pattern of a route begins with
  std::string_view text;    ///< what does it, marked for translation; "": it is done here
};
/// The first of them that fits that route; null if none does.
[[nodiscard]] const Elsewhere* elsewhere_of(std::span<const Elsewhere> table, const Route& route);

/// The routes about another scheduler: what that one decides is shown, and jobs are submitted,
/// cancelled, held, released and, where it can, moved with it. Nothing is decided here and nothing
/// kept. The loop's one thread owns it.
class Facade : public Service {
 public:
  struct About {
    std::string mode;    ///< as the routes name it: "slurm"
    std::string source;  ///< what is shown, for people
    /// The first that fits a route counts; what fits none is done here. Outlives this.
    std::span<const Elsewhere> elsewhere;
  };

  void listens_at(std::string url) { api_url_ = std::move(url); }
  /// Something of that kind is not told any more; "": it is.
  void trouble(const std::string& kind, const std::string& what);

  // Service
  [[nodiscard]] const engine::State& state() const final { return state_; }
  [[nodiscard]] Now now() const final;
  [[nodiscard]] GpuLimits gpu_limits(const Job& /*job*/) const final { return {}; }
  [[nodiscard]] std::optional<JobId> owner_of(int /*pid*/) const final { return std::nullopt; }
  [[nodiscard]] std::optional<GpuIsolation> gpu_isolation(const Job& /*job*/) const final {
    return std::nullopt;
  }
  [[nodiscard]] PortBlock ports(const Job& /*job*/) const final { return {}; }
  [[nodiscard]] Result<void> serves(const Route& route) const final;
  [[nodiscard]] std::optional<std::string> told(const Job& job) const final;
  [[nodiscard]] bool decides() const final { return false; }
  void request(engine::Event event, Answer answer, Check check) final;
  [[nodiscard]] std::shared_ptr<void> on_change(std::uint64_t revision,
                                                std::optional<JobId> job,
                                                std::chrono::milliseconds most,
                                                std::function<void()> then) final;
  [[nodiscard]] EventJournal& events() final { return events_; }
  [[nodiscard]] api::DaemonView daemon(OthersJobs shown) const final;
  [[nodiscard]] const Counters& counters() const final { return counters_; }
  [[nodiscard]] std::vector<api::SettingView> settings() const final { return {}; }
  [[nodiscard]] const TokenTable& tokens() const final { return tokens_; }
  [[nodiscard]] Result<void> keep_tokens(std::vector<Token> tokens) final;
  [[nodiscard]] Result<void> ready() const final;
  void stop() final {}
  Result<void> reload() final;

 protected:
  Facade(boost::asio::io_context& io, About about);

  /// The revision of the state that is shown next.
  [[nodiscard]] std::uint64_t next_revision() const { return state_.revision() + 1; }
  /// This is shown from now on; `told`: what the scheduler says of why a job waits.
  void show(engine::State state, std::map<JobId, std::string> told);
  /// Errors: NotFound.
  [[nodiscard]] Result<const Job*> find(JobId id) const;

 private:
  // All of the jobs or none, as far as can be known before.
  virtual void cancel(const engine::event::Cancel& asked, const Answer& answer) = 0;
  virtual void hold(const engine::event::Hold& asked, const Answer& answer) = 0;
  virtual void release(const engine::event::Release& asked, const Answer& answer) = 0;
  /// Refused where moves are no matter of that scheduler.
  virtual void move(const engine::event::ApplyDefrag& asked, const Answer& answer);

  About about_;
  engine::State state_;
  std::map<JobId, std::string> told_;
  std::map<std::string, std::string> troubles_;  ///< by kind
  std::string api_url_;
  Now started_;
  ChangeFeed feed_;
  EventJournal events_;
  Counters counters_;
  TokenTable tokens_;
};

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/facade.h"
#include "slurm/facts.h"
#include "slurm/picture.h"

namespace gflow::slurm {

/// Slurm as its commands tell of it, read anew each few seconds and after what was changed here.
/// What is submitted, cancelled, held and released is so by Slurm's own commands, which run on a
/// thread of their own, and nothing else is changed.
class Reader : public server::Facade {
 public:
  /// `about`: which Slurm it is, for people.
  Reader(boost::asio::io_context& io, std::string about);
  ~Reader() override;

  /// Reads it for the first time, and each few seconds from then on. `then` is called once, with
  /// what kept it from that.
  void begin(std::function<void(Result<void>)> then);

  // server::Service
  [[nodiscard]] std::string log_path(JobId job) const override;
  void submit(api::SubmitRequest request,
              const Principal& by,
              Answer answer,
              server::SubmitIf condition = {}) override;

 private:
  using Ids = Result<std::vector<JobId>>;
  void read(std::function<void(Result<void>)> then);
  [[nodiscard]] std::chrono::steady_clock::duration pause_after(
      std::chrono::steady_clock::duration look);
  void read_later(std::chrono::steady_clock::duration pause);
  void draw(Facts facts);
  void change(std::function<Ids()> change, Answer answer);
  void cancel(const engine::event::Cancel& asked, const Answer& answer) override;
  void hold(const engine::event::Hold& asked, const Answer& answer) override;
  void release(const engine::event::Release& asked, const Answer& answer) override;
  [[nodiscard]] std::string name_of(JobId id) const;
  void command(std::vector<std::string> words, std::vector<JobId> jobs, const Answer& answer);

  boost::asio::io_context& io_;
  boost::asio::thread_pool commands_{1};
  boost::asio::steady_timer next_;
  std::shared_ptr<const Facts> facts_;
  std::optional<std::chrono::seconds> job_age_;  ///< of the commands' thread
  std::map<JobId, std::string> outputs_;         ///< as in Picture
};

}  // namespace gflow::slurm

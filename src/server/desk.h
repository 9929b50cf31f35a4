// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/authenticator.h"
#include "server/exchange.h"
#include "server/fair_queue.h"
#include "server/guest.h"
#include "server/log_reader.h"
#include "server/made_once.h"
#include "server/revocable_body.h"
#include "server/shared_answers.h"
#include "server/worker.h"

namespace boost::asio {
class io_context;
}

namespace gflow::server {

/// Where requests are answered: on the daemon's loop, in turns among users, whole requests and the
/// rest of those that were begun. Everything but ask() is called on the loop's thread; so is it
/// destroyed, when nobody asks any more.
class Desk : public FairWork, public std::enable_shared_from_this<Desk> {
 public:
  /// How who asks is told, on the loop's thread.
  struct Asker {
    std::function<void(Reply)> answer;  ///< once
    std::function<void()> waits;        ///< that the answer comes with news, which may be never
  };

  Desk(boost::asio::io_context& loop, Service& service, Authenticator authenticator);

  /// From any thread. Who lets go of what it returns has gone away: nothing is answered after, and
  /// what was waited for is given up.
  [[nodiscard]] std::shared_ptr<void> ask(Guest guest, Request request, Asker asker);
  /// Runs it on the loop's thread. From any thread.
  void tell(std::function<void()> news);
  /// Who has which role from now on, and what users are shown of others' jobs. Returns what
  /// Identity does.
  std::vector<std::string> configure(const RoleNames& roles,
                                     const std::vector<std::string>& projects,
                                     OthersJobs others_jobs);
  /// Ends what is sent to, and waited for by, those who may not have it any more: their token was
  /// revoked or has expired, or they lost a role.
  void look_again();
  /// Whether a request shows what is known, before it is decided who asks. From any thread.
  [[nodiscard]] bool shows_somebody(const Guest& guest,
                                    const std::optional<std::string>& authorization) const;
  /// Answers nobody any more, and gives up what was waited for.
  void close();

  void later(const Principal& caller, std::function<void()> piece) override;
  void aside(const Principal& caller,
             std::function<void()> work,
             std::function<void()> then) override;
  [[nodiscard]] std::shared_ptr<void> lend(std::shared_ptr<void> of_loop) override;

 private:
  struct Ticket;
  /// An answer that is sent bit by bit, and what was shown for it.
  struct Stream {
    Guest guest;
    std::optional<std::string> authorization;
    Principal caller;
    std::weak_ptr<RevocableBody> body;
  };

  /// What will be answered with news.
  struct Wait {
    std::shared_ptr<Ticket> ticket;
    std::shared_ptr<void> wait;
  };

  void keep_stream(const Ticket& ticket, Reply& reply);
  void look_at_streams(Now now);
  void look_at_waits(Now now);
  void look_later();
  void queue(std::uint32_t uid, std::function<void()> piece);
  void serve(const std::shared_ptr<Ticket>& ticket);
  void answer(Ticket& ticket, Reply reply);
  void keep(const std::shared_ptr<Ticket>& ticket, std::shared_ptr<void> wait);
  void serve_soon();
  [[nodiscard]] std::function<void(Reply)> told(const Guest& guest,
                                                const Principal& caller,
                                                const Request& request,
                                                std::function<void(Reply)> respond);

  boost::asio::io_context& loop_;
  Service& service_;
  Authenticator authenticator_;
  FairQueue fair_queue_;
  SharedAnswers shared_;
  std::map<const Ticket*, Wait> waits_;  ///< of requests not answered yet
  std::vector<Stream> streams_;
  boost::asio::steady_timer next_look_;  ///< at who may have what
  std::optional<MonoTime> look_due_;     ///< when that is; none: nothing is looked at
  bool serving_ = false;
  std::optional<Worker> worker_{std::in_place};                      ///< none once it is closed
  std::shared_ptr<LogReader> logs_ = std::make_shared<LogReader>();  ///< the same
  std::shared_ptr<MadeOnce> made_ = std::make_shared<MadeOnce>();
};

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "os/fd.h"
#include "server/fair_queue.h"
#include "server/http_counters.h"
#include "server/http_server.h"
#include "server/request_log.h"
#include "server/session.h"
#include "server/tls_front.h"
#include "server/turned_away.h"
#include "server/web_guard.h"

namespace gflow::server {

/// The thread connections live on: accepts, reads requests, writes answers, and touches nothing of
/// the daemon. What is asked goes to the desk. Called from the daemon's thread, but for what it is
/// to its sessions.
class Edge : private SessionHost {
 public:
  using Options = HttpServer::Options;

  Edge(Options options, std::shared_ptr<Desk> desk);
  /// As finish().
  ~Edge() override;
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;

  /// Binds the unix socket; after start(), in place of the one before.
  [[nodiscard]] Result<void> listen();
  /// Binds TCP ports. Another program may listen there, the gflowd of another user for one: then it
  /// is told why not.
  [[nodiscard]] std::string listen_on_loopback();
  /// Binds where other machines reach it, if they are to. Errors: what keeps it from that.
  [[nodiscard]] Result<void> listen_remote();
  [[nodiscard]] const std::optional<HttpServer::Remote>& remote() const { return remote_; }
  /// Where it listens by TCP.
  [[nodiscard]] const std::vector<ListenAddress>& loopback() const { return options_.loopback; }
  /// From any thread.
  [[nodiscard]] const HttpCounters& counted() const { return counters_; }
  void start();
  /// Serves a connection that was made elsewhere, of a unix socket; after start().
  void welcome(os::Fd connection);
  /// Accepts nothing more and hangs up on whoever is idle or waits for news.
  void close();
  /// Answers that are under way get a second to be read; then all connections are cut, and the
  /// thread has ended.
  void finish();

 private:
  [[nodiscard]] Admission& admission() override { return admission_; }
  [[nodiscard]] HttpCounters& counters() override { return counters_; }
  [[nodiscard]] std::chrono::milliseconds idle() const override { return options_.idle; }
  [[nodiscard]] std::shared_ptr<const WebRules> web_rules(Via via) const override {
    return via == Via::Tls ? remote_rules_ : loopback_rules_;
  }
  [[nodiscard]] bool is_closing() const override { return closing_; }
  [[nodiscard]] std::shared_ptr<void> ask(Guest guest, Request request, Desk::Asker asker) override;
  void on_edge(std::function<void()> work) override;
  void in_turn(std::uint32_t uid, std::function<void()> work) override;
  [[nodiscard]] AnswerQueue& answers() override { return *answers_; }
  void note(const Guest& guest, const Terms& terms, int status) override;
  [[nodiscard]] bool shows_somebody(
      const Guest& guest, const std::optional<std::string>& authorization) const override {
    return desk_->shows_somebody(guest, authorization);
  }
  void forget(const std::shared_ptr<Session>& session) override;

  /// From any thread.
  void note(const std::string& line);
  [[nodiscard]] Result<void> listen_at(ListenAddress& address);
  void welcome(Via via, Listener::Socket socket);
  void welcome_remote(TlsFront::Arrival& arrival);
  [[nodiscard]] std::optional<Listener::Socket> socket_of(os::Fd& connection);
  void begin_session(Guest guest, Listener::Socket socket, Admission::Lease connection);
  [[nodiscard]] Result<Guest> admit(Via via, int socket);
  [[nodiscard]] Result<void> may_enter(std::uint32_t uid) const;
  void serve_soon();
  void stop_accepting();
  void take_leave();
  void cut_off();

  Options options_;
  std::shared_ptr<const WebRules> loopback_rules_;
  std::shared_ptr<const WebRules> remote_rules_;
  std::optional<HttpServer::Remote> remote_;
  std::shared_ptr<Desk> desk_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer last_words_;
  TurnedAway turned_away_{io_};
  Listener unix_listener_;
  std::deque<Listener> tcp_listeners_;
  Admission admission_;
  HttpCounters counters_;
  std::optional<AnswerQueue> answers_{std::in_place};  ///< none once all connections are cut
  std::set<std::shared_ptr<Session>> sessions_;        ///< the open ones
  FairQueue turns_;                                    ///< of what was asked and is answered
  bool serving_ = false;
  RequestLog log_;
  bool closing_ = false;
  std::thread thread_;
  std::unique_ptr<TlsFront> tls_front_;  ///< none where it is not reached from elsewhere
};

}  // namespace gflow::server

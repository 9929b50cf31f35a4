// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/refusal.h"
#include "base/result.h"
#include "server/body.h"
#include "server/service.h"
#include "server/terms.h"

namespace gflow::server {

struct WebRules;

/// By which it is told whether a web page asks.
struct WebHeaders {
  std::string host;
  std::string fetch_site;  ///< Sec-Fetch-Site
  std::string content_type;
  std::shared_ptr<const WebRules> rules = {};  ///< none: of loopback, and no page

  friend bool operator==(const WebHeaders&, const WebHeaders&) = default;
};

/// What handlers see of an HTTP request.
struct Request {
  std::string method;
  std::string path;   ///< without the query
  std::string query;  ///< as it came, without the "?"
  std::optional<std::string> origin;
  std::string idempotency_key;
  std::string body;
  std::string language;                           ///< Accept-Language, as it came
  std::string accept;                             ///< the forms of answers it reads, as it came
  std::optional<WebHeaders> web = {};             ///< of one that came over TCP
  std::string range = {};                         ///< Range, where it is to be heeded
  std::string last_event_id = {};                 ///< Last-Event-ID
  std::optional<std::string> authorization = {};  ///< the header; "" where it is there twice
  std::string content_type = {};
  std::string content_encoding = {};
  std::string if_match = {};
  Terms terms = {};        ///< how the answer is to be sent
  bool is_unread = false;  ///< its body is left out: nothing known was shown with it

  friend bool operator==(const Request&, const Request&) = default;
};

/// Whether an answer came to whoever asked; told on the connections' thread. Let go of without a
/// word, it was never sent.
class Receipt {
 public:
  virtual ~Receipt() = default;
  virtual void sending() = 0;  ///< from now on they may know it
  virtual void lost() = 0;     ///< they do not: nobody has read it
};

class MadeOnce;
struct Made;

/// A document that is made when it is first wanted, for all who get it. From any thread.
class Making {
 public:
  virtual ~Making() = default;
  [[nodiscard]] virtual std::shared_ptr<const Made> get() = 0;
  /// At once; none if it would have to be made, or waited for.
  [[nodiscard]] virtual std::shared_ptr<const Made> if_made() const { return nullptr; }
};

/// What goes back.
struct Reply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  /// Makes the body, away from the loop; none where `body` is it.
  std::function<std::string()> write = {};
  /// It is made sooner than it could be handed to another thread: of one thing, or of few.
  bool is_short = false;
  std::optional<Streamed> streamed = {};  ///< in place of `body`
  bool hangs_up = false;                  ///< it is the last of its connection
  std::shared_ptr<Receipt> receipt = {};  ///< of who wants to know; not of one that is streamed
  std::string asked_by = {};              ///< whom it answers, where a credential was shown
  /// Whom it answers: in whose turn it is made ready. None: it is not known who asks.
  std::optional<std::uint32_t> uid = {};
  std::shared_ptr<Making> making = {};  ///< gives the body, as `write` does; then that is `kept`
  std::shared_ptr<const Made> kept = {};
};
/// The reply with its body.
[[nodiscard]] Reply written(Reply reply);
[[nodiscard]] Reply json_reply(std::string body);
/// What is written away from the loop, in the language that is in use here.
[[nodiscard]] Reply json_reply_later(std::function<std::string()> write);
/// What is the same for everybody, made when it is first asked for.
[[nodiscard]] Reply json_reply_once(std::shared_ptr<MadeOnce> made,
                                    std::string name,
                                    std::function<std::string()> make);
/// A document that is.
template <typename View>
[[nodiscard]] Reply json_reply_of(View view) {
  return json_reply_later(
      [view = std::make_shared<const View>(std::move(view))] { return write(*view); });
}
/// The same of a document of one thing, or of few.
template <typename View>
[[nodiscard]] Reply short_reply_of(View view) {
  Reply reply = json_reply_of(std::move(view));
  reply.is_short = true;
  return reply;
}
[[nodiscard]] Reply empty_reply();
/// What cannot be done now: trying again later may help.
inline constexpr int kUnavailable = 503;
[[nodiscard]] Reply problem(const Error& error);
[[nodiscard]] Reply problem(const Error& error, int status);
[[nodiscard]] Reply problem(const api::Refusal& refusal);

/// How long work is cut up, so that nobody waits for all of another user's.
class FairWork {
 public:
  virtual ~FairWork() = default;
  /// Goes on with a request later, after every other user who wants something had a turn.
  virtual void later(const Principal& caller, std::function<void()> piece) = 0;
  /// Has `work`, which touches nothing of the daemon, done away from the loop, and then goes on
  /// with `then`. Until that no other request of this user begins.
  virtual void aside(const Principal& caller,
                     std::function<void()> work,
                     std::function<void()> then) = 0;
  /// Something of the loop's that others hold: let go of on any thread, it is so on the loop's.
  [[nodiscard]] virtual std::shared_ptr<void> lend(std::shared_ptr<void> of_loop) = 0;
};

class LogReader;

/// One request and the way to answer it. `respond` is called once, now or from a later tick of the
/// loop; the client may be gone by then.
struct Exchange {
  Service& service;
  Principal caller;
  Request request;
  std::function<void(Reply)> respond;
  std::string segment;            ///< what stands where the route has braces: digits for "{id}"
  FairWork* fair_work = nullptr;  ///< none: all is done at once
  /// Keeps what is given until the request is answered or its client is gone.
  std::function<void(std::shared_ptr<void>)> keep = {};
  std::shared_ptr<LogReader> logs = {};  ///< what reads the logs of jobs
  std::shared_ptr<MadeOnce> made = {};   ///< documents that do not change; none: made each time
};

}  // namespace gflow::server

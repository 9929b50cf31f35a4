// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::client {

struct HttpRequest {
  std::string method;
  std::string target;
  std::string body;
  std::string idempotency_key;
  std::string language = {};  ///< what sentences in the answer are wanted in; "" is English
  std::string range = {};     ///< which bytes, "bytes=-100"; "" is all
  /// Is given what a 200 carries, as it comes, in place of HttpResponse::body and however long it
  /// is; false breaks the exchange off.
  std::function<bool(std::string_view)> take = {};
};

struct HttpResponse {
  int status = 0;
  std::string body;
  std::string content_range;  ///< which bytes these are, "bytes 0-99/200"
  std::string next;           ///< the target of the page after this one, as Link tells it
};

/// How long a server may be silent, and how slow.
struct Silence {
  std::chrono::seconds most{90};  ///< Timeout after that
  /// For all of an answer's head to come, however it drips, once the request is sent.
  std::chrono::seconds head{90};
  /// Something drips for as long as there is something to tell: no least speed.
  bool is_followed = false;
  std::chrono::seconds usual{2};  ///< `tell` once after that
  /// Whose silence it is, as a sentence; may be empty.
  std::function<void(const std::string&)> tell = {};
};

/// What a server sends and takes at least in Silence::most; one that is so slow is no better than a
/// silent one.
constexpr std::size_t kLeastBytes = std::size_t{16} * 1024;

class Cluster;

/// A request that was sent, and whose answer nobody has read yet: the server works on it meanwhile.
/// Hangs up at its end.
class PendingAnswer {
 public:
  ~PendingAnswer();
  PendingAnswer(PendingAnswer&& other) noexcept;
  PendingAnswer& operator=(PendingAnswer&& other) noexcept;

  /// Reads it whole; once.
  [[nodiscard]] Result<HttpResponse> receive();

 private:
  struct State;
  explicit PendingAnswer(std::unique_ptr<State> state);
  [[nodiscard]] static Result<std::unique_ptr<State>> begin(HttpRequest request, Silence silence);
  friend Result<PendingAnswer> ask(Cluster& cluster, HttpRequest request, Silence silence);
  friend Result<PendingAnswer> ask(const std::string& socket_path,
                                   HttpRequest request,
                                   Silence silence);

  std::unique_ptr<State> state_;
};

/// Asks who reads a cluster. Errors: those of Cluster::connect(), too.
[[nodiscard]] Result<PendingAnswer> ask(Cluster& cluster, HttpRequest request, Silence silence);
/// `socket_path` may be the server() of a remote. Connects and asks. A connection over a unix
/// socket costs less than finding out whether an old one still works. Errors: Unreachable if nobody
/// listens or the connection breaks before the whole answer is there; Permission; Timeout if
/// nothing comes for as long as `silence.most`, the head of the answer is not there within
/// `silence.head`, or less than kLeastBytes is sent or comes in `silence.most`.
[[nodiscard]] Result<PendingAnswer> ask(const std::string& socket_path,
                                        HttpRequest request,
                                        Silence silence);
/// The same, and reads the whole answer.
[[nodiscard]] Result<HttpResponse> exchange(const std::string& socket_path,
                                            HttpRequest request,
                                            Silence silence);

}  // namespace gflow::client

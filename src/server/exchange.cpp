// SPDX-License-Identifier: Apache-2.0
#include "server/exchange.h"

#include <cerrno>

#include "api/json.h"
#include "base/translate.h"
#include "os/fd.h"
#include "server/made_once.h"

namespace gflow::server {
namespace {

/// In the language that was in use where it was asked for.
class MakingOnce : public Making {
 public:
  MakingOnce(std::shared_ptr<MadeOnce> made, std::string name, std::function<std::string()> make)
      : made_(std::move(made)), name_(std::move(name)), make_(std::move(make)) {}

  std::shared_ptr<const Made> get() override {
    const MessagesOfThread language(messages_);
    return made_->get(name_, make_);
  }

 private:
  std::shared_ptr<MadeOnce> made_;
  std::string name_;
  std::function<std::string()> make_;
  const MessageCatalogue* messages_ = messages_in_use();
};

}  // namespace

Reply written(Reply reply) {
  if (reply.write) reply.body = std::exchange(reply.write, nullptr)();
  if (reply.making) {
    reply.kept = std::exchange(reply.making, nullptr)->get();
    reply.body = reply.kept->text;
  }
  return reply;
}

Reply json_reply_later(std::function<std::string()> write) {
  Reply reply;
  reply.write = [write = std::move(write), messages = messages_in_use()] {
    const MessagesOfThread language(messages);
    return write();
  };
  return reply;
}

Reply json_reply_once(std::shared_ptr<MadeOnce> made,
                      std::string name,
                      std::function<std::string()> make) {
  Reply reply;
  reply.making = std::make_shared<MakingOnce>(std::move(made), std::move(name), std::move(make));
  return reply;
}

Reply json_reply(std::string body) { return {200, std::move(body), "application/json"}; }

Reply empty_reply() { return {204, {}, {}}; }

Reply problem(const Error& error) {
  // Nothing is wrong with what was asked.
  if (os::is_out_of_files(error)) {
    return problem(Error{Code::Unreachable,
                         error.number == EMFILE
                             ? tr("gflowd has as many files open as it may; try again")
                             : tr("this machine has as many files open as it may; try again")},
                   kUnavailable);
  }
  return problem(error, api::http_status(error.code));
}

Reply problem(const Error& error, int status) {
  return {status, api::write_problem(error, status), "application/problem+json"};
}

Reply problem(const api::Refusal& refusal) {
  if (refusal.fields.empty()) return problem(static_cast<const Error&>(refusal));
  return {api::http_status(refusal.code), api::write_problem(refusal), "application/problem+json"};
}

}  // namespace gflow::server

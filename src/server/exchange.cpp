// SPDX-License-Identifier: Apache-2.0
#include "server/exchange.h"

#include "api/json.h"
#include "base/translate.h"
#include "server/made_once.h"

namespace gflow::server {

Reply written(Reply reply) {
  if (reply.write) reply.body = std::exchange(reply.write, nullptr)();
  if (reply.make) {
    reply.kept = std::exchange(reply.make, nullptr)();
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
  reply.make = [made = std::move(made),
                name = std::move(name),
                make = std::move(make),
                messages = messages_in_use()] {
    const MessagesOfThread language(messages);
    return made->get(name, make);
  };
  return reply;
}

Reply json_reply(std::string body) { return {200, std::move(body), "application/json"}; }

Reply empty_reply() { return {204, {}, {}}; }

Reply problem(const Error& error) { return problem(error, api::http_status(error.code)); }

Reply problem(const Error& error, int status) {
  return {status, api::write_problem(error, status), "application/problem+json"};
}

Reply problem(const api::Refusal& refusal) {
  return {api::http_status(refusal.code), api::write_problem(refusal), "application/problem+json"};
}

}  // namespace gflow::server

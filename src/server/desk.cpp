// SPDX-License-Identifier: Apache-2.0
#include "server/desk.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/translate.h"
#include "server/language.h"
#include "server/routes.h"
#include "server/web_guard.h"

namespace gflow::server {

namespace asio = boost::asio;

namespace {

/// Whether somebody is shown all that they were shown before.
bool has_as_much(const Principal& now, const Principal& was) {
  return now.uid == was.uid && now.role >= was.role && now.scope >= was.scope &&
         sight_of(now).others >= sight_of(was).others;
}

}  // namespace

/// A request that is not answered yet.
struct Desk::Ticket {
  Guest guest;
  Request request;
  Asker asker;
  std::optional<std::string> authorization = {};  // what it showed
  Principal caller = {};                          // once it is known
  bool looks = false;                             // and changes nothing
  const MessageCatalogue* messages = nullptr;     // of who asks
  std::uint64_t number = 0;                       // in the order in which they came
  std::atomic<bool> answered{false};              // set on the loop's thread
  std::atomic<bool> gone{false};                  // set by whoever asked
};

Desk::Desk(asio::io_context& loop, Service& service, Authenticator authenticator)
    : loop_(loop), service_(service), authenticator_(std::move(authenticator)), next_look_(loop) {}

std::shared_ptr<void> Desk::ask(Guest guest, Request request, Asker asker) {
  const std::uint32_t uid = guest.peer.uid;
  const auto ticket = std::make_shared<Ticket>();
  ticket->guest = std::move(guest);
  ticket->looks = request.method == "GET";
  ticket->request = std::move(request);
  ticket->asker = std::move(asker);
  asio::post(loop_, [desk = weak_from_this(), uid, ticket] {
    const auto self = desk.lock();
    if (!self) return;
    ticket->number = self->shared_.arrived();
    self->queue(uid, [desk, ticket] {
      if (const auto serving = desk.lock()) serving->serve(ticket);
    });
  });
  const auto leave = [&loop = loop_, desk = weak_from_this(), ticket](void* /*the ticket*/) {
    ticket->gone = true;
    if (ticket->answered) return;
    asio::post(loop, [desk, ticket] {
      if (const auto self = desk.lock()) self->waits_.erase(ticket.get());
    });
  };
  return {ticket.get(), leave};
}

void Desk::tell(std::function<void()> news) { asio::post(loop_, std::move(news)); }

void Desk::serve(const std::shared_ptr<Ticket>& ticket) {
  if (ticket->gone) return;
  const auto respond = [desk = weak_from_this(), ticket](Reply reply) {
    if (const auto self = desk.lock()) self->answer(*ticket, std::move(reply));
  };
  const auto keep_wait = [desk = weak_from_this(), ticket](std::shared_ptr<void> wait) {
    if (const auto self = desk.lock()) self->keep(ticket, std::move(wait));
  };
  ticket->messages = messages_wanted(ticket->request.language);
  const MessagesOfThread language(ticket->messages);
  auto decided = authenticator_.authenticate(ticket->guest, ticket->request, service_.now());
  if (const auto* known = std::get_if<Principal>(&decided)) {
    ticket->authorization = ticket->request.authorization;
    ticket->caller = *known;
    auto wait =
        authenticator_.slow_down(ticket->guest, *known, ticket->request, service_.now().mono);
    if (wait) decided = std::move(*wait);
  }
  if (auto* refusal = std::get_if<Reply>(&decided)) {
    allow_page(page_of(ticket->request), *refusal);
    return respond(std::move(*refusal));
  }
  const auto& caller = std::get<Principal>(decided);
  std::function<void(Reply)> answers = told(ticket->guest, caller, ticket->request, respond);
  const Route* route = find_route(ticket->request.method, ticket->request.path);
  if (route != nullptr && route->about.is_shared) {
    SharedAnswers::Question question{caller, ticket->request};
    question.request.terms = {};
    if (shared_.join(question, ticket->number, answers)) return;
    answers = shared_.begin(std::move(question), std::move(answers));
  }
  dispatch({service_,
            caller,
            std::move(ticket->request),
            std::move(answers),
            std::string(),
            this,
            keep_wait,
            logs_,
            made_});
}

/// The way to answer, past the log where this is to be there, with what lets a page read it.
std::function<void(Reply)> Desk::told(const Guest& guest,
                                      const Principal& caller,
                                      const Request& request,
                                      std::function<void(Reply)> respond) {
  auto audited = Authenticator::audited(guest, caller, request);
  std::string page = page_of(request);
  if (!audited && page.empty()) return respond;
  return [desk = weak_from_this(),
          audited = std::move(audited),
          page = std::move(page),
          respond = std::move(respond)](Reply reply) {
    const auto self = desk.lock();
    if (self && audited) {
      self->authenticator_.audit(*audited, reply.status, self->service_.now().mono);
    }
    allow_page(page, reply);
    respond(std::move(reply));
  };
}

void Desk::answer(Ticket& ticket, Reply reply) {
  if (ticket.answered.exchange(true)) return;
  waits_.erase(&ticket);
  if (!ticket.caller.credential.empty()) reply.asked_by = text_of(ticket.caller);
  reply.uid = ticket.caller.uid;
  if (reply.streamed) keep_stream(ticket, reply);
  ticket.asker.answer(std::move(reply));
}

void Desk::keep(const std::shared_ptr<Ticket>& ticket, std::shared_ptr<void> wait) {
  if (ticket->answered || ticket->gone) return;
  waits_[ticket.get()] = {ticket, std::move(wait)};
  ticket->asker.waits();
  if (!ticket->caller.credential.empty()) look_later();
}

std::vector<std::string> Desk::configure(const RoleNames& roles,
                                         const std::vector<std::string>& projects,
                                         OthersJobs others_jobs) {
  auto unknown = authenticator_.identity().configure(roles, projects);
  authenticator_.identity().show_of_others(others_jobs);
  look_again();
  return unknown;
}

void Desk::keep_stream(const Ticket& ticket, Reply& reply) {
  const auto body = std::make_shared<RevocableBody>(std::move(reply.streamed->body));
  reply.streamed->body = body;
  std::erase_if(streams_, [](const Stream& stream) { return stream.body.expired(); });
  streams_.push_back({ticket.guest, ticket.authorization, ticket.caller, body});
  look_later();
}

void Desk::look_again() {
  const Now now = service_.now();
  look_at_streams(now);
  look_at_waits(now);
  look_later();
}

void Desk::look_at_streams(Now now) {
  std::erase_if(streams_, [this, now](const Stream& stream) {
    const auto body = stream.body.lock();
    if (!body) return true;
    const auto is = authenticator_.still(stream.guest, stream.authorization, now);
    if (is && has_as_much(*is, stream.caller)) return false;
    body->revoke();
    return true;
  });
}

/// Of these nothing was sent yet: they are told. Who waits for GPUs of their own goes on waiting.
void Desk::look_at_waits(Now now) {
  std::vector<std::pair<std::shared_ptr<Ticket>, Reply>> over;
  for (const auto& [ticket, wait] : waits_) {
    const MessagesOfThread language(ticket->messages);
    const auto is = authenticator_.still(ticket->guest, ticket->authorization, now);
    if (!is) {
      over.emplace_back(wait.ticket, unauthorized(is.error()));
    } else if (ticket->looks && !has_as_much(*is, ticket->caller)) {
      over.emplace_back(wait.ticket,
                        problem(Error{Code::Unreachable,
                                      tr("what you may see has changed meanwhile; ask again")}));
    }
  }
  for (auto& [ticket, reply] : over) answer(*ticket, std::move(reply));
}

/// A token expires by itself; who is known by the connection stays so until others say otherwise.
void Desk::look_later() {
  const auto has_credential = [](const Principal& caller) { return !caller.credential.empty(); };
  const bool may_end = std::ranges::any_of(streams_, has_credential, &Stream::caller) ||
                       std::ranges::any_of(waits_, [&](const auto& one) {
                         return has_credential(one.first->caller);
                       });
  if (!may_end) return;
  std::chrono::milliseconds wait = Accounts::kFresh;  // accounts end, clocks are set
  const auto [now, passed] = service_.now();
  const auto tokens = service_.tokens().all();
  for (const Token& token : *tokens) {
    if (!token.expires || has_expired(token, now)) continue;
    wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(*token.expires - now));
  }
  if (look_due_ && *look_due_ <= passed + wait) return;  // who comes later puts off none
  look_due_ = passed + wait;
  next_look_.expires_after(wait);
  next_look_.async_wait([desk = weak_from_this()](const boost::system::error_code& error) {
    const auto self = desk.lock();
    if (error || !self) return;
    self->look_due_.reset();
    self->look_again();
  });
}

bool Desk::shows_somebody(const Guest& guest,
                          const std::optional<std::string>& authorization) const {
  if (guest.via != Via::Tls) return true;
  if (!authorization) return !guest.certificate.empty();
  const auto secret = bearer_of(*authorization);
  return secret && service_.tokens().find_by_secret(*secret);
}

void Desk::close() {
  worker_.reset();  // now, while there is a loop it may post to
  logs_.reset();    // the last of who reads ends it
  std::exchange(waits_, {}).clear();
  next_look_.cancel();
}

void Desk::queue(std::uint32_t uid, std::function<void()> piece) {
  fair_queue_.push(uid, std::move(piece));
  serve_soon();
}

void Desk::later(const Principal& caller, std::function<void()> piece) {
  fair_queue_.push_front(record_of(caller).uid, std::move(piece));
  serve_soon();
}

void Desk::aside(const Principal& caller, std::function<void()> work, std::function<void()> then) {
  if (!worker_) return;
  const std::uint32_t uid = record_of(caller).uid;
  fair_queue_.block(uid);
  auto done = [desk = weak_from_this(), uid, then = std::move(then)] {
    const auto self = desk.lock();
    if (!self) return;
    self->fair_queue_.unblock(uid);
    self->fair_queue_.push_front(uid, then);
    self->serve_soon();
  };
  worker_->run(uid, [this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    asio::post(loop_, std::move(done));
  });
}

std::shared_ptr<void> Desk::lend(std::shared_ptr<void> of_loop) {
  void* const any = this;
  return {any, [&loop = loop_, of_loop = std::move(of_loop)](void* /*any*/) mutable {
            asio::post(loop, [back = std::move(of_loop)]() mutable { back.reset(); });
          }};
}

/// One piece, then whatever else the loop has to do, then the next.
void Desk::serve_soon() {
  if (serving_) return;
  if (!fair_queue_.ready()) return shared_.let_go();
  serving_ = true;
  asio::post(loop_, [desk = weak_from_this()] {
    const auto self = desk.lock();
    if (!self) return;
    self->serving_ = false;
    if (self->fair_queue_.ready()) self->fair_queue_.pop()();
    self->serve_soon();
  });
}

}  // namespace gflow::server

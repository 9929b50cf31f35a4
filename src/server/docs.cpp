// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/text.h"
#include "server/docs_page.h"
#include "server/handlers.h"
#include "server/made_once.h"
#include "server/openapi.h"
#include "server/web_guard.h"

namespace gflow::server {
namespace {

/// Of a page that shows and does nothing: it may load its own style and script, and nothing else.
Reply page_reply(Reply reply, std::string content_type) {
  reply.content_type = std::move(content_type);
  reply.headers.emplace_back("Content-Security-Policy",
                             "default-src 'none'; style-src 'self'; script-src 'self'; "
                             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  return reply;
}

/// As curl is told where gflowd is, up to the path: as whoever asks for the page found it. What is
/// in a Host that was let through needs no quoting (server/web_guard.h).
std::string address_of(const Exchange& exchange, const std::string& socket) {
  const std::optional<WebHeaders>& web = exchange.request.web;
  if (!web && socket.empty()) return "'http://localhost";  // gflow-kube and gflow-slurm have none
  if (!web) {
    return fmt::format("--unix-socket {} 'http://localhost", shell_quote(std::span(&socket, 1)));
  }
  const bool is_tls = web->rules && web->rules->is_remote;
  return fmt::format("'{}://{}", is_tls ? "https" : "http", web->host);
}

}  // namespace

Reply reply_made_once(const Exchange& exchange,
                      std::string name,
                      std::function<std::string()> make) {
  if (exchange.made == nullptr) return json_reply_later(std::move(make));
  return json_reply_once(exchange.made, std::move(name), std::move(make));
}

void show_docs(Exchange exchange) {
  const api::DaemonView daemon = exchange.service.daemon(OthersJobs::All);
  Reply page = json_reply_later([made = exchange.made,
                                 name = exchange.request.path,
                                 address = address_of(exchange, daemon.socket),
                                 version = daemon.version] {
    const auto make = [&version] { return docs_page(route_views(), version); };
    return docs_page_at(made ? made->get(name, make)->text : make(), address);
  });
  exchange.respond(page_reply(std::move(page), "text/html; charset=utf-8"));
}

void show_docs_style(Exchange exchange) {
  Reply style =
      reply_made_once(exchange, exchange.request.path, [] { return std::string(docs_style()); });
  exchange.respond(page_reply(std::move(style), "text/css; charset=utf-8"));
}

void show_docs_script(Exchange exchange) {
  Reply script =
      reply_made_once(exchange, exchange.request.path, [] { return std::string(docs_script()); });
  exchange.respond(page_reply(std::move(script), "text/javascript; charset=utf-8"));
}

}  // namespace gflow::server

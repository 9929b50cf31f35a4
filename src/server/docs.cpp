// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <utility>

#include "server/docs_page.h"
#include "server/handlers.h"
#include "server/openapi.h"

namespace gflow::server {
namespace {

/// Of a page that shows and does nothing: it may load its own style and script, and nothing else.
Reply page_reply(std::function<std::string()> write, std::string content_type) {
  Reply reply = json_reply_later(std::move(write));
  reply.content_type = std::move(content_type);
  reply.headers.emplace_back("Content-Security-Policy",
                             "default-src 'none'; style-src 'self'; script-src 'self'; "
                             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  return reply;
}

}  // namespace

void show_docs(Exchange exchange) {
  exchange.respond(page_reply(
      [version = exchange.service.daemon().version] { return docs_page(route_views(), version); },
      "text/html; charset=utf-8"));
}

void show_docs_style(Exchange exchange) {
  exchange.respond(page_reply([] { return std::string(docs_style()); }, "text/css; charset=utf-8"));
}

void show_docs_script(Exchange exchange) {
  exchange.respond(
      page_reply([] { return std::string(docs_script()); }, "text/javascript; charset=utf-8"));
}

}  // namespace gflow::server

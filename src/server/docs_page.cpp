// SPDX-License-Identifier: Apache-2.0
#include "server/docs_page.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "api/document_view.h"
#include "api/headers.h"
#include "api/json.h"
#include "api/security.h"
#include "base/html.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::server {
namespace {

struct ProblemHelp {
  Code code;
  std::string_view help;
};
constexpr std::array<ProblemHelp, 11> kProblems = {{
    {Code::Usage,
     tr_later("The request is not understood. detail says why; errors has the JSON pointer of each "
              "field that is wrong.")},
    {Code::Permission, tr_later("You may not. detail says who may.")},
    {Code::NotFound, tr_later("There is no such job, allocation, node or path.")},
    {Code::WrongState,
     tr_later("It is there, but not in a state that allows this; 412: it is not as If-Match says. "
              "Read it again.")},
    {Code::Infeasible, tr_later("It can never be met on these machines, or a limit forbids it.")},
    {Code::KeyReused,
     tr_later("Another request came under the same Idempotency-Key. Repeat that one as it was, or "
              "use a new key.")},
    {Code::Exhausted,
     tr_later(
         "A limit is reached: of the size, of what is under way, of the disk. Retry-After says "
         "when to try again.")},
    {Code::Timeout, tr_later("It did not come, or did not happen, in time.")},
    {Code::Unreachable,
     tr_later("gflowd stops, or the GPUs do not answer. Retry-After says when to try again.")},
    {Code::Failure, tr_later("Something went wrong in gflowd. Its log has the instance.")},
    {Code::Damaged, tr_later("What gflowd keeps lost something: gflow doctor --recover.")},
}};

std::string type_text(const api::QueryParameter& parameter) {
  using Type = api::QueryParameter::Type;
  using Many = api::QueryParameter::Many;
  std::string type;
  switch (parameter.type) {
    case Type::Text:
      type = "string";
      break;
    case Type::Number:
      type = "integer";
      break;
    case Type::Decimal:
      type = "number";
      break;
    case Type::Truth:
      type = "boolean";
      break;
    case Type::Time:
      type = "date-time";
      break;
  }
  if (!parameter.words.empty()) {
    type = join(std::vector<std::string>(parameter.words.begin(), parameter.words.end()), " | ");
  }
  if (parameter.many == Many::Commas) return tr_format("{}, several with commas", type);
  if (parameter.many == Many::Repeated) return tr_format("{}, may be repeated", type);
  return type;
}

std::string link_to(std::string_view document) {
  return fmt::format("<a href=\"#document-{0}\">{0}</a>", document);
}

void add_row(std::string& out,
             std::string_view name,
             std::string_view type,
             std::string_view help) {
  fmt::format_to(std::back_inserter(out),
                 "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td></tr>\n",
                 html_text(name),
                 type,
                 html_text(help));
}

void add_parameters(std::string& out, const api::RouteView& route) {
  std::string rows;
  const api::Operation& about = *route.about;
  if (const std::string_view name = api::pattern_of(route.pattern).name; !name.empty()) {
    add_row(rows, fmt::format("{{{}}}", name), html_text(tr("in the path")), tr(about.segment));
  }
  for (const api::QueryParameter& parameter : route.query) {
    add_row(rows, parameter.name, html_text(type_text(parameter)), tr(parameter.help));
  }
  for (const api::RequestHeader& header : api::kRequestHeaders) {
    // What all read is told once for all.
    if (header.component.empty() || header.is_read == nullptr || !header.is_read(route)) continue;
    add_row(rows, header.name, html_text(tr("header")), tr(header.help));
  }
  if (!rows.empty()) out += "<table>\n" + rows + "</table>\n";
}

// Where docs_page_at() puts the address: no character of it is another one in HTML.
constexpr std::string_view kAddress = "{address}";

/// The path with what may stand in it.
std::string example_path(const api::RouteView& route) {
  const api::Pattern parts = api::pattern_of(route.pattern);
  if (parts.name.empty()) return std::string(route.pattern);
  return fmt::format("{}{}{}", parts.before, route.about->segment_example, parts.after);
}

/// The example as it is typed into a shell.
std::string curl_line(const api::RouteView& route) {
  std::string line = "curl ";
  if (route.method != "GET") line += fmt::format("-X {} ", route.method);
  std::string query;
  for (const api::QueryParameter& parameter : route.query) {
    if (parameter.example.empty()) continue;
    query += fmt::format("{}{}={}", query.empty() ? "?" : "&", parameter.name, parameter.example);
  }
  line += fmt::format("{}{}{}'", kAddress, example_path(route), query);
  if (!route.about->example.empty()) {
    line += fmt::format(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{}'",
                        route.about->example);
  }
  return line;
}

/// " (ETag, Link)": those that not all answers have.
std::string headers_text(const api::RouteView& route, int status) {
  std::vector<std::string> links;
  for (const api::AnswerHeader& header : api::kAnswerHeaders) {
    if (header.comes == nullptr || !header.comes(route, status)) continue;
    links.push_back(fmt::format("<a href=\"#header-{0}\">{0}</a>", header.name));
  }
  return links.empty() ? "" : fmt::format(" ({})", join(links, ", "));
}

void add_answers(std::string& out, const api::RouteView& route) {
  std::string answers;
  for (const api::Answered& answer : route.about->answers) {
    if (answer.status == 0) continue;
    answers +=
        fmt::format("{}<code>{}</code> {}{}",
                    answers.empty() ? "" : ", ",
                    answer.status,
                    answer.document.empty() ? html_text(answer.media) : link_to(answer.document),
                    headers_text(route, answer.status));
  }
  fmt::format_to(std::back_inserter(out), "<p>{}: {}</p>\n", html_text(tr("Answer")), answers);
}

/// "operators; token: operate".
std::string who_text(const api::RouteView& route) {
  if (route.scope.empty() || route.about->is_of_socket) return tr(route.who);
  return tr_format("{}; with a token: scope {}", tr(route.who), route.scope);
}

void add_identifications(std::string& out) {
  out += "<h2 id=\"who\">" + html_text(tr("Who you are")) + "</h2>\n<dl>\n";
  for (const api::Identification& one : api::identifications()) {
    fmt::format_to(std::back_inserter(out),
                   "<dt>{}</dt><dd>{}</dd>\n",
                   html_text(tr(one.title)),
                   html_text(tr(one.help)));
  }
  out += "</dl>\n";
}

void add_operation(std::string& out, const api::RouteView& route) {
  const api::Operation& about = *route.about;
  fmt::format_to(std::back_inserter(out),
                 "<details id=\"{}\"><summary><span class=\"method {}\">{}</span> "
                 "<code>{}</code> <span class=\"says\">{}</span></summary>\n",
                 about.id,
                 to_lower(route.method),
                 route.method,
                 html_text(route.pattern),
                 html_text(tr(about.summary)));
  if (!about.description.empty()) out += "<p>" + html_text(tr(about.description)) + "</p>\n";
  fmt::format_to(std::back_inserter(out),
                 "<p>{}: {}</p>\n",
                 html_text(tr("Who may")),
                 html_text(who_text(route)));
  add_parameters(out, route);
  if (!about.body.empty()) {
    fmt::format_to(
        std::back_inserter(out), "<p>{}: {}</p>\n", html_text(tr("Body")), link_to(about.body));
  }
  add_answers(out, route);
  out += "<pre>" + html_text(curl_line(route)) + "</pre>\n</details>\n";
}

void add_documents(std::string& out) {
  out += "<h2 id=\"documents\">" + html_text(tr("Documents")) + "</h2>\n";
  for (const api::DocumentView& document : api::document_views()) {
    fmt::format_to(std::back_inserter(out),
                   "<details id=\"document-{0}\"><summary><code>{0}</code></summary>\n<table>\n",
                   html_text(document.name));
    for (const auto& field : document.fields) {
      const std::string type =
          html_text(field.type) + (field.of.empty() ? "" : " → " + link_to(field.of));
      add_row(out, field.name + (field.required ? " *" : ""), type, field.help);
    }
    out += "</table>\n</details>\n";
  }
}

void add_headers(std::string& out) {
  out += "<h2 id=\"headers\">" + html_text(tr("Headers")) + "</h2>\n<table>\n";
  for (const api::RequestHeader& header : api::kRequestHeaders) {
    if (header.help.empty()) continue;
    add_row(out, header.name, html_text(tr("of requests")), tr(header.help));
  }
  for (const api::AnswerHeader& header : api::kAnswerHeaders) {
    const std::string of =
        fmt::format("<span id=\"header-{}\">{}</span>", header.name, html_text(tr("of answers")));
    add_row(out, header.name, of, tr(header.help));
  }
  out += "</table>\n";
}

void add_problems(std::string& out) {
  out +=
      "<h2 id=\"problems\">" + html_text(tr("Problems")) + "</h2>\n<p>" +
      html_text(tr("What goes wrong is answered as application/problem+json (RFC 9457): branch on "
                   "code; instance is the X-Request-Id, which the log of gflowd has, too.")) +
      "</p>\n";
  for (const ProblemHelp& problem : kProblems) {
    fmt::format_to(std::back_inserter(out),
                   "<h3 id=\"problem-{0}\"><code>{0}</code> {1}</h3>\n<p>{2}</p>\n",
                   code_name(problem.code),
                   api::http_status(problem.code),
                   html_text(tr(problem.help)));
  }
}

void add_head(std::string& out, std::string_view version) {
  fmt::format_to(
      std::back_inserter(out),
      "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>gflow API</title>\n<link rel=\"stylesheet\" href=\"/docs/style.css\">\n"
      "<script src=\"/docs/script.js\" defer></script>\n</head>\n<body>\n<main>\n"
      "<h1>gflow API <small>{}</small></h1>\n<p>{}</p>\n"
      "<p><a href=\"/api/v1/openapi.json\">openapi.json</a> · <a href=\"#documents\">{}</a> · "
      "<a href=\"#headers\">{}</a> · <a href=\"#problems\">{}</a></p>\n"
      "<p id=\"narrow\" hidden><label>{} <input type=\"search\" "
      "autocomplete=\"off\"></label></p>\n",
      html_text(tr("en")),
      html_text(version),
      html_text(tr("GPUs of this machine, and the jobs that run on them")),
      html_text(tr("Documents")),
      html_text(tr("Headers")),
      html_text(tr("Problems")),
      html_text(tr("Find")));
}

}  // namespace

std::string docs_page(std::span<const api::RouteView> routes, std::string_view version) {
  std::string out;
  add_head(out, version);
  add_identifications(out);
  for (const api::Tag& tag : api::tags()) {
    fmt::format_to(std::back_inserter(out),
                   "<section>\n<h2 id=\"{0}\">{0}</h2>\n<p>{1}</p>\n",
                   tag.name,
                   html_text(tr(tag.help)));
    for (const api::RouteView& route : routes) {
      if (route.about->tag == tag.name) add_operation(out, route);
    }
    out += "</section>\n";
  }
  add_documents(out);
  add_headers(out);
  add_problems(out);
  out += "</main>\n</body>\n</html>\n";
  return out;
}

std::string docs_page_at(std::string_view page, std::string_view address) {
  const std::string shown = html_text(address);
  std::string out;
  for (std::size_t at = page.find(kAddress); at != std::string_view::npos;
       at = page.find(kAddress)) {
    out.append(page.substr(0, at)).append(shown);
    page.remove_prefix(at + kAddress.size());
  }
  return out.append(page);
}

std::string_view docs_style() {
  return R"(:root { color-scheme: light dark; --line: #8885; --soft: #8881; --get: #1a6fb5; --post: #1d7f44; --patch: #9a6700; --delete: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, "Noto Sans CJK SC", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 small { font-size: 50%; font-weight: normal; opacity: .7; }
h2 { margin-top: 2rem; border-bottom: 1px solid var(--line); }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 90%; }
pre { padding: .75rem; overflow-x: auto; background: var(--soft); border-radius: .3rem; }
details { border: 1px solid var(--line); border-radius: .3rem; margin: .4rem 0; padding: 0 .75rem; }
details[open] { padding-bottom: .5rem; }
details:target { outline: 2px solid var(--get); }
summary { cursor: pointer; padding: .45rem 0; }
summary code { font-weight: 600; overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 4.5em; text-align: center; border-radius: .25rem; padding: 0 .4em; font-size: 80%; font-weight: 700; color: #fff; background: var(--get); }
.method.post { background: var(--post); }
.method.patch { background: var(--patch); }
.method.delete { background: var(--delete); }
.says { opacity: .8; margin-left: .5em; }
table { border-collapse: collapse; width: 100%; }
dt { font-weight: 600; }
th, td { text-align: left; vertical-align: top; padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--soft); font-weight: normal; overflow-wrap: anywhere; }
input { font: inherit; width: 100%; max-width: 30rem; padding: .3rem .5rem; }
)";
}

std::string_view docs_script() {
  return R"("use strict";
const narrow = document.getElementById("narrow");
const input = narrow.querySelector("input");
narrow.hidden = false;
input.addEventListener("input", () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const part of document.querySelectorAll("details")) {
    const text = part.textContent.toLowerCase();
    part.hidden = !words.every((word) => text.includes(word));
  }
});
// A link to what is folded opens it.
const unfold = () => {
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (part instanceof HTMLDetailsElement) part.open = true;
};
addEventListener("hashchange", unfold);
unfold();
)";
}

}  // namespace gflow::server

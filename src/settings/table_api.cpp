// SPDX-License-Identifier: Apache-2.0
// The sections of the table that are about who asks from outside, and who measures.
#include "base/listen_address.h"
#include "base/translate.h"
#include "settings/field.h"
#include "settings/sections.h"

namespace gflow::settings {
namespace {

/// An address that a setting names, or none.
Result<void> read_listen(Settings& settings, const std::string& text) {
  if (!text.empty()) GF_CHECK(parse_loopback(text));
  settings.api_listen = text;
  return {};
}

Result<void> read_tls_listen(Settings& settings, const std::string& text) {
  if (!text.empty()) GF_CHECK(parse_listen_address(text));
  settings.tls_listen = text;
  return {};
}

/// "https://board.lab:3000": what a browser sends, and nothing that stands for several.
bool is_origin(std::string_view text) {
  const std::size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
  const std::string_view host = text.substr(scheme);
  return scheme != 0 && !host.empty() && host.find_first_of("/*?#@ ,") == std::string_view::npos &&
         to_lower(host) == host;
}

Result<void> read_origins(Settings& settings, const std::string& text) {
  auto origins = read_list(text);
  for (const std::string& origin : origins) {
    if (is_origin(origin)) continue;
    return fail(Code::Usage,
                tr_format("'{}' is not the origin of a web page, as https://board.lab:3000",
                          printable(origin)));
  }
  settings.allowed_origins = std::move(origins);
  return {};
}

Result<void> read_endpoint(Settings& settings, const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  const std::string_view rest =
      text.starts_with(kScheme) ? std::string_view(text).substr(kScheme.size()) : "";
  const std::string_view host = rest.substr(0, rest.find('/'));
  const bool plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F'; });
  if (!text.empty() && (host.empty() || host.starts_with(':') || host.contains('@') || !plain)) {
    return fail(Code::Usage,
                tr_format("'{}' is not the address of a collector, such as http://127.0.0.1:4318",
                          printable(text)));
  }
  settings.otlp_endpoint = text;
  return {};
}

}  // namespace

void add_api(std::vector<Setting>& table) {
  table.push_back(
      {.section = "api",
       .name = "listen",
       .type = Type::Address,
       .applies = kRestart,
       .help = tr_later("address of the REST API: localhost, 127.0.0.1 or [::1] and a port; "
                        "port 0 is any that is free, \"\" is none"),
       .write = [](const Settings& s) { return s.api_listen; },
       .read = read_listen});
  table.push_back(
      of(S{.section = "api",
           .name = "max_connections",
           .applies = kRestart,
           .min = 16,
           .max = kMillion,
           .help = tr_later("maximum number of open connections; fewer where gflowd may not "
                            "have so many files open")},
         [](auto& s) -> auto& { return s.max_connections; }));
  table.push_back(of(S{.section = "api",
                       .name = "max_connections_per_user",
                       .applies = kRestart,
                       .min = 1,
                       .max = kMillion,
                       .help = tr_later("maximum number of open connections of one user")},
                     [](auto& s) -> auto& { return s.max_connections_per_user; }));
}

void add_api_for_others(std::vector<Setting>& table) {
  table.push_back(
      {.section = "api",
       .name = "tls_listen",
       .type = Type::Address,
       .applies = kRestart,
       .help = tr_later("address at which other machines reach the REST API, with TLS and a token "
                        "or certificate: \"0.0.0.0:8443\", \"10.0.0.5:8000\"; \"\" is none"),
       .write = [](const Settings& s) { return s.tls_listen; },
       .read = read_tls_listen});
  const auto add_path = [&table](std::string_view name, std::string_view help, auto field) {
    table.push_back(
        absolute(of(S{.section = "api", .name = name, .applies = kRestart, .help = help}, field),
                 [](std::string_view path) { return path; }));
  };
  add_path("tls_certificate",
           "its certificate (PEM); \"\" is one gflowd makes itself, which clients pin",
           [](auto& s) -> auto& { return s.tls_certificate; });
  add_path(
      "tls_key", "the key of tls_certificate (PEM)", [](auto& s) -> auto& { return s.tls_key; });
  add_path("client_ca",
           "certificates (PEM) of who may vouch for clients; the common name is the account",
           [](auto& s) -> auto& { return s.client_ca; });
  table.push_back(
      {.section = "api",
       .name = "host_names",
       .type = Type::List,
       .naming = Naming::Nobody,
       .applies = kRestart,
       .help = tr_later(
           "names other machines call this one by, besides its host name: \"lab1.example.org\""),
       .write = [](const Settings& s) { return write_list(s.host_names); },
       .read = [](Settings& s, const std::string& text) -> Result<void> {
         s.host_names = read_list(to_lower(text));
         return {};
       }});
  table.push_back(
      {.section = "api",
       .name = "allowed_origins",
       .type = Type::List,
       .naming = Naming::Nobody,
       .applies = kRestart,
       .help = tr_later("web pages that may ask, with a token: \"https://board.lab:3000\"; none "
                        "by default"),
       .write = [](const Settings& s) { return write_list(s.allowed_origins); },
       .read = read_origins});
}

void add_telemetry(std::vector<Setting>& table) {
  const auto add = [&table](Setting setting, auto field) {
    setting.section = "metrics";
    table.push_back(of(std::move(setting), field));
  };
  add(S{.name = "dcgm",
        .help = tr_later("serve GPUs under the names of DCGM (DCGM_FI_DEV_...), too")},
      [](auto& s) -> auto& { return s.metrics.dcgm; });
  add(S{.name = "jobs",
        .help = tr_later("serve a series for each running job, with its user and project")},
      [](auto& s) -> auto& { return s.metrics.jobs; });
  add(S{.name = "users", .help = tr_later("serve a series for each user who has jobs running")},
      [](auto& s) -> auto& { return s.metrics.users; });
  add(S{.name = "hpc_job_mapping_dir",
        .help = tr_later("directory of dcgm-exporter's --hpc-job-mapping-dir; \"\" is none")},
      [](auto& s) -> auto& { return s.metrics.hpc_job_mapping_dir; });
  table.back() = absolute(std::move(table.back()), [](std::string_view path) { return path; });
  table.push_back(
      {.section = "telemetry",
       .name = "otlp_endpoint",
       .help = tr_later("OpenTelemetry collector that gets a trace of each job, such as "
                        "http://127.0.0.1:4318; \"\" is none"),
       .write = [](const Settings& s) { return s.otlp_endpoint; },
       .read = read_endpoint});
}

}  // namespace gflow::settings

// SPDX-License-Identifier: Apache-2.0
#include "command/context.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "client/cluster.h"
#include "client/remote.h"
#include "command/paged_text.h"
#include "config/gpu_config.h"
#include "config/toml.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/terminal.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

ColorFacts color_facts(bool terminal) {
  auto force = os::environment("FORCE_COLOR");
  if (!force) force = os::environment("CLICOLOR_FORCE");
  return {terminal, os::environment("NO_COLOR"), force, os::environment("TERM")};
}

/// The socket a configuration file names; empty if it names none.
Result<std::string> socket_of_config(const std::string& path) {
  const std::string text = GF_TRY(os::read_file(path));
  const auto table = config::parse_toml(text, printable(path));
  if (!table) return fail(Code::Usage, config::problem_text(table.error()));
  return (*table)["daemon"]["socket"].value_or(std::string());
}

}  // namespace

Context::Context(std::ostream& data, std::ostream& rest)
    : out(data),
      err(rest),
      out_is_terminal(os::is_terminal(1)),
      columns(out_is_terminal ? static_cast<std::size_t>(os::terminal_size(1).columns) : 0),
      socket_(os::client_socket()) {}

Result<void> Context::configure(const Invocation& invocation) {
  program_ = invocation.program;
  json = invocation.has("json");
  if (json) set_messages(nullptr);
  err_is_terminal = os::is_terminal(2);
  can_move_cursor = out_is_terminal && !is_dumb(os::environment("TERM"));
  pager = out_is_terminal && !invocation.has("no-pager");
  const ColorWhen when = parse_color(invocation.get("color"));
  paint = Painter(use_color(when, color_facts(out_is_terminal)));
  paint_err = Painter(use_color(when, color_facts(err_is_terminal)));
  GF_CHECK(choose_server(invocation));
  std::string config = invocation.get("gflow-config");
  if (config.empty()) config = os::environment("GFLOW_CONFIG").value_or("");
  const std::string usual = os::user_paths().config_file;
  named_config_ = config;
  config_file_ = config.empty() ? usual : config;
  if (config.empty() && os::is_file(usual)) config = usual;
  if (!config.empty() && !is_remote() && !os::environment("GFLOW_SOCKET")) {
    const auto named = socket_of_config(config);
    if (!named && !named_config_.empty()) return std::unexpected(named.error());
    if (!named) {
      config_trouble_ = named.error().message;
    } else if (!named->empty()) {
      socket_ = *named;
    }
  }
  return {};
}

Result<void> Context::choose_server(const Invocation& invocation) {
  const bool is_of_daemon = program_.starts_with("gflowd");  // which is the one here
  const bool is_of_remotes = program_.starts_with("gctl remote");
  if (is_of_daemon && invocation.has("server")) {
    return fail(Code::Usage,
                tr("gflowd can be started, stopped and inspected only on its own machine"));
  }
  if (is_of_remotes && invocation.has("server")) {
    return fail(Code::Usage, tr("remotes are stored on this machine only: omit --server"));
  }
  if (is_of_daemon || is_of_remotes) return {};
  std::string server = invocation.get("server");
  if (server.empty()) server = os::environment("GFLOW_SERVER").value_or("");
  if (server.empty()) return {};
  socket_ = client::is_cluster(server) ? server : client::remote_server(server);
  remote_ = std::move(server);
  return {};
}

bool Context::is_cluster() const { return client::is_cluster(remote_); }
bool Context::is_slurm() const { return client::is_slurm(remote_); }

Result<void> Context::needs_own_machine(std::string_view why) const {
  if (!is_remote()) return {};
  if (is_cluster()) {
    return fail(
        Code::Usage,
        tr_format("{} is not for a cluster ({}); 'gbatch' submits jobs of one, 'gcancel' ends them",
                  program_,
                  printable(remote_)));
  }
  return fail(
      Code::Usage,
      tr_format("{} is not for another machine ({}): {}", program_, printable(remote_), why));
}

Result<GpuConfig> Context::gpu_config() const {
  const bool own = !config::gpu_config_path(config_file_).empty();
  return config::read_gpu_config(own ? config_file_ : os::system_paths().config_file);
}

client::Client& Context::daemon() {
  if (!config_trouble_.empty()) {
    note(
        tr_format("{}; asking at the usual socket", printable(std::exchange(config_trouble_, {}))));
  }
  if (!client_) {
    client_.emplace(socket_);
    client_->on_silence([this](const std::string& text) { note(text); });
    if (for_programs_) client_->ask_in_english();
  }
  return *client_;
}

void Context::set_socket(std::string socket) {
  socket_ = std::move(socket);
  client_.reset();
}

client::Client Context::another_daemon() const {
  client::Client client = client_ ? client_->another() : client::Client(socket_);
  if (for_programs_) client.ask_in_english();
  return client;
}

void Context::show(std::string_view text) {
  PagedText shown(*this);
  (void)shown.write(text);
}

void Context::note(std::string_view text) {
  err << program_ << ": " << paint_err(Style::Yellow, tr("note")) << ": " << text << '\n';
}

void Context::error(const Error& error) { err << fmt::format("{}: {}\n", program_, error.message); }

void Context::hint(std::string_view text) {
  if (err_is_terminal) err << paint_err(Style::Dim, text) << '\n';
}

}  // namespace gflow::cli

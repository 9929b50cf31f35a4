// SPDX-License-Identifier: Apache-2.0
#include "client/cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "os/descriptor.h"
#include "os/file.h"
#include "os/paths.h"

namespace gflow::client {
namespace {

/// What answers for a kind of cluster.
struct Kind {
  std::string_view server;  ///< as it is called
  const char* program;      ///< in the directory of helpers
  bool has_contexts;        ///< "kube:lab"
};
constexpr auto kKinds =
    std::to_array<Kind>({{"kube", "gflow-kube", true}, {"slurm", "gflow-slurm", false}});

/// Null: it is none.
const Kind* kind_of(std::string_view server) {
  for (const Kind& kind : kKinds) {
    if (server == kind.server) return &kind;
    const bool is_of_it =
        server.starts_with(kind.server) && server.substr(kind.server.size()).starts_with(':');
    if (kind.has_contexts && is_of_it) return &kind;
  }
  return nullptr;
}
constexpr std::size_t kLongestLine = 64 * 1024;

/// "5 TEXT": a code and what is wrong.
Error error_of(std::string_view text) {
  const std::size_t space = text.find(' ');
  const auto code = parse_number(text.substr(0, space));
  const std::string_view message = space == std::string_view::npos ? "" : text.substr(space + 1);
  const bool is_code = code && *code >= static_cast<std::uint64_t>(Code::Failure) &&
                       *code <= static_cast<std::uint64_t>(Code::KeyReused);
  return {is_code ? static_cast<Code>(*code) : Code::Failure, std::string(message)};
}

std::string silence_of(std::string_view server) {
  return tr_format("{} does not answer", kind_of(server)->program);
}

}  // namespace

bool is_cluster(std::string_view server) { return kind_of(server) != nullptr; }
bool is_slurm(std::string_view server) { return server == "slurm"; }

Cluster::~Cluster() { end(); }

std::string Cluster::program() const { return kind_of(server_)->program; }

void Cluster::end() {
  if (!child_.process.valid()) return;
  child_.channel = os::Fd();
  constexpr int kMost = 2000;
  pollfd ended{child_.process.get(), POLLIN, 0};
  (void)::poll(&ended, 1, kMost);
  (void)os::reap(child_);
  child_ = {};
}

void Cluster::begin_anew() {
  const std::lock_guard lock(mutex_);
  end();
  is_ready_ = false;
}

Result<os::Fd> Cluster::connect(const Silence& silence) {
  const std::lock_guard lock(mutex_);
  GF_CHECK(start(silence));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return os::errno_error("socketpair");
  }
  os::Fd ours(ends[0]);
  const os::Fd theirs(ends[1]);
  if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return os::errno_error("fcntl");
  auto sent = os::send_descriptor(child_.channel.get(), theirs.get());
  if (!sent && sent.error().code == Code::Unreachable) {  // it was killed: another one reads
    end();
    is_ready_ = false;
    GF_CHECK(start(silence));
    sent = os::send_descriptor(child_.channel.get(), theirs.get());
  }
  GF_CHECK(sent);
  return ours;
}

Result<std::string> Cluster::name_space(const Silence& silence) {
  const std::lock_guard lock(mutex_);
  GF_CHECK(start(silence));
  return name_space_;
}

Result<void> Cluster::start(const Silence& silence) {
  if (is_ready_) return {};
  const Kind& kind = *kind_of(server_);
  std::vector<std::string> argv = {GF_TRY(os::helper_program(kind.program))};
  if (kind.has_contexts) argv.insert(argv.end(), {"serve", "--channel"});
  if (server_.size() > kind.server.size()) {
    argv.insert(argv.end(), {"--context", server_.substr(kind.server.size() + 1)});
  }
  child_ = GF_TRY(os::start_child({.argv = std::move(argv), .environment = {}}));
  auto ready = wait_until_ready(silence);
  is_ready_ = ready.has_value();
  if (!ready) end();
  return ready;
}

/// Its lines are "waits TEXT", as often as it likes, and at last "ok NAMESPACE" or "error CODE
/// TEXT". What it waits for is told once, however much it says.
Result<void> Cluster::wait_until_ready(const Silence& silence) {
  std::string waits = silence_of(server_);
  const auto usual = std::chrono::steady_clock::now() + silence.usual;
  bool is_told = false;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(usual - std::chrono::steady_clock::now());
    const bool is_late = left.count() <= 0;
    if (is_late && !std::exchange(is_told, true) && silence.tell) silence.tell(waits);
    auto said = line(is_late ? silence.most : left);
    if (!said && said.error().code == Code::Timeout && !is_late) continue;
    if (!said && said.error().code == Code::Timeout) return fail(Code::Timeout, waits);
    if (!said) return std::unexpected(said.error());
    const std::string_view word = std::string_view(*said).substr(0, said->find(' '));
    const std::string rest = said->substr(std::min(word.size() + 1, said->size()));
    if (word == "error") return std::unexpected(error_of(rest));
    if (word == "waits") waits = rest;
    if (word != "ok") continue;
    name_space_ = rest;
    return {};
  }
}

/// The next one, and no byte more.
Result<std::string> Cluster::line(std::chrono::milliseconds most) {
  std::string line;
  while (line.size() < kLongestLine) {
    pollfd wanted{child_.channel.get(), POLLIN, 0};
    if (::poll(&wanted, 1, static_cast<int>(most.count())) == 0) {
      return fail(Code::Timeout, tr("no answer in time"));
    }
    char c = 0;
    const ssize_t got = ::recv(child_.channel.get(), &c, 1, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    if (c == '\n') return line;
    line += c;
  }
  return fail(Code::Unreachable,
              tr_format("{} ended before it had read the cluster", kind_of(server_)->program));
}

}  // namespace gflow::client

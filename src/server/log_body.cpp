// SPDX-License-Identifier: Apache-2.0
#include "server/log_body.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"

namespace gflow::server {
namespace {

constexpr std::uint64_t kPiece = 64 * 1024;
/// How far back the last lines are looked for.
constexpr std::uint64_t kMostBack = 64 * 1024 * 1024;

/// Up to `most` bytes; fewer at the end of the file.
Result<std::string> read_at(const os::Fd& file, std::uint64_t at, std::uint64_t most) {
  std::string bytes(most, '\0');
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
  if (got < 0) return os::errno_error("read a log");
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

}  // namespace

Result<os::Fd> open_log(const LogFile& file) {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  os::Fd log = GF_TRY(os::open_file(file.path, kFlags));
  struct stat facts{};
  if (::fstat(log.get(), &facts) != 0) return os::errno_error("stat", file.path);
  const bool is_theirs =
      facts.st_uid == file.owner || (::geteuid() != 0 && facts.st_uid == ::geteuid());
  if (S_ISREG(facts.st_mode) && is_theirs) return log;
  return fail(Code::Permission,
              tr_format("'{}' is not a file of the user whose job it is: gflowd does not read it",
                        printable(file.path)));
}

Result<std::uint64_t> size_of(const os::Fd& file) {
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return os::errno_error("stat a log");
  return static_cast<std::uint64_t>(facts.st_size);
}

/// What is read next. On the reader's thread, but for what the mutex guards.
struct LogBody::State {
  State(LogReader& from, LogFile file, os::Fd opened, LogPart wanted)
      : reader(from), where(std::move(file)), log(std::move(opened)), part(wanted) {}

  Piece read(const std::shared_ptr<State>& self, Then& then);
  Piece read_on(bool is_over);
  Result<bool> look_back();
  void wait(const std::shared_ptr<State>& self, Then then, std::uint64_t seen);
  void wake();

  LogReader& reader;
  LogFile where;
  os::Fd log;
  LogPart part;
  std::uint64_t at = part.first;
  bool found_lines = false;        ///< `at` is where the last lines begin
  std::uint64_t lines_left = 0;    ///< of those looked for
  std::uint64_t end_of_lines = 0;  ///< how long the file was when the search began
  bool searching = false;

  std::mutex mutex;
  bool over = false;          ///< guarded by the mutex, as all below
  std::uint64_t changes = 0;  ///< how often there may be something new
  Then waiting;
  std::shared_ptr<void> growth;
};

/// Goes back a piece in search of the beginning of the last lines; whether it is found.
Result<bool> LogBody::State::look_back() {
  if (!std::exchange(searching, true)) {
    at = end_of_lines = GF_TRY(size_of(log));
    lines_left = *part.last_lines;
  }
  const bool is_far = end_of_lines - at >= kMostBack;
  if (at == 0 || lines_left == 0 || is_far) return true;
  const std::uint64_t begin = at - std::min(at, kPiece);
  const std::string block = GF_TRY(read_at(log, begin, at - begin));
  for (std::size_t i = block.size(); i-- > 0;) {
    // The line end at the very end of the file ends the last line, it does not begin one.
    if (block[i] != '\n' || begin + i + 1 == end_of_lines) continue;
    if (--lines_left > 0) continue;
    at = begin + i + 1;
    return true;
  }
  at = begin;
  return at == 0;
}

/// The next bytes; empty if there are none yet.
Piece LogBody::State::read_on(bool is_over) {
  if (part.last_lines && !found_lines) {
    const auto found = look_back();
    if (!found) return cut_piece();
    found_lines = *found;
    return piece_of({});
  }
  const std::uint64_t most = part.size ? std::min(kPiece, part.first + *part.size - at) : kPiece;
  if (most == 0) return last_piece();
  auto bytes = read_at(log, at, most);
  if (!bytes) return cut_piece();
  at += bytes->size();
  if (!bytes->empty()) return piece_of(std::move(*bytes));
  // What had a length ended before, or ends before where it was read to: it was made shorter.
  const auto size = size_of(log);
  if (part.size || !size || *size < at) return cut_piece();
  return part.follow && !is_over ? piece_of({}) : last_piece();
}

/// One step. Takes `then` where it has to wait; what is returned is empty in that case.
Piece LogBody::State::read(const std::shared_ptr<State>& self, Then& then) {
  std::uint64_t seen = 0;
  bool is_over = false;
  {
    const std::scoped_lock lock(mutex);
    seen = changes;
    is_over = over;
  }
  if (!log.valid()) {
    auto opened = open_log(where);
    if (!opened && opened.error().code != Code::NotFound) return cut_piece();
    if (!opened && is_over) return last_piece();
    if (!opened) {
      wait(self, std::exchange(then, {}), seen);
      return piece_of({});
    }
    log = std::move(*opened);
  }
  const bool is_searching = part.last_lines && !found_lines;
  Piece piece = read_on(is_over);
  const bool is_at_end = piece.bytes && piece.bytes->empty() && !is_searching;
  if (is_at_end) wait(self, std::exchange(then, {}), seen);
  return piece;
}

void LogBody::State::wait(const std::shared_ptr<State>& self, Then then, std::uint64_t seen) {
  std::shared_ptr<void> watch;
  if (log.valid()) {
    auto grows = reader.on_growth(log.get(), [left = std::weak_ptr(self)] {
      if (const auto state = left.lock()) state->wake();
    });
    // Without it nobody would know of what comes: the client asks again for the rest.
    if (!grows) return then(cut_piece());
    watch = std::move(*grows);
  }
  // It may have grown before it was watched.
  const auto size = log.valid() ? size_of(log) : Result<std::uint64_t>(0);
  {
    const std::scoped_lock lock(mutex);
    if (changes == seen && size && *size == at) {
      waiting = std::move(then);
      growth = std::move(watch);
      return;
    }
  }
  then(piece_of({}));
}

void LogBody::State::wake() {
  Then then;
  std::shared_ptr<void> watch;
  {
    const std::scoped_lock lock(mutex);
    ++changes;
    then = std::exchange(waiting, {});
    watch = std::exchange(growth, {});
  }
  if (then) then(piece_of({}));
}

LogBody::LogBody(std::shared_ptr<LogReader> reader, LogFile where, os::Fd file, LogPart part)
    : reader_(std::move(reader)),
      state_(std::make_shared<State>(*reader_, std::move(where), std::move(file), part)) {}

LogBody::~LogBody() {
  const std::scoped_lock lock(state_->mutex);
  state_->waiting = {};
}

void LogBody::next(Then then) {
  reader_->run(state_->where.owner, [state = state_, then = std::move(then)]() mutable {
    Piece piece = state->read(state, then);
    if (then) then(std::move(piece));
  });
}

void LogBody::changed() { state_->wake(); }

void LogBody::ended() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->over = true;
  }
  state_->wake();
}

}  // namespace gflow::server

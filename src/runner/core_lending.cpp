// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "os/file.h"
#include "runner/core.h"

/// Attempts that lend their GPU: it is taken from them as from those that are suspended, but they
/// run on, and the first program that wants it says so. The library in it can only say so of
/// programs that load it: gflow-park takes nothing while there is another.
namespace gflow::runner {
namespace {

/// The account is looked at so often, too: who says so may have no descriptor for the pipe.
constexpr std::chrono::seconds kBetweenLooks{2};

}  // namespace

void Runner::Core::lend(Key key, Memory most) {
  const auto found = attempts.find(key);
  if (found == attempts.end()) return;
  found->second.parking.stands = true;
  found->second.parking.lends = true;
  found->second.parking.most = most;
  bring_on_parking(found->second);
}

/// Listened to before it is told: what is wanted from then on is heard. What was wanted since this
/// was begun is not forgotten when it is begun once more.
Result<void> Runner::Core::begin_lending(Watched& watched) {
  const bool is_begun = !watched.parking.is_fresh;
  if (!watched.parking.wanted.valid()) {
    os::Fd pipe = GF_TRY(watched.files.open_wanted());
    if (!listen(watched, Source::Wanted, pipe))
      return os::errno_error("watch the pipe of an account");
    watched.parking.wanted = std::move(pipe);
  }
  if (!is_begun || !watched.files.is_wanted()) GF_CHECK(watched.files.tell_lent(true));
  watch_lent(watched);
  return {};
}

/// After a restart of the daemon, too: what was wanted meanwhile nobody heard.
void Runner::Core::watch_lent(Watched& watched) {
  if (!watched.parking.lends) return;
  if (watched.files.is_wanted()) return wanted(watched);
  look_at(watched, LookFor::Wanted, ExpectedEnd::Clock::now() + kBetweenLooks);
  os::Fd& pipe = watched.parking.wanted;
  if (pipe.valid()) return;
  auto opened = watched.files.open_wanted();
  // Where it cannot be heard it is had back.
  if (!opened || !listen(watched, Source::Wanted, *opened)) return wanted(watched);
  pipe = std::move(*opened);
  if (watched.files.is_wanted()) wanted(watched);
}

/// Once: who may write there may go on for ever.
void Runner::Core::wanted(Watched& watched) {
  watched.parking.wanted.reset();
  look_at(watched, LookFor::Wanted, std::nullopt);
  report(Wanted{watched.job, watched.attempt});
}

/// What its programs are told stays: they wait until it has its GPU.
void Runner::Core::stop_listening(Watched& watched) {
  watched.parking.lends = false;
  watched.parking.wanted.reset();
  look_at(watched, LookFor::Wanted, std::nullopt);
}

/// It has its GPU, whoever lent it: its programs wait for that word.
Result<void> Runner::Core::tell_own(Watched& watched) {
  if (watched.files.is_told_lent()) GF_CHECK(watched.files.tell_lent(false));
  stop_listening(watched);
  return {};
}

}  // namespace gflow::runner

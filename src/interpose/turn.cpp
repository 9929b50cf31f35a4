// SPDX-License-Identifier: Apache-2.0
#include "interpose/turn.h"

#include <fcntl.h>

namespace gflow::interpose {
namespace {

/// Each place has two stretches of the file: of who uses the device, and of those in line for it.
constexpr off_t use_of(std::size_t place) { return static_cast<off_t>(2 * place) * Line::kStretch; }
constexpr off_t line_of(std::size_t place) { return use_of(place) + Line::kStretch; }
constexpr off_t kGangs = use_of(Turn::kPlaces);
constexpr off_t kBiding = line_of(Turn::kPlaces);

}  // namespace

Turn::Turn(const char* directory, const char* name)
    : file_(directory, name),
      line_(file_, line_of(0)),
      gangs_(file_, kGangs),
      biding_(file_, kBiding) {}

void Turn::go_to(std::size_t place) {
  place_ = place;
  line_.move_to(line_of(place));
}

bool Turn::try_take() {
  if (!file_.is_there()) return true;
  return !line_.is_one_before_own() && try_take_first();
}

bool Turn::try_take_first() {
  if (!file_.is_there()) return true;
  return file_.set(use_of(place_), line_.own().value_or(0) + 1, F_WRLCK);
}

/// One byte more of it.
void Turn::renew() {
  if (file_.is_there()) (void)file_.set(use_of(place_), line_.own().value_or(0) + 2, F_WRLCK);
}

Turn::Holder Turn::holder() {
  const auto found = file_.find(use_of(place_), use_of(place_) + 1);
  return found ? Holder{.process = found->process, .bytes = found->bytes} : Holder{};
}

void Turn::give_back() {
  if (!file_.is_there()) return;
  (void)file_.set(use_of(place_), Line::kStretch, F_UNLCK);
  line_.leave();
}

}  // namespace gflow::interpose

// SPDX-License-Identifier: Apache-2.0
#include "interpose/line.h"

#include <fcntl.h>

#include <algorithm>

namespace gflow::interpose {
namespace {

off_t byte_of(std::uint64_t progress) { return static_cast<off_t>(progress / Line::kStep); }
std::uint64_t progress_of(off_t byte) { return static_cast<std::uint64_t>(byte) * Line::kStep; }

}  // namespace

void Line::move_to(off_t start) {
  if (start == start_) return;
  start_ = start;
  own_.reset();
  passed_count_ = 0;
}

std::optional<off_t> Line::own() {
  if (!file_.is_there() || stood_in_ != file_.generation()) own_.reset();
  return own_;
}

void Line::stand(std::uint64_t progress) {
  const off_t byte = byte_of(progress);
  if (!file_.is_there() || own() == byte) return;
  leave();
  (void)file_.set(start_ + byte, 1, F_RDLCK);
  own_ = byte;
  stood_in_ = file_.generation();
}

void Line::leave() {
  if (const auto byte = own()) (void)file_.set(start_ + *byte, 1, F_UNLCK);
  own_.reset();
}

/// Calls `visit` with each stretch between those who were passed, until it is true.
template <typename Visit>
bool Line::any_waited_for(off_t from, off_t to, Visit visit) const {
  for (std::size_t at = 0; at < passed_count_ && from < to; ++at) {
    if (passed_[at] < from) continue;
    if (visit(from, std::min(passed_[at], to))) return true;
    from = passed_[at] + 1;
  }
  return from < to && visit(from, to);
}

void Line::forget_gone() {
  std::size_t count = 0;
  for (std::size_t at = 0; at < passed_count_; ++at) {
    const off_t byte = start_ + passed_[at];
    if (file_.find(byte, byte + 1)) passed_[count++] = passed_[at];
  }
  passed_count_ = count;
}

/// Of those who are waited for.
std::optional<off_t> Line::first_byte(off_t from) {
  forget_gone();
  std::optional<off_t> first;
  (void)any_waited_for(from, kStretch, [&](off_t begin, off_t end) {
    const auto found = file_.first(start_ + begin, start_ + end);
    if (found) first = *found - start_;
    return found.has_value();
  });
  return first;
}

std::optional<std::uint64_t> Line::first() {
  const auto byte = first_byte(0);
  return byte ? std::optional(progress_of(*byte)) : std::nullopt;
}

std::optional<std::uint64_t> Line::first_but(Line& other) {
  auto byte = first_byte(0);
  while (byte && other.file_.find(other.start_ + *byte, other.start_ + *byte + 1)) {
    byte = first_byte(*byte + 1);
  }
  return byte ? std::optional(progress_of(*byte)) : std::nullopt;
}

bool Line::is_before(off_t byte) {
  forget_gone();
  return any_waited_for(0, byte, [&](off_t begin, off_t end) {
    return file_.find(start_ + begin, start_ + end).has_value();
  });
}

bool Line::is_one_before(std::uint64_t progress) { return is_before(byte_of(progress)); }
bool Line::is_one_before_own() { return own_ && is_before(*own_); }
bool Line::is_anyone() { return is_before(kStretch); }

void Line::pass_first() {
  if (const auto byte = first_byte(0)) pass(progress_of(*byte));
}

/// In its place. Of too many the last one is waited for anew.
void Line::pass(std::uint64_t progress) {
  const off_t byte = byte_of(progress);
  std::size_t at = passed_count_ == kMostPassed ? passed_count_ - 1 : passed_count_++;
  for (; at > 0 && passed_[at - 1] > byte; --at) passed_[at] = passed_[at - 1];
  passed_[at] = byte;
}

}  // namespace gflow::interpose

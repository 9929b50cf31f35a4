// SPDX-License-Identifier: Apache-2.0
#include "interpose/line.h"

#include <fcntl.h>

#include <algorithm>

namespace gflow::interpose {
namespace {

/// One for each 65.5 microseconds of progress.
constexpr int kProgressBits = 16;
off_t byte_of(std::uint64_t progress) { return static_cast<off_t>(progress >> kProgressBits); }
std::uint64_t progress_of(off_t byte) { return static_cast<std::uint64_t>(byte) << kProgressBits; }

}  // namespace

void Line::move_to(off_t start) {
  if (start == start_) return;
  start_ = start;
  own_.reset();
  passed_from_ = passed_to_ = 0;
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

std::optional<off_t> Line::first_byte(off_t from, off_t to) {
  const auto found = file_.first(start_ + from, start_ + to);
  return found ? std::optional(*found - start_) : std::nullopt;
}

/// Of those who are waited for.
std::optional<off_t> Line::first_byte() {
  if (!file_.find(start_ + passed_from_, start_ + passed_to_)) passed_from_ = passed_to_ = 0;
  const auto first = first_byte(0, passed_from_);
  return first ? first : first_byte(passed_to_, kStretch);
}

std::optional<std::uint64_t> Line::first() {
  const auto byte = first_byte();
  return byte ? std::optional(progress_of(*byte)) : std::nullopt;
}

std::optional<std::uint64_t> Line::first_but(Line& other) {
  auto byte = first_byte();
  while (byte && other.file_.find(other.start_ + *byte, other.start_ + *byte + 1)) {
    const off_t after = *byte + 1;
    byte = first_byte(std::max(after, after > passed_from_ ? passed_to_ : 0), kStretch);
  }
  return byte ? std::optional(progress_of(*byte)) : std::nullopt;
}

bool Line::is_one_before_but(std::uint64_t progress, Line& other) {
  const auto first = first_but(other);
  return first && byte_of(*first) < byte_of(progress);
}

bool Line::is_before(off_t byte) {
  return file_.find(start_, start_ + std::min(byte, passed_from_)) ||
         file_.find(start_ + passed_to_, start_ + byte);
}

bool Line::is_one_before(std::uint64_t progress) { return is_before(byte_of(progress)); }
bool Line::is_one_before_own() { return own_ && is_before(*own_); }
bool Line::is_anyone() { return is_before(kStretch); }

void Line::pass_first() {
  const auto byte = first_byte();
  if (!byte) return;
  passed_from_ = passed_to_ == 0 ? *byte : std::min(passed_from_, *byte);
  passed_to_ = std::max(passed_to_, *byte + 1);
}

}  // namespace gflow::interpose

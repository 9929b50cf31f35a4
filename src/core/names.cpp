// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "core/requests.h"

namespace gflow {
namespace {

constexpr std::size_t kLongestName = 128;

constexpr std::array<std::string_view, 64> kAdjectives = {
    "able",   "agile",  "amber",  "ample",  "azure",  "bold",   "brave",   "bright",
    "brisk",  "calm",   "candid", "clever", "cobalt", "cosmic", "crisp",   "curious",
    "daring", "deep",   "eager",  "early",  "fair",   "fancy",  "fleet",   "fresh",
    "gentle", "glad",   "golden", "grand",  "green",  "happy",  "hardy",   "honest",
    "humble", "jolly",  "keen",   "kind",   "light",  "lively", "lucid",   "lucky",
    "mellow", "merry",  "mighty", "modest", "neat",   "noble",  "patient", "plain",
    "polite", "proud",  "quick",  "quiet",  "rapid",  "ready",  "royal",   "sharp",
    "silver", "steady", "sunny",  "swift",  "tidy",   "vivid",  "warm",    "wise"};
constexpr std::array<std::string_view, 64> kNouns = {
    "acorn",  "anchor",  "arrow",  "aspen",   "badger", "beacon",  "birch",  "breeze",
    "bridge", "brook",   "canyon", "cedar",   "cliff",  "cloud",   "comet",  "coral",
    "crane",  "creek",   "delta",  "dune",    "eagle",  "ember",   "falcon", "fern",
    "field",  "forest",  "fox",    "galaxy",  "garden", "glacier", "harbor", "hawk",
    "heron",  "hill",    "island", "lagoon",  "lake",   "lark",    "lynx",   "maple",
    "meadow", "meteor",  "moon",   "moss",    "ocean",  "orchid",  "otter",  "owl",
    "pebble", "pine",    "planet", "prairie", "quartz", "rain",    "reef",   "river",
    "robin",  "sparrow", "spruce", "star",    "stone",  "tiger",   "valley", "willow"};

/// Spreads neighbouring numbers over all 64 bits (the finalizer of splitmix64, Steele et al. 2014).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

std::string made_up_name(std::uint64_t seed) {
  const std::uint64_t bits = mixed(seed);
  return fmt::format("{}-{}-{:04}",
                     kAdjectives.at(bits % kAdjectives.size()),
                     kNouns.at((bits >> 8) % kNouns.size()),
                     (bits >> 16) % 10'000);
}

Result<std::string> check_name(std::string_view name) {
  if (trim(name).empty()) return fail(Code::Usage, tr("a job name cannot be empty"));
  if (const std::size_t length = utf8::length(name); length > kLongestName) {
    return fail(
        Code::Usage,
        tr_format("a job name has at most {} characters, this one has {}", kLongestName, length));
  }
  if (const auto unseen = first_unseen(name)) {
    return fail(Code::Usage,
                tr_format("a job name has only characters that can be seen, not U+{:04X}",
                          static_cast<std::uint32_t>(*unseen)));
  }
  if (!is_utf8(name)) {
    return fail(Code::Usage, tr_format("'{}' is not a job name: it is not UTF-8", printable(name)));
  }
  return std::string(name);
}

}  // namespace gflow

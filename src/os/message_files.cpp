// SPDX-License-Identifier: Apache-2.0
#include "os/message_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "os/file.h"
#include "os/user.h"

namespace gflow::os {

namespace {

/// A catalogue and the bytes it reads.
struct Loaded {
  std::string bytes;
  MessageCatalogue catalogue;
};

/// A name such as zh_CN and never a path, whoever asks.
bool is_language(std::string_view name) {
  constexpr std::size_t kLongest = 16;
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

}  // namespace

const MessageCatalogue* messages_of(std::string_view language) {
  static std::mutex mutex;
  static std::map<std::string, Loaded, std::less<>> loaded;
  if (!is_language(language)) return nullptr;
  const std::lock_guard lock(mutex);
  if (const auto known = loaded.find(language); known != loaded.end()) {
    return &known->second.catalogue;
  }
  auto bytes = read_file(
      fmt::format("{}/../share/locale/{}/LC_MESSAGES/gflow.mo", program_directory(), language));
  if (!bytes) return nullptr;
  // In its place before it is read: it must not move afterwards.
  Loaded& entry = loaded.try_emplace(std::string(language)).first->second;
  entry.bytes = std::move(*bytes);
  const auto catalogue = MessageCatalogue::read(entry.bytes);
  if (catalogue) entry.catalogue = *catalogue;
  return &entry.catalogue;
}

}  // namespace gflow::os

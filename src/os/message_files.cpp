// SPDX-License-Identifier: Apache-2.0
#include "os/message_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "base/text.h"
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

std::string locale_directory() { return program_directory() + "/../share/locale"; }

std::string catalogue_path(std::string_view language) {
  return fmt::format("{}/{}/LC_MESSAGES/gflow.mo", locale_directory(), language);
}

/// Those there are catalogues of, as they were when this was asked first.
const std::vector<std::string>& languages() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> names =
        names_in(locale_directory()).value_or(std::vector<std::string>());
    std::erase_if(names, [](const std::string& name) { return !is_file(catalogue_path(name)); });
    std::ranges::sort(names);
    return names;
  }();
  return found;
}

/// "zh" of "zh_CN".
std::string_view primary_of(std::string_view language) {
  return language.substr(0, language.find('_'));
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
  auto bytes = read_file(catalogue_path(language));
  if (!bytes) return nullptr;
  // In its place before it is read: it must not move afterwards.
  Loaded& entry = loaded.try_emplace(std::string(language)).first->second;
  entry.bytes = std::move(*bytes);
  const auto catalogue = MessageCatalogue::read(entry.bytes);
  if (catalogue) entry.catalogue = *catalogue;
  return &entry.catalogue;
}

const MessageCatalogue* messages_like(std::string_view language) {
  std::string wanted = to_lower(language);
  std::ranges::replace(wanted, '-', '_');
  const std::string* like = nullptr;
  for (const std::string& name : languages()) {
    const std::string lower = to_lower(name);
    if (lower == wanted) return messages_of(name);
    if (like == nullptr && primary_of(lower) == primary_of(wanted)) like = &name;
  }
  return like == nullptr ? nullptr : messages_of(*like);
}

}  // namespace gflow::os

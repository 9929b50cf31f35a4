// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gflow {

/// A catalogue as msgfmt writes it: its messages sorted, tables first, each text ending in NUL.
inline std::string catalogue_bytes(const std::map<std::string, std::string>& messages) {
  constexpr std::uint32_t kHead = 28;
  std::string numbers;
  const auto add = [](std::string& to, std::size_t number) {
    const auto value = static_cast<std::uint32_t>(number);
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::size_t table = messages.size() * 8;
  std::string texts;
  std::string english;
  std::string translated;
  for (const auto& [message, translation] : messages) {
    add(english, message.size());
    add(english, kHead + 2 * table + texts.size());
    texts += message + '\0';
    add(translated, translation.size());
    add(translated, kHead + 2 * table + texts.size());
    texts += translation + '\0';
  }
  for (const std::size_t number : {std::size_t{0x950412de},
                                   std::size_t{0},
                                   messages.size(),
                                   std::size_t{kHead},
                                   kHead + table,
                                   std::size_t{0},
                                   std::size_t{0}}) {
    add(numbers, number);
  }
  return numbers + english + translated + texts;
}

}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/memory.h"
#include "base/result.h"

namespace gflow::config {

/// A YAML value with the line it stands on. Everything that is not a list or a map is text.
struct Yaml {
  struct Entry;
  int line = 0;  ///< from 1
  std::variant<std::monostate, std::string, std::vector<Yaml>, std::vector<Entry>> value;
};
struct Yaml::Entry {
  std::string key;
  Yaml value;
};

/// Limits of a document: a machine file needs far less, and a file that is no machine file stops
/// here.
constexpr Memory kMaxYamlText = Memory::mib(1);
constexpr int kMaxYamlDepth = 16;
constexpr int kMaxYamlValues = 100'000;

/// Reads one document. Errors: Code::Usage with "FILE:LINE: ..." for what is not YAML, for a key
/// given twice and for a document over the limits (an alias counts as often as it is used).
[[nodiscard]] Result<Yaml> read_yaml(const std::string& text, const std::string& file);

struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

/// A map read key by key. Every error says file, line and the path of the key.
class Fields {
 public:
  /// Errors: it is no map, or has a key that is not among `known`, with the nearest one.
  static Result<Fields> of(const Yaml& node,
                           std::string file,
                           std::string path,
                           const std::vector<std::string>& known);

  /// Null if the key is not there or has no value.
  [[nodiscard]] const Yaml* find(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string>> text(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> number(std::string_view key, Range range) const;
  /// As parse_memory(), and "0".
  [[nodiscard]] Result<std::optional<Memory>> memory(std::string_view key) const;
  /// A list; empty if the key is not there.
  [[nodiscard]] Result<std::vector<Yaml>> list(std::string_view key) const;
  /// A list of texts.
  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const;
  /// The path of a key as errors name it: "gpus[2].memory_total".
  [[nodiscard]] std::string path_of(std::string_view key) const;
  [[nodiscard]] const std::string& file() const { return file_; }
  /// An error at a key, or at the map itself if the key is not there.
  [[nodiscard]] std::unexpected<Error> error(std::string_view key, std::string_view what) const;

 private:
  Fields(std::string file, std::string path, int line)
      : file_(std::move(file)), path_(std::move(path)), line_(line) {}
  std::string file_;
  std::string path_;
  int line_;
  std::vector<Yaml::Entry> entries_;
};

}  // namespace gflow::config

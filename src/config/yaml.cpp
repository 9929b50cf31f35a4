// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::config {
namespace {

std::unexpected<Error> error_at(const std::string& file, int line, std::string_view what) {
  return fail(Code::Usage, fmt::format("{}:{}: {}", printable(file), line, what));
}

/// Copies yaml-cpp's tree, counting as it goes: aliases are shared there and expanded here.
class Copier {
 public:
  explicit Copier(const std::string& file) : file_(file) {}

  Result<Yaml> copy(const YAML::Node& node, int depth) {
    const int line = std::max(0, node.Mark().line) + 1;
    if (++values_ > kMaxYamlValues) return error_at(file_, line, tr("too many values"));
    if (depth > kMaxYamlDepth) return error_at(file_, line, tr("too deeply nested"));
    if (node.IsScalar()) return Yaml{line, node.Scalar()};
    if (node.IsSequence()) return copy_list(node, line, depth);
    if (node.IsMap()) return copy_map(node, line, depth);
    return Yaml{line, std::monostate()};
  }

 private:
  Result<Yaml> copy_list(const YAML::Node& node, int line, int depth) {
    std::vector<Yaml> items;
    for (const auto& item : node) items.push_back(GF_TRY(copy(item, depth + 1)));
    return Yaml{line, std::move(items)};
  }

  Result<Yaml> copy_map(const YAML::Node& node, int line, int depth) {
    std::vector<Yaml::Entry> entries;
    for (const auto& entry : node) {
      const YAML::Node& key = entry.first;
      const int at = std::max(0, key.Mark().line) + 1;
      if (!key.IsScalar()) return error_at(file_, at, tr("a key has to be a word"));
      const std::string& name = key.Scalar();
      if (std::ranges::find(entries, name, &Yaml::Entry::key) != entries.end()) {
        return error_at(file_, at, tr_format("'{}' is given twice", printable(name)));
      }
      Yaml copied = GF_TRY(copy(entry.second, depth + 1));
      copied.line = at;  // the key's line is what a person looks for
      entries.push_back({name, std::move(copied)});
    }
    return Yaml{line, std::move(entries)};
  }

  const std::string& file_;
  int values_ = 0;
};

}  // namespace

Result<Yaml> read_yaml(const std::string& text, const std::string& file) {
  if (text.size() > static_cast<std::size_t>(kMaxYamlText.bytes)) {
    return error_at(file, 1, tr_format("larger than {}", memory_text(kMaxYamlText)));
  }
  if (!is_utf8(text)) return error_at(file, 1, tr("not UTF-8 text"));
  try {
    return Copier(file).copy(YAML::Load(text), 1);
  } catch (const YAML::Exception& problem) {
    return error_at(file, std::max(0, problem.mark.line) + 1, printable(problem.msg));
  }
}

Result<Fields> Fields::of(const Yaml& node,
                          std::string file,
                          std::string path,
                          const std::vector<std::string>& known) {
  Fields fields(std::move(file), std::move(path), node.line);
  const auto* entries = std::get_if<std::vector<Yaml::Entry>>(&node.value);
  if (entries == nullptr) {
    return fields.error("", tr_format("has to be a map with {}", join(known, ", ")));
  }
  fields.entries_ = *entries;
  for (const Yaml::Entry& entry : *entries) {
    if (std::ranges::find(known, entry.key) != known.end()) continue;
    const auto near = nearest(entry.key, known);
    const std::string way_out = near ? tr_format("unknown key; did you mean '{}'?", *near)
                                     : tr_format("unknown key; the keys are {}", join(known, ", "));
    return fields.error(entry.key, way_out);
  }
  return fields;
}

const Yaml* Fields::find(std::string_view key) const {
  const auto found = std::ranges::find(entries_, key, &Yaml::Entry::key);
  if (found == entries_.end() || std::holds_alternative<std::monostate>(found->value.value)) {
    return nullptr;
  }
  return &found->value;
}

Result<std::optional<std::string>> Fields::text(std::string_view key) const {
  const Yaml* found = find(key);
  if (found == nullptr) return std::optional<std::string>();
  const auto* text = std::get_if<std::string>(&found->value);
  if (text == nullptr) return error(key, tr("has to be one word or number"));
  return *text;
}

Result<std::optional<std::int64_t>> Fields::number(std::string_view key, Range range) const {
  const auto text = GF_TRY(this->text(key));
  if (!text) return std::optional<std::int64_t>();
  const auto number = parse_number(*text);
  if (!number || *number > static_cast<std::uint64_t>(range.most) ||
      static_cast<std::int64_t>(*number) < range.least) {
    return error(
        key,
        tr_format(
            "'{}' is not a whole number from {} to {}", printable(*text), range.least, range.most));
  }
  return static_cast<std::int64_t>(*number);
}

Result<std::optional<Memory>> Fields::memory(std::string_view key) const {
  const auto text = GF_TRY(this->text(key));
  if (!text) return std::optional<Memory>();
  if (*text == "0") return Memory{};
  const auto memory = parse_memory(*text);
  if (!memory) return error(key, memory.error().message);
  return *memory;
}

Result<std::vector<Yaml>> Fields::list(std::string_view key) const {
  const Yaml* found = find(key);
  if (found == nullptr) return std::vector<Yaml>();
  const auto* items = std::get_if<std::vector<Yaml>>(&found->value);
  if (items == nullptr) return error(key, tr("has to be a list"));
  return *items;
}

Result<std::vector<std::string>> Fields::texts(std::string_view key) const {
  std::vector<std::string> words;
  for (const Yaml& item : GF_TRY(list(key))) {
    const auto* word = std::get_if<std::string>(&item.value);
    if (word == nullptr) return error(key, tr("has to be a list of words"));
    words.push_back(*word);
  }
  return words;
}

std::string Fields::path_of(std::string_view key) const {
  if (path_.empty() || key.empty()) return path_ + std::string(key);
  return fmt::format("{}.{}", path_, key);
}

std::unexpected<Error> Fields::error(std::string_view key, std::string_view what) const {
  const auto found = std::ranges::find(entries_, key, &Yaml::Entry::key);
  const int line = found == entries_.end() ? line_ : found->value.line;
  const std::string path = printable(path_of(key));
  return error_at(
      file_, line, path.empty() ? std::string(what) : fmt::format("{}: {}", path, what));
}

}  // namespace gflow::config

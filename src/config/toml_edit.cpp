// SPDX-License-Identifier: Apache-2.0
#include "config/toml_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "config/gflow_toml.h"
#include "config/toml.h"

namespace gflow::config {
namespace {

/// A text whose bytes are found by line and column, as toml++ counts them: columns are characters.
class Lines {
 public:
  explicit Lines(const std::string& text) : text_(text) {
    starts_.push_back(0);
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '\n') starts_.push_back(at + 1);
    }
  }

  [[nodiscard]] std::size_t start(std::size_t line) const {
    return line <= starts_.size() ? starts_[line - 1] : text_.size();
  }
  [[nodiscard]] std::size_t offset(const toml::source_position& position) const {
    std::size_t at = start(position.line);
    for (std::size_t column = 1; column < position.column && at < text_.size(); ++column) {
      ++at;
      while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xC0U) == 0x80U) ++at;
    }
    return at;
  }
  [[nodiscard]] std::string_view line(std::size_t line) const {
    const std::size_t from = start(line);
    return std::string_view(text_).substr(from, start(line + 1) - from);
  }
  [[nodiscard]] std::string_view line_end() const { return text_.contains("\r\n") ? "\r\n" : "\n"; }

 private:
  const std::string& text_;
  std::vector<std::size_t> starts_;
};

/// As TOML writes it.
std::string toml_text(const settings::Setting& setting, const std::string& value) {
  using settings::Type;
  if (setting.type == Type::Boolean || setting.type == Type::Integer) return value;
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      text += fmt::format("\\u{:04X}", byte);
    } else {
      text += c;
    }
  }
  return text + '"';
}

Result<toml::table> parse(const std::string& text, const std::string& path) {
  auto parsed = parse_toml(text, path);
  if (!parsed) return fail(Code::Usage, problem_text(parsed.error()));
  return std::move(*parsed);
}

/// Where a setting stands; null if it does not.
const toml::node* node_of(const toml::table& table, const settings::Setting& setting) {
  const toml::node* section = table.get(setting.section);
  const toml::table* keys = section == nullptr ? nullptr : section->as_table();
  return keys == nullptr ? nullptr : keys->get(setting.name);
}

bool is_header(std::string_view line, std::string_view name) {
  line = trim(line.substr(0, line.find('#')));
  return line.starts_with('[') && line.ends_with(']') &&
         trim(line.substr(1, line.size() - 2)) == name;
}

/// A table with a header of its own, whose lines are not the setting's alone.
bool is_block(const toml::node& node) {
  const toml::table* table = node.as_table();
  return table != nullptr && !table->is_inline();
}

std::unexpected<Error> only_by_hand(const std::string& path, const toml::node& node) {
  return fail(Code::Usage,
              problem_text({path,
                            static_cast<int>(node.source().begin.line),
                            tr("this is a table of its own; change it there with an editor")}));
}

/// The last line of what a section has, its sub-tables with headers of their own left out.
std::size_t last_line(const toml::table& section) {
  std::size_t last = section.source().begin.line;
  for (const auto& [name, value] : section) {
    if (!is_block(value)) last = std::max<std::size_t>(last, value.source().end.line);
  }
  return last;
}

std::string with_new_line(const std::string& text,
                          const toml::table& table,
                          const settings::Setting& setting,
                          const std::string& value) {
  const Lines lines(text);
  const std::string end(lines.line_end());
  const std::string assignment = fmt::format("{} = {}{}", setting.name, value, end);
  const toml::node* node = table.get(setting.section);
  const toml::table* section = node == nullptr ? nullptr : node->as_table();
  const std::string gap = text.empty() || text.ends_with('\n') ? "" : end;
  if (section == nullptr || !is_header(lines.line(section->source().begin.line), setting.section)) {
    return text + gap + (text.empty() ? "" : end) +
           fmt::format("[{}]{}{}", setting.section, end, assignment);
  }
  const std::size_t line = last_line(*section);
  const std::string_view before = lines.line(line);
  const std::string indent(before.substr(0, before.find_first_not_of(" \t")));
  const std::size_t at = lines.start(line + 1);
  return text.substr(0, at) + (at == text.size() ? gap : "") + indent + assignment +
         text.substr(at);
}

/// Whether `after` says what `before` says but for this setting, which has this value. Before, the
/// file may have been wrong.
Result<void> check_change(const Result<settings::Settings>& before,
                          const settings::Settings& after,
                          const settings::Setting& setting,
                          const std::string& value) {
  for (const settings::Setting& one : settings::table()) {
    const bool is_it = one.full_name() == setting.full_name();
    if (!is_it && !before) continue;
    if (one.write(after) == (is_it ? value : one.write(*before))) continue;
    return fail(Code::Usage,
                tr_format("{} cannot be changed without changing {}; use an editor",
                          setting.full_name(),
                          one.full_name()));
  }
  return {};
}

Result<std::string> checked(const std::string& text,
                            std::string changed,
                            const std::string& path,
                            const settings::Setting& setting,
                            const std::string& value) {
  const settings::Settings after = GF_TRY(read_gflow_toml(changed, path));
  GF_CHECK(check_change(read_gflow_toml(text, path), after, setting, value));
  return changed;
}

}  // namespace

Result<std::string> set_in_toml(const std::string& text,
                                const std::string& path,
                                const settings::Setting& setting,
                                const std::string& value) {
  const toml::table table = GF_TRY(parse(text, path));
  settings::Settings wanted;
  if (auto done = setting.read(wanted, value); !done) {
    return with_context(done.error(), setting.full_name());
  }
  const std::string written = toml_text(setting, value);
  const toml::node* node = node_of(table, setting);
  std::string changed;
  if (node == nullptr) {
    changed = with_new_line(text, table, setting, written);
  } else if (is_block(*node)) {
    return only_by_hand(path, *node);
  } else {
    const Lines lines(text);
    const std::size_t from = lines.offset(node->source().begin);
    changed = text.substr(0, from) + written + text.substr(lines.offset(node->source().end));
  }
  return checked(text, std::move(changed), path, setting, setting.write(wanted));
}

Result<std::string> unset_in_toml(const std::string& text,
                                  const std::string& path,
                                  const settings::Setting& setting) {
  const toml::table table = GF_TRY(parse(text, path));
  const toml::node* node = node_of(table, setting);
  if (node == nullptr) {
    return fail(Code::NotFound,
                tr_format("{} is not set in {}", setting.full_name(), printable(path)));
  }
  const Lines lines(text);
  std::size_t first = node->source().begin.line;
  std::size_t last = node->source().end.line;
  if (is_block(*node)) {
    if (!is_header(lines.line(first), setting.full_name())) return only_by_hand(path, *node);
    last = last_line(*node->as_table());
  }
  std::string changed = text.substr(0, lines.start(first)) + text.substr(lines.start(last + 1));
  return checked(text, std::move(changed), path, setting, setting.default_value());
}

}  // namespace gflow::config

// SPDX-License-Identifier: Apache-2.0
#include "cli/described.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/json_names.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/submit/values.h"
#include "command/times.h"
#include "core/request_text.h"

namespace gflow::cli {

namespace {

/// Fields whose options have another name or another form: a part of --gpus, a word of the command.
constexpr auto kOtherwiseSaid = std::to_array<std::string_view>({"gpu_share_parts",
                                                                 "gpu_share_limit_parts",
                                                                 "gpu_mode",
                                                                 "gpu_vendor",
                                                                 "gpu_models",
                                                                 "see_all",
                                                                 "selector",
                                                                 "jobs",
                                                                 "mode",
                                                                 "auto_cancel",
                                                                 "hold",
                                                                 "preemption",
                                                                 "group",
                                                                 "allocation",
                                                                 "command",
                                                                 "work_dir"});
/// Fields that gjob show has lines of its own for.
constexpr auto kOtherwiseShown = std::to_array<std::string_view>({"uid",
                                                                  "name",
                                                                  "project",
                                                                  "gpus",
                                                                  "gpu_share_parts",
                                                                  "gpu_share_limit_parts",
                                                                  "gpu_mode",
                                                                  "gpu_memory_bytes",
                                                                  "gpu_vendor",
                                                                  "gpu_models",
                                                                  "see_all",
                                                                  "cpus",
                                                                  "memory_bytes",
                                                                  "nodes",
                                                                  "selector",
                                                                  "priority",
                                                                  "time_limit_seconds",
                                                                  "grace_seconds",
                                                                  "begin",
                                                                  "jobs",
                                                                  "mode",
                                                                  "auto_cancel",
                                                                  "requeue",
                                                                  "max_retries",
                                                                  "preemption",
                                                                  "preempt_signal",
                                                                  "group",
                                                                  "max_concurrent",
                                                                  "command",
                                                                  "work_dir"});
/// Fields whose columns have another name, or that no column could hold.
constexpr auto kOtherwiseColumns = std::to_array<std::string_view>(
    {"uid", "name", "jobs", "mode", "auto_cancel", "work_dir", "time_limit_seconds"});

/// Whether there is such a row, within members that have a table of their own, too.
template <Described T>
constexpr bool has_row(std::string_view name) {
  bool is_there = false;
  each_field<T>([&](const auto& row) {
    using Value = typename std::remove_cvref_t<decltype(row)>::Value;
    if constexpr (Described<Value>) {
      is_there = is_there || has_row<Value>(name);
    } else {
      is_there = is_there || row.name == name;
    }
  });
  return is_there;
}
static_assert(std::ranges::all_of(kOtherwiseSaid, has_row<JobSpec>) &&
                  std::ranges::all_of(kOtherwiseShown, has_row<JobSpec>) &&
                  std::ranges::all_of(kOtherwiseColumns, has_row<JobSpec>),
              "an exception has to be that of a field there is");

bool is_among(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// "max-retries" for max_retries, "time-limit" for time_limit_seconds.
std::string option_name(std::string_view field) {
  std::string name = field_words(field);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string header(std::string_view field) {
  std::string name = field_words(field);
  std::ranges::replace(name, ' ', '_');
  std::ranges::transform(
      name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

std::string sentence(std::string_view clause) {
  std::string text(clause);
  if (!text.empty()) {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text + tr(".");
}

std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(const std::string& value) { return printable(value); }
std::string text_of(Memory value) { return memory_text(value); }
std::string text_of(Share value) { return share_text(value); }
std::string text_of(std::chrono::seconds value) { return duration_text(value); }
std::string text_of(WallTime value) { return local_text(value); }
std::string text_of(const std::vector<std::string>& value) { return printable(join(value, ",")); }
std::string text_of(const std::vector<Label>& value) { return selector_text(value); }
std::string text_of(const std::vector<JobId>& value) {
  std::vector<std::string> numbers;
  for (const JobId id : value) numbers.push_back(std::to_string(id.value));
  return join(numbers, ",");
}
template <class T>
  requires std::is_enum_v<T>
std::string text_of(T value) {
  return std::string(api::json_name(value));
}
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
std::string text_of(T value) {
  return std::to_string(value);
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "";
}

/// A value as people are shown it; what programs read, text_of(), is the same in every language.
std::string shown(bool value) { return value ? tr("yes") : tr("no"); }
std::string shown(const auto& value) { return text_of(value); }

Result<void> read_value(std::string_view option, std::string_view text, std::string& out) {
  if (printable(text) != text) {
    return fail(Code::Usage, tr_format("{}: control characters are not allowed", option));
  }
  out = text;
  return {};
}
Result<void> read_value(std::string_view option,
                        std::string_view text,
                        int& out,
                        Range range = kCountRange) {
  out = GF_TRY(read_count(option, text, range));
  return {};
}
Result<void> read_value(std::string_view option, std::string_view text, bool& out) {
  if (text != "yes" && text != "no") {
    return fail(Code::Usage, tr_format("{}: '{}' is neither yes nor no", option, printable(text)));
  }
  out = text == "yes";
  return {};
}
Result<void> read_value(std::string_view option, std::string_view text, Memory& out) {
  const auto memory = parse_memory(text);
  if (!memory) return with_context(memory.error(), std::string(option));
  out = *memory;
  return {};
}
Result<void> read_value(std::string_view option, std::string_view text, std::chrono::seconds& out) {
  const auto number = parse_number(text);  // a bare number is seconds
  const auto time = number ? std::chrono::seconds(*number) : parse_duration(text);
  if (!time) return with_context(time.error(), std::string(option));
  out = *time;
  return {};
}
template <class T>
  requires std::is_enum_v<T>
Result<void> read_value(std::string_view option, std::string_view text, T& out) {
  std::vector<std::string> names;
  for (const T one : api::kValues<T>) {
    names.emplace_back(api::json_name(one));
    if (names.back() == text) {
      out = one;
      return {};
    }
  }
  return fail(Code::Usage,
              tr_format("{}: '{}' is not one of {}", option, printable(text), join(names, ", ")));
}
template <class T>
Result<void> read_value(std::string_view option, std::string_view text, std::optional<T>& out)
  requires requires(T& value) { read_value(option, text, value); }
{
  out.reset();
  if (text == "none") return {};
  return read_value(option, text, out.emplace());
}

template <class T>
concept Typed = requires(T& value) { read_value({}, {}, value); };

/// What a value of that type is called in help.
template <class T>
std::string value_name() {
  if constexpr (std::is_same_v<T, std::string>) return "TEXT";
  if constexpr (std::is_same_v<T, bool>) return "yes|no";
  if constexpr (std::is_same_v<T, Memory>) return "SIZE";
  if constexpr (std::is_same_v<T, std::chrono::seconds> ||
                std::is_same_v<T, std::optional<std::chrono::seconds>>) {
    return "TIME";
  }
  return std::is_enum_v<T> ? "NAME" : "N";
}

bool has_option(const std::vector<Option>& options, const std::string& name) {
  return std::ranges::any_of(options, [&name](const Option& option) {
    return option.name == name || is_among(option.aliases, name);
  });
}

/// Calls take(value) for each field whose described option was given.
template <class Take>
Result<void> read_each(const Invocation& invocation, JobSpec& spec, Take take) {
  Result<void> read;
  each_leaf(
      [&](const auto& row, auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (Typed<Value>) {
          const std::string name = option_name(row.name);
          const auto& options = invocation.command->options;
          const auto option = std::ranges::find(options, name, &Option::name);
          if (!read || option == options.end() || option->field != row.name) return;
          if (!invocation.has(name)) return;
          if constexpr (std::is_same_v<Value, int>) {
            read = read_value("--" + name, invocation.get(name), value, row.range);
          } else {
            read = read_value("--" + name, invocation.get(name), value);
          }
          take(value);
        }
      },
      spec);
  return read;
}

}  // namespace

std::vector<Option> described_options(const std::vector<Option>& own, Change change) {
  std::vector<Option> options;
  const JobSpec defaults;
  each_leaf(
      [&](const auto& row, const auto& value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (Typed<Value>) {
          const std::string name = option_name(row.name);
          if (row.change < change || row.wire == Wire::Elsewhere) return;
          if (is_among(kOtherwiseSaid, row.name) || has_option(own, name)) return;
          options.push_back({.name = name,
                             .value = value_name<Value>(),
                             .help = sentence(tr(row.help)),
                             .field = std::string(row.name)});
        }
      },
      defaults);
  return options;
}

std::vector<std::string> changing_options(const std::vector<Option>& own, Change change) {
  std::vector<std::string> names;
  const JobSpec defaults;
  each_leaf(
      [&](const auto& row, const auto& /*value*/) {
        if (row.change < change) return;
        const auto option = std::ranges::find_if(own, [&](const Option& one) {
          return one.name == option_name(row.name) || one.field == row.name;
        });
        if (option != own.end()) names.push_back("--" + option->name);
      },
      defaults);
  return names;
}

Result<void> read_described(const Invocation& invocation, JobSpec& spec) {
  return read_each(invocation, spec, [](const auto& /*value*/) {});
}

Result<void> read_described(const Invocation& invocation, JobChanges& changes) {
  return read_each(invocation, changes.edit(), [&changes](const auto& value) {
    changes.mark(&value, sizeof value);
  });
}

std::vector<Field> described_columns(const std::vector<Field>& own) {
  std::vector<Field> columns;
  const auto taken = [&own](const std::string& name) {
    return std::ranges::any_of(own, [&name](const Field& field) {
      return field.name == name || is_among(field.aliases, name);
    });
  };
  static const JobSpec defaults;
  std::size_t index = 0;
  each_leaf(
      [&](const auto& row, const auto& /*value*/) {
        const std::size_t mine = index++;
        const std::string name = header(row.name);
        if (is_among(kOtherwiseColumns, row.name) || taken(name)) return;
        columns.push_back({name, {}, tr(row.help), 0, [mine](const api::JobView& job) {
                             std::string text;
                             std::size_t at = 0;
                             each_leaf(
                                 [&](const auto& /*row*/, const auto& value) {
                                   if (at++ == mine) text = text_of(value);
                                 },
                                 job.spec);
                             return Cell{text.empty() ? "-" : text, Style::Plain};
                           }});
      },
      defaults);
  return columns;
}

std::vector<Fact> described_facts(const JobSpec& spec) {
  static const JobSpec defaults;
  std::vector<Fact> facts;
  each_leaf(
      [&facts](const auto& row, const auto& value, const auto& plain) {
        if (is_among(kOtherwiseShown, row.name) || value == plain) return;
        std::string name = field_label(row.name);
        name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
        facts.push_back({std::move(name), shown(value)});
      },
      spec,
      defaults);
  return facts;
}

}  // namespace gflow::cli

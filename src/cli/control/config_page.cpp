// SPDX-License-Identifier: Apache-2.0
#include "cli/control/config_page.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"
#include "settings/settings.h"

namespace gflow::cli {

namespace {

/// As the file has it: numbers and booleans bare.
std::string line_of(const settings::Setting& setting) {
  const bool is_bare =
      setting.type == settings::Type::Integer || setting.type == settings::Type::Boolean;
  const std::string value = setting.default_value();
  return is_bare ? fmt::format("{} = {}", setting.name, value)
                 : fmt::format("{} = \"{}\"", setting.name, value);
}

std::string text_of(const settings::Setting& setting) {
  std::string text = tr(setting.help);
  text.front() = ascii_upper(text.front());  // in the file it stands behind a '#'
  const std::string range = setting.range();
  if (setting.choices.empty() && !range.empty()) text += " (" + range + ")";  // choices are in it
  text += tr(".");
  if (setting.applies == settings::Applies::Restart) {
    text += " " + tr("A change needs 'gflowd restart'.");
  }
  return text;
}

}  // namespace

FileFormat gflow_toml_format() {
  FileFormat file{
      .name = "gflow.toml",
      .summary = tr("configuration of gflow"),
      .places = {"~/.config/gflow/gflow.toml", "/etc/gflow/gflow.toml"},
      .description =
          tr("The second is that of 'gflowd --system'; '--gflow-config FILE' and GFLOW_CONFIG name "
             "another one. A file that is not there means the defaults, which are shown below. "
             "'gflowd reload' reads it again.\n\nA flag of gflowd wins over the environment, and "
             "the environment over the file: GFLOW_SCHEDULER__BACKFILL_PATIENCE=10m is "
             "backfill_patience in [scheduler].\n\n'gctl config check' names every wrong line, "
             "'gctl config show --origin' what is in force and why, and 'gctl config set' changes "
             "a line and applies it."),
      .parts = {},
      .others = {"gctl", "gflowd"}};
  for (const settings::Setting& setting : settings::table()) {
    const std::string heading = fmt::format("[{}]", setting.section);
    if (file.parts.empty() || file.parts.back().heading != heading)
      file.parts.push_back({heading, {}});
    file.parts.back().words.push_back({line_of(setting), text_of(setting)});
  }
  return file;
}

}  // namespace gflow::cli

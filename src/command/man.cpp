// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "command/help.h"

namespace gflow::cli {

namespace {

/// Text as roff takes it literally: man(7), groff_char(7).
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    line_start = c == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string paragraphs(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    out += line.empty() ? ".PP\n" : roff(line) + '\n';
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ascii_upper(c);
  return out;
}

/// A term and what it means. `head` is roff already.
std::string term(std::string_view head, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}
std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", roff(text)); }
std::string section(std::string_view heading) { return fmt::format(".SH {}\n", upper(heading)); }

std::string option_term(const Option& option) {
  return term(bold(trim(option_head(option))), option_help(option));
}

std::string options_section(const Command& command) {
  std::string out;
  for (const OptionGroup& group : option_groups(command)) {
    out += fmt::format(".SH \"{}\"\n", upper(group.heading));
    for (const Option& option : group.options) out += option_term(option);
  }
  return out;
}

std::string synopsis(const Command& command, const std::string& program) {
  std::string out;
  for (const std::string& form : command.usage) {
    out += fmt::format("{}{} {}\n", out.empty() ? "" : ".br\n", bold(program), roff(form));
  }
  return out.empty() ? bold(program) + " [options]\n" : out;
}

std::string examples(const Command& command) {
  std::string out;
  for (const Example& example : command.examples) out += term(bold(example.line), example.text);
  return out;
}

/// A subcommand and those below it, each by its name behind that of the program: "token create".
std::string subcommand_part(const Command& sub,
                            const std::string& program,
                            const std::string& name) {
  const std::string others =
      sub.aliases.empty() ? "" : fmt::format(" ({})", join(sub.aliases, ", "));
  std::string out = fmt::format(".SS \"{}{}\"\n{}.PP\n{}\n",
                                roff(name),
                                roff(others),
                                synopsis(sub, program + " " + name),
                                roff(sub.summary + tr(".")));
  if (!sub.description.empty()) out += ".PP\n" + paragraphs(sub.description);
  if (!sub.words.help.empty()) out += term(italic(sub.words.name), sub.words.help);
  for (const Option& option : sub.options) {
    if (!option.hidden && option.refused.empty()) out += option_term(option);
  }
  for (const Example& note : sub.notes) out += term(bold(note.line), note.text);
  out += examples(sub);
  for (const Command& below : sub.subcommands) {
    if (!below.hidden) out += subcommand_part(below, program, name + " " + below.name);
  }
  return out;
}

/// Of those that have a page of their own, what it is called.
std::string subcommands_section(const Command& command, const std::string& program) {
  std::string out;
  for (const Command& sub : command.subcommands) {
    if (sub.hidden) continue;
    if (sub.page.empty()) {
      out += subcommand_part(sub, program, sub.name);
    } else {
      out += fmt::format(".TP\n{}\n{}{}{}(1)\n",
                         bold(program + " " + sub.name),
                         roff(sub.summary),
                         tr(": "),
                         bold(sub.page));
    }
  }
  return out.empty() ? out : section(tr("COMMANDS")) + out;
}

/// Whether it, or one of its subcommands, is a command of gflowd.
bool asks_gflowd(const Command& command) {
  return command.common != Common::Basic || std::ranges::any_of(command.subcommands, asks_gflowd);
}

std::string environment_and_files() {
  constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
      {"GFLOW_SOCKET", tr_later("Socket of the daemon to talk to.")},
      {"GFLOW_CONFIG", tr_later("gflow's configuration file.")},
      {"NO_COLOR", tr_later("Disables colours if set and not empty.")},
  };
  std::string out = section(tr("ENVIRONMENT"));
  for (const auto& [name, text] : kVariables)
    out += term(fmt::format("\\fB{}\\fR", name), tr(text));
  constexpr std::pair<std::string_view, std::string_view> kFiles[] = {
      {"~/.config/gflow/gflow.toml",
       tr_later("Configuration file (/etc/gflow/gflow.toml for a shared daemon).")},
      {"~/.local/share/gflow/logs/<job_id>.log",
       tr_later("Output of a job, stdout and stderr together.")},
      {"~/.local/share/gflow/logs/gpu_resource_manager.log",
       tr_later("Log of the daemon (/var/lib/gflow/logs for a shared one).")},
  };
  out += section(tr("FILES"));
  for (const auto& [name, text] : kFiles) out += term(italic(name), tr(text));
  return out;
}

std::string see_also(std::span<const std::string> commands, std::string_view file = "") {
  std::string out;
  for (const std::string& command : commands) {
    out += fmt::format("{}\\fB{}\\fR(1)", out.empty() ? "" : ", ", roff(command));
  }
  if (!file.empty()) out += fmt::format(", \\fB{}\\fR(5)", roff(file));
  return section(tr("SEE ALSO")) + out + "\n";
}

std::string closing_sections(const Command& command, std::string_view page) {
  std::string out = section(tr("EXIT STATUS"));
  for (const ExitCode& exit : exit_codes()) {
    out += term(fmt::format("\\fB{}\\fR", exit.code), tr(exit.meaning));
  }
  if (asks_gflowd(command)) out += environment_and_files();
  std::vector<std::string> others = {"galloc",
                                     "gbatch",
                                     "gcancel",
                                     "gctl",
                                     "gflow",
                                     "gflowd",
                                     "ginfo",
                                     "gjob",
                                     "gqueue",
                                     "gstats",
                                     "gtop"};
  std::erase(others, page);
  return out + see_also(others, asks_gflowd(command) ? "gflow.toml" : "");
}

/// `heading` is roff already.
std::string legend_text(std::string_view heading, const Legend& legend) {
  std::string out = fmt::format("{}\n", heading);
  for (const Example& word : legend.words) out += term(bold(word.line), word.text);
  return out;
}

/// The first lines, of a section of the manual.
std::string head(const std::string& page,
                 int number,
                 std::string_view summary,
                 std::string_view version) {
  return fmt::format(
             ".TH {} {} \"\" \"gflow {}\" \"gflow\"\n", roff(upper(page)), number, version) +
         section(tr("NAME")) + fmt::format("{} \\- {}\n", roff(page), roff(summary));
}

}  // namespace

std::string man_page(const Command& command, const std::string& program, std::string_view version) {
  std::string page = program;
  std::ranges::replace(page, ' ', '-');
  std::string out = head(page, 1, command.summary, version);
  out += section(tr("SYNOPSIS")) + synopsis(command, program);
  if (!command.description.empty()) {
    out += section(tr("DESCRIPTION")) + paragraphs(command.description);
  }
  out += subcommands_section(command, program);
  if (!command.words.help.empty()) {
    out += section(tr("ARGUMENTS")) + term(italic(command.words.name), command.words.help);
  }
  out += options_section(command);
  for (const Example& note : command.notes) {
    out += fmt::format(".SH \"{}\"\n{}", upper(note.line), paragraphs(note.text));
  }
  for (const Legend& legend : command.legends) {
    out += legend_text(fmt::format(".SH \"{}\"", upper(legend.heading)), legend);
  }
  if (!command.examples.empty()) out += section(tr("EXAMPLES")) + examples(command);
  return out + closing_sections(command, page);
}

std::string man_page(const FileFormat& file, std::string_view version) {
  std::string out = head(file.name, 5, file.summary, version) + section(tr("SYNOPSIS"));
  for (const std::string& place : file.places) {
    out += (place == file.places.front() ? "" : ".br\n") + italic(place) + '\n';
  }
  out += section(tr("DESCRIPTION")) + paragraphs(file.description) + section(tr("SETTINGS"));
  for (const Legend& part : file.parts) {
    out += legend_text(fmt::format(".SS \"{}\"", roff(part.heading)), part);
  }
  return out + see_also(file.others);
}

}  // namespace gflow::cli

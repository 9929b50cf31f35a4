// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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

std::string options_section(const Command& command, std::string_view macro) {
  std::string out;
  for (const OptionGroup& group : option_groups(command)) {
    out += fmt::format("{} \"{}\"\n", macro, macro == ".SH" ? upper(group.heading) : group.heading);
    for (const Option& option : group.options) {
      out += fmt::format(
          ".TP\n\\fB{}\\fR\n{}\n", roff(trim(option_head(option))), roff(option_help(option)));
    }
  }
  return out;
}

std::string synopsis(const Command& command, const std::string& program) {
  std::string out;
  for (const std::string& form : command.usage) {
    out += fmt::format("{}\\fB{}\\fR {}\n", out.empty() ? "" : ".br\n", roff(program), roff(form));
  }
  return out.empty() ? fmt::format("\\fB{}\\fR [options]\n", roff(program)) : out;
}

std::string subcommands_section(const Command& command) {
  std::string out;
  for (const Command& sub : command.subcommands) {
    if (sub.hidden) continue;
    if (out.empty()) out = ".SH COMMANDS\n";
    const std::string program = command.name + " " + sub.name;
    out += fmt::format(".SS \"{}\"\n{}", roff(sub.name), synopsis(sub, program));
    out += fmt::format(".PP\n{}.\n", roff(sub.summary));
    if (!sub.description.empty()) out += ".PP\n" + paragraphs(sub.description);
    for (const Option& option : sub.options) {
      if (option.hidden || !option.refused.empty()) continue;
      out += fmt::format(
          ".TP\n\\fB{}\\fR\n{}\n", roff(trim(option_head(option))), roff(option_help(option)));
    }
  }
  return out;
}

std::string closing_sections(const Command& command) {
  std::string out = ".SH EXIT STATUS\n";
  for (const ExitCode& exit : exit_codes()) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", exit.code, roff(tr(exit.meaning)));
  }
  out += ".SH ENVIRONMENT\n";
  constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
      {"GFLOW_SOCKET", tr_later("Socket of the daemon to talk to.")},
      {"GFLOW_CONFIG", tr_later("gflow's configuration file.")},
      {"NO_COLOR", tr_later("Disables colours if set and not empty.")},
  };
  for (const auto& [name, text] : kVariables) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", name, roff(tr(text)));
  }
  out += ".SH FILES\n";
  constexpr std::pair<std::string_view, std::string_view> kFiles[] = {
      {"~/.config/gflow/gflow.toml",
       tr_later("Configuration file (/etc/gflow/gflow.toml for a shared daemon).")},
      {"~/.local/share/gflow/logs/<job_id>.log",
       tr_later("Output of a job, stdout and stderr together.")},
  };
  for (const auto& [name, text] : kFiles) {
    out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(name), roff(tr(text)));
  }
  out += ".SH SEE ALSO\n";
  std::string others;
  for (const std::string_view other :
       {"gbatch", "gcancel", "gflow", "gflowd", "ginfo", "gjob", "gqueue"}) {
    if (other == command.name) continue;
    others += fmt::format("{}\\fB{}\\fR(1)", others.empty() ? "" : ", ", other);
  }
  return out + others + "\n";
}

}  // namespace

std::string man_page(const Command& command, std::string_view version) {
  std::string out =
      fmt::format(".TH {} 1 \"\" \"gflow {}\" \"gflow\"\n", upper(command.name), version);
  out += fmt::format(".SH NAME\n{} \\- {}\n", command.name, roff(command.summary));
  out += ".SH SYNOPSIS\n" + synopsis(command, command.name);
  if (!command.description.empty()) out += ".SH DESCRIPTION\n" + paragraphs(command.description);
  out += subcommands_section(command);
  if (!command.words.help.empty()) {
    out += fmt::format(
        ".SH ARGUMENTS\n.TP\n\\fI{}\\fR\n{}\n", roff(command.words.name), roff(command.words.help));
  }
  out += options_section(command, ".SH");
  for (const Example& note : command.notes) {
    out += fmt::format(".SH \"{}\"\n{}", upper(note.line), paragraphs(note.text));
  }
  for (const Legend& legend : command.legends) {
    out += fmt::format(".SH \"{}\"\n", upper(legend.heading));
    for (const Example& word : legend.words) {
      out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(word.line), roff(word.text));
    }
  }
  if (!command.examples.empty()) out += ".SH EXAMPLES\n";
  for (const Example& example : command.examples) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(example.line), roff(example.text));
  }
  return out + closing_sections(command);
}

}  // namespace gflow::cli

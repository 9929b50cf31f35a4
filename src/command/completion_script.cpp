// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"
#include "command/completion.h"

namespace gflow::cli {

namespace {

/// NAME stands for the command.
constexpr std::string_view kBash = R"(# bash completion for NAME
_NAME_complete() {
  local cur=${COMP_WORDS[COMP_CWORD]} answer kind line
  COMPREPLY=()
  answer=$(NAME __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
  kind=${answer%%$'\n'*}
  case $kind in
    :command*)
      if declare -F _command_offset >/dev/null && [ "${kind#:command }" -lt "$COMP_CWORD" ]; then
        _command_offset "${kind#:command }"
        return
      fi
      mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
      compopt -o filenames 2>/dev/null ;;
    :files) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames 2>/dev/null ;;
    :directories) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null ;;
  esac
  while IFS= read -r line; do
    case $line in :*|'') continue ;; esac
    line=${line%%$'\t'*}
    COMPREPLY+=("$line")
  done <<< "$answer"
}
complete -F _NAME_complete NAME
)";

constexpr std::string_view kZsh = R"(#compdef NAME
# zsh completion for NAME
_NAME() {
  local -a answer names texts
  local line
  answer=("${(@f)$(NAME __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${(@)answer[2,-1]}"; do
    [[ -z $line ]] && continue
    names+=("${line%%$'\t'*}")
    texts+=("${line/$'\t'/  -- }")
  done
  (( $#names )) && compadd -l -d texts -a names
  case $answer[1] in
    :files) _files ;;
    :directories) _files -/ ;;
    :command*)
      local -i at=${answer[1]#:command }
      shift $at words
      (( CURRENT -= at ))
      _normal ;;
  esac
}
if [ "$funcstack[1]" = _NAME ]; then
  _NAME "$@"
else
  compdef _NAME NAME
fi
)";

constexpr std::string_view kFish = R"(# fish completion for NAME
function __NAME_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l answer (NAME __complete $words[2..-1] 2>/dev/null)
  switch "$answer[1]"
    case :files
      __fish_complete_path (commandline -ct)
    case :directories
      __fish_complete_directories (commandline -ct)
    case ':command *'
      set -l at (string replace ':command ' '' -- $answer[1])
      complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]))
  end
  test (count $answer) -gt 1; and printf '%s\n' $answer[2..-1]
end
complete -c NAME -f -a '(__NAME_complete)'
)";

}  // namespace

Result<std::string> completion_script(std::string_view command, std::string_view shell) {
  std::string_view script;
  if (shell == "bash") script = kBash;
  if (shell == "zsh") script = kZsh;
  if (shell == "fish") script = kFish;
  if (script.empty()) {
    return fail(Code::Usage,
                tr_format("there is no completion for '{}', only for bash, zsh and fish",
                          printable(shell)));
  }
  std::string out(script);
  constexpr std::string_view kName = "NAME";
  for (std::size_t at = out.find(kName); at != std::string::npos;
       at = out.find(kName, at + command.size())) {
    out.replace(at, kName.size(), command);
  }
  return out;
}

}  // namespace gflow::cli

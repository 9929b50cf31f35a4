// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which language the person who called reads, and the catalogue of it.
namespace gflow::cli {

/// A variable of the environment; nothing where it is not set.
using Variable = std::function<std::optional<std::string>(const char* name)>;

/// The catalogues to look for, the best first: "zh_CN", "zh". None for English. As GNU gettext
/// decides: the first of LC_ALL, LC_MESSAGES and LANG that is not empty, and unless that is C or
/// POSIX the list in LANGUAGE before it. Whether the system has such a locale does not matter. A
/// locale in another encoding than UTF-8, which is all that gflow writes, is English.
[[nodiscard]] std::vector<std::string> wanted_languages(const Variable& variable);

/// Takes the catalogue beside the program (../share/locale) for messages of this process, where the
/// environment asks for one that is there. First thing in main: tables of commands are texts.
void choose_language();

}  // namespace gflow::cli

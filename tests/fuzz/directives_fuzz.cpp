// SPDX-License-Identifier: Apache-2.0
// A script is read without harm; what was read has line numbers that ascend, words, and no NUL.
#include "base/text.h"
#include "core/requests.h"
#include "require.h"

using gflow::fuzz::require;

static void check(const std::vector<gflow::Directive>& directives) {
  int last = 0;
  for (const gflow::Directive& directive : directives) {
    require(directive.line > last);
    last = directive.line;
    require(!directive.words.empty());
    for (const std::string& word : directive.words) require(word.find('\0') == std::string::npos);
    require(gflow::shell_split(gflow::shell_quote(directive.words)) == directive.words);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = gflow::read_directives(gflow::fuzz::text_of(data, size));
  if (!read) {
    require(gflow::printable(read.error().message) == read.error().message);
    return 0;
  }
  check(read->gflow);
  check(read->slurm);
  return 0;
}

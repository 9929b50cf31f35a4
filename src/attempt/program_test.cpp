// SPDX-License-Identifier: Apache-2.0
#include "attempt/program.h"

#include <gtest/gtest.h>

namespace gflow::attempt {
namespace {

TEST(Shebang, AsLinuxReadsIt) {
  const struct {
    const char* name;
    const char* start;
    std::optional<Shebang> shebang;
  } kTable[] = {
      {"plain", "#!/bin/sh\necho", Shebang{"/bin/sh", ""}},
      {"one argument", "#!/usr/bin/env python3\n", Shebang{"/usr/bin/env", "python3"}},
      {"the rest is one argument", "#! /bin/awk -f  x \n", Shebang{"/bin/awk", "-f  x"}},
      {"no line end", "#!/bin/sh", Shebang{"/bin/sh", ""}},
      {"carriage return stays", "#!/bin/sh\r\n", Shebang{"/bin/sh\r", ""}},
      {"none", "echo hello\n", std::nullopt},
      {"empty", "", std::nullopt},
      {"nothing named", "#!  \n/bin/sh", std::nullopt},
      {"not at the start", " #!/bin/sh\n", std::nullopt},
  };
  for (const auto& row : kTable) EXPECT_EQ(parse_shebang(row.start), row.shebang) << row.name;
  EXPECT_EQ(parse_shebang(std::string_view("#!/bin\0/sh\n", 11)), std::nullopt);
}

TEST(ProgramPaths, AsExecvpLooks) {
  using Strings = std::vector<std::string>;
  const struct {
    const char* name;
    const char* program;
    Strings environment;
    Strings paths;
  } kTable[] = {
      {"a path", "./x", {"PATH=/a"}, {"./x"}},
      {"absolute", "/bin/x", {}, {"/bin/x"}},
      {"two directories", "x", {"PATH=/a:/b"}, {"/a/x", "/b/x"}},
      {"empty means here", "x", {"PATH=:/b:"}, {"./x", "/b/x", "./x"}},
      {"no PATH", "x", {"HOME=/"}, {"/usr/local/bin/x", "/usr/bin/x", "/bin/x"}},
      {"the last PATH counts", "x", {"PATH=/a", "PATH=/b"}, {"/b/x"}},
      {"nothing", "", {"PATH=/a"}, {}},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(program_paths(row.program, row.environment), row.paths) << row.name;
  }
}

}  // namespace
}  // namespace gflow::attempt

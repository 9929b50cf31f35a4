// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/types.h"
#include "cli/queue/fields.h"
#include "command/command.h"
#include "core/job_changes.h"

/// What commands get of a job's fields from its description alone. Fields that want more than that
/// (a syntax, short options, a cell that looks at several) have it in their command's own table,
/// and are left out here.
namespace gflow::cli {

/// An option for each field that may be changed until `change` or later, or, with Change::Never,
/// for each that can be said at submission, unless `own` has it.
[[nodiscard]] std::vector<Option> described_options(const std::vector<Option>& own, Change change);
/// The options of `own` that set a field which may be changed until `change` or later: "--name".
[[nodiscard]] std::vector<std::string> changing_options(const std::vector<Option>& own,
                                                        Change change);
/// Reads those into the specification, or the changes. Errors: Usage naming the option.
[[nodiscard]] Result<void> read_described(const Invocation& invocation, JobSpec& spec);
[[nodiscard]] Result<void> read_described(const Invocation& invocation, JobChanges& changes);

/// A column of gqueue for each field that `own` has none for.
[[nodiscard]] std::vector<Field> described_columns(const std::vector<Field>& own);

struct Fact {
  std::string name;
  std::string value;
};
/// What else was asked for, other than the default: for `gjob show`, which has its own lines for
/// the rest.
[[nodiscard]] std::vector<Fact> described_facts(const JobSpec& spec);

}  // namespace gflow::cli

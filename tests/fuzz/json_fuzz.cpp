// SPDX-License-Identifier: Apache-2.0
// Whatever is read is written as a text that is read as the same; errors are fit to be printed.
#include "api/json.h"
#include "base/text.h"
#include "require.h"

using gflow::fuzz::require;

namespace {

/// Reads, writes, reads and writes: both texts are the same.
template <typename Read>
void check(std::string_view text, Read read) {
  const auto value = read(text);
  if (!value) {
    // A line for each field that is wrong.
    for (const std::string_view line : gflow::split(value.error().message, '\n')) {
      require(!line.empty() && gflow::printable(line) == line);
    }
    return;
  }
  const std::string written = gflow::api::write(*value);
  const auto again = read(written);
  require(again && gflow::api::write(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  check(text, gflow::api::read_submit_request);
  check(text, gflow::api::read_update_request);
  check(text, gflow::api::read_jobs_request);
  check(text, gflow::api::read_job_page);
  check(text, gflow::api::read_job);
  check(text, gflow::api::read_machine);
  check(text, gflow::api::read_daemon);
  check(text, gflow::api::read_submit_answer);
  (void)gflow::api::read_job_ids(text);
  (void)gflow::api::read_revision(text);
  const gflow::Error problem = gflow::api::read_problem(500, text);
  require(gflow::printable(problem.message) == problem.message);
  return 0;
}

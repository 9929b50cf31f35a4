// SPDX-License-Identifier: Apache-2.0
// The body of any request, read as the document its first byte names ('0', '1' ...): it is read,
// and written as a text that is read as the same, or refused by sentences that are fit to be
// printed.
#include <string>
#include <vector>

#include "api/defrag.h"
#include "api/gpu_resources.h"
#include "api/json.h"
#include "api/placement_view.h"
#include "api/snapshot.h"
#include "api/token.h"
#include "base/text.h"
#include "require.h"

using gflow::fuzz::require;

namespace {

/// A body that is refused is told of as problems are: the fields that are wrong, a line each.
void check_refusal(const gflow::api::Refusal& refusal) {
  require(!refusal.message.empty());
  const auto lines = gflow::split(refusal.message, '\n');
  for (const std::string_view line : lines) {
    require(!line.empty() && gflow::printable(line) == line);
  }
  require(refusal.fields.empty() || refusal.fields.size() == lines.size());
  for (const gflow::api::FieldError& field : refusal.fields) {
    require(field.pointer.empty() || field.pointer.starts_with('/'));
    require(!field.detail.empty());
  }
}

template <auto Read>
void check(std::string_view body) {
  const auto value = Read(body);
  if (!value) return check_refusal(value.error());
  if constexpr (requires { gflow::api::write(*value); }) {
    const std::string written = gflow::api::write(*value);
    const auto again = Read(written);
    require(again && gflow::api::write(*again) == written);
  }
}

// A new document: its reader here, at the end, as inputs name it by its place.
constexpr void (*kReaders[])(std::string_view) = {
    check<gflow::api::read_submit_request>,
    check<gflow::api::read_update_request>,
    check<gflow::api::read_jobs_request>,
    check<gflow::api::read_place_request>,
    check<gflow::api::read_drain_request>,
    check<gflow::api::read_defrag_request>,
    check<gflow::api::read_token_request>,
    check<gflow::api::read_gpu_need>,
    check<gflow::api::read_gpu_renewal>,
    check<gflow::api::read_job_update>,
    check<gflow::api::read_move_request>,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  if (text.empty()) return 0;
  const auto which = static_cast<unsigned char>(text.front() - '0') % std::size(kReaders);
  kReaders[which](text.substr(1));
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "api/refusal.h"

#include <utility>

#include "base/translate.h"

namespace gflow::api {
namespace {

std::string lines_of(const std::vector<FieldError>& wrong) {
  std::string text;
  for (const FieldError& field : wrong) {
    if (!text.empty()) text += '\n';
    if (!field.pointer.empty()) text += field.pointer + ": ";
    text += field.detail;
  }
  return text;
}

}  // namespace

Refusal::Refusal(std::vector<FieldError> wrong, Code kind)
    : Error{kind, lines_of(wrong)}, fields(std::move(wrong)) {}

std::unexpected<Refusal> refuse(std::string pointer, std::string detail) {
  return std::unexpected(Refusal({FieldError{std::move(pointer), std::move(detail)}}));
}

std::unexpected<Refusal> refuse(std::string pointer, const Error& why) {
  return std::unexpected(Refusal({FieldError{std::move(pointer), why.message}}, why.code));
}

Error no_answer(const std::string& why) {
  return {Code::Failure, tr_format("what answers is no gflowd that this program knows: {}", why)};
}

}  // namespace gflow::api

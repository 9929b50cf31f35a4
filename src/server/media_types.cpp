// SPDX-License-Identifier: Apache-2.0
#include "server/media_types.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "base/translate.h"
#include "server/weights.h"

namespace gflow::server {
namespace {

constexpr int kNotAcceptable = 406;
constexpr int kUnsupportedMedia = 415;

std::string_view media_of(const api::Answered& answer) {
  if (!answer.media.empty()) return answer.media;
  return answer.document.empty() ? "" : "application/json";
}

/// A route that answers nothing answers whatever is taken.
bool takes_any(std::string_view accept, const api::Operation& about) {
  bool has_media = false;
  for (const api::Answered& answer : about.answers) {
    const std::string_view media = media_of(answer);
    if (media.empty()) continue;
    has_media = true;
    if (takes_media(accept, media)) return true;
  }
  return !has_media;
}

Reply unsupported(std::string message) {
  return problem(Error{Code::Usage, std::move(message)}, kUnsupportedMedia);
}

}  // namespace

Reply refusal_of_type(std::string_view content_type) {
  return unsupported(
      tr_format("the body is '{}' and has to be JSON; say so with the header "
                "'Content-Type: application/json'",
                printable(content_type.substr(0, 100))));
}

bool takes_media(std::string_view accept, std::string_view media) {
  if (trim(accept).empty()) return true;
  if (const auto exact = weight_in(accept, media)) return *exact > 0;
  const std::string group = std::string(media.substr(0, media.find('/'))) + "/*";
  if (const auto of_group = weight_in(accept, group)) return *of_group > 0;
  return weight_in(accept, "*/*").value_or(0) > 0;
}

std::optional<Reply> refuse_of_media(const Request& request, const api::Operation& about) {
  if (!takes_any(request.accept, about)) {
    return problem(
        Error{Code::Usage,
              tr_format("the answer is JSON or text, and the header Accept takes only '{}'",
                        printable(request.accept.substr(0, 100)))},
        kNotAcceptable);
  }
  if (request.body.empty()) return std::nullopt;
  const std::string coding = to_lower(trim(request.content_encoding));
  if (!coding.empty() && coding != "identity") {
    return unsupported(tr_format("the body is in the coding '{}'; send it as it is",
                                 printable(coding.substr(0, 100))));
  }
  const std::string_view type = request.content_type;
  const std::string media = to_lower(trim(type.substr(0, type.find(';'))));
  if (media.empty() || about.body.empty() || media == "application/json") return std::nullopt;
  return refusal_of_type(media);
}

}  // namespace gflow::server

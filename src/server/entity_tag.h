// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "server/exchange.h"

/// Entity tags (RFC 9110, 8.8.3): whether what is asked for is what the client knows already.
namespace gflow::server {

/// Of a text as it is sent: a weak one, as its coding may be another.
[[nodiscard]] std::string tag_of_text(std::string_view text);

/// Whether an If-None-Match names the tag, compared weakly; "*" names any.
[[nodiscard]] bool names_tag(std::string_view if_none_match, std::string_view tag);

/// Makes the tag of an answer that is coded another one than that of the same answer as it is, as a
/// strong one has to be.
void mark_coded(Reply& reply);

/// Whether an If-Match names that version of something, or "*". Of what has versions, the tag that
/// a handler gives is the version; a reader gets `"VERSION.DIGEST"`, which is another one, too,
/// once only the text is.
[[nodiscard]] bool names_version(std::string_view if_match, std::string_view version);

/// The answer to a read with its tag, or 304 where the client knows it.
[[nodiscard]] Reply unless_known(std::string_view if_none_match, Reply reply);

}  // namespace gflow::server

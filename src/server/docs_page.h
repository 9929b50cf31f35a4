// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/operation.h"

namespace gflow::server {

/// What /docs shows: every route as it is told in the table, every document and every kind of
/// problem, in the language of this thread's messages. Complete without scripts; the one there is
/// narrows the list to what is typed. Nothing is loaded from elsewhere. Where its lines for a shell
/// have the address of gflowd, it is left open.
[[nodiscard]] std::string docs_page(std::span<const api::RouteView> routes,
                                    std::string_view version);
/// The page with what curl is given up to the path: "'https://lab1:8443".
[[nodiscard]] std::string docs_page_at(std::string_view page, std::string_view address);
[[nodiscard]] std::string_view docs_style();
[[nodiscard]] std::string_view docs_script();

}  // namespace gflow::server

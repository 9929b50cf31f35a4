// SPDX-License-Identifier: Apache-2.0
// What an Elsewhere of another scheduler is compared with.
#pragma once

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/facade.h"
#include "server/routes.h"

namespace gflow::server {

/// The routes that change something and are done by a Facade. What only reads is answered of the
/// state that it shows.
constexpr auto kDoneByFacade = std::to_array<std::string_view>({"POST /api/v1/jobs",
                                                                "POST /api/v1/jobs/cancel",
                                                                "POST /api/v1/jobs/hold",
                                                                "POST /api/v1/jobs/release",
                                                                "DELETE /api/v1/jobs/{id}"});

/// What is wrong with a table: routes that nothing answers, routes that are answered and refused,
/// and lines that are for no route. `more`: what this one does beside those.
inline std::vector<std::string> faults_of(std::span<const Elsewhere> table,
                                          const std::set<std::string>& more = {}) {
  std::vector<std::string> faults;
  for (const Route& route : routes()) {
    const std::string name = std::string(route.method) + " " + std::string(route.pattern);
    const Elsewhere* one = elsewhere_of(table, route);
    const bool is_here = one == nullptr || one->text.empty();
    const bool is_done =
        only_reads(route.verb)
            ? is_here
            : more.contains(name) || std::ranges::find(kDoneByFacade, name) != kDoneByFacade.end();
    if (is_here != is_done) faults.push_back(name);
  }
  for (const Elsewhere& line : table) {
    const bool is_of_one = std::ranges::any_of(
        routes(), [&](const Route& route) { return elsewhere_of(table, route) == &line; });
    if (!is_of_one) faults.push_back("a line for no route: " + std::string(line.path));
  }
  return faults;
}

}  // namespace gflow::server

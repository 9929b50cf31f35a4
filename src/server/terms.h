// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gflow::server {

/// What of a request says how its answer is to be sent, whatever it is.
struct Terms {
  std::string method;
  std::string path;  ///< for the log
  std::string request_id;
  std::string accept_encoding;
  std::string if_none_match;
  std::string asked_by = {};  ///< for the log, once it is known

  friend bool operator==(const Terms&, const Terms&) = default;
};

}  // namespace gflow::server

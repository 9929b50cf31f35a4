// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gflow::api {

/// A document, or an object within one, as a table for people.
struct DocumentView {
  struct Field {
    std::string name;
    std::string type;  ///< "integer, 0 to 255", "string or null", "list of JobView"
    std::string of;    ///< the object it holds; "" if it holds none
    bool required = false;
    std::string help;
  };
  std::string name;
  std::vector<Field> fields;  ///< of all its forms, if there are several
};

/// All there are, by name.
[[nodiscard]] std::vector<DocumentView> document_views();

}  // namespace gflow::api

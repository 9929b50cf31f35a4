// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace gflow::api {

/// Which fields of an object are written: "name", "spec.name" for one of an object within it, and
/// so on.
class FieldFilter {
 public:
  /// Everything.
  FieldFilter() = default;
  /// These; everything if there are none.
  explicit FieldFilter(std::span<const std::string> names);

  /// What is written of a field; a null pointer if it is left out.
  [[nodiscard]] const FieldFilter* find(std::string_view name) const;

 private:
  void add(std::string_view name);

  /// Asked for each field of each job of a listing: most names differ in length.
  struct ByLength {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): as std::less has it
    bool operator()(std::string_view a, std::string_view b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };
  std::map<std::string, FieldFilter, ByLength> parts_;  ///< empty: everything
  bool named_ = false;                                  ///< as a whole, whatever else is named
};

}  // namespace gflow::api

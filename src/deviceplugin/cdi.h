// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/machine.h"

/// The Container Device Interface: files that tell a container runtime what a device by some name
/// is in a container (https://github.com/cncf-tags/container-device-interface, SPEC.md).
namespace gflow::deviceplugin {

/// Devices of ours by a key, each in a file of its own: "gflow/allocation=KEY".
class CdiKind {
 public:
  explicit constexpr CdiKind(std::string_view name) : name_(name) {}

  [[nodiscard]] std::string text() const;  ///< "gflow/allocation"
  [[nodiscard]] std::string device(std::string_view key) const;
  [[nodiscard]] std::string file_name(std::string_view key) const;
  /// The key of a file of that name, or of one that was being written; "" of others' files.
  [[nodiscard]] std::string key_of_file(std::string_view name) const;

  friend bool operator==(const CdiKind&, const CdiKind&) = default;

 private:
  std::string_view name_;
};

constexpr CdiKind kAllocations{"allocation"};  ///< what a container with some tickets has
constexpr CdiKind kClaims{"claim"};            ///< what those have that name a request of a claim

/// What is done to a container, `containerEdits` of a specification.
struct Edits {
  std::string version = "0.5.0";  ///< of the specification that has all that is in it
  nlohmann::json edits = nlohmann::json::object();
};

/// What a vendor's specification ("nvidia.com/gpu", of `nvidia-ctk cdi generate`) says of these
/// devices, by UUID or index, with what it says of all: device files, libraries of the driver.
/// `directories`: the later one wins; a file that cannot be read is passed by. Errors: NotFound of
/// a device that no file names, with what makes one, and what could not be read.
[[nodiscard]] Result<Edits> vendor_edits(const std::vector<std::string>& directories,
                                         std::string_view kind,
                                         const std::vector<const Device*>& devices);
/// Both; the lists of `more` come behind.
void add_edits(Edits& to, const Edits& more);
/// The specification with one device of that key.
[[nodiscard]] std::string cdi_text(CdiKind kind, std::string_view key, const Edits& edits);

}  // namespace gflow::deviceplugin

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"

/// GPU models by the names people use. Drivers write "NVIDIA A100-SXM4-80GB", people "a100": both
/// are "A100" here. Names follow rules (catalogue.cpp) rather than a list, so that a model made
/// tomorrow has one, too; the list (catalogue_list.cpp) is what is known beyond the name.
namespace gflow::catalogue {

/// The short name of a device, from what its driver calls it: "A100", "RTX3090", "MI300X", "910B3".
/// One spelling for each model, and short_model("", x) of a short name is that name. The vendor
/// says what bare numbers mean. Never empty unless the name has neither letters nor digits.
[[nodiscard]] std::string short_model(std::string_view vendor, std::string_view name);

/// The same with the size where a model comes in several: "A100-80G". The size is the one nearest
/// to the memory the device has, else what its name says; without either it is left out. That of a
/// MIG device is its GPU's with its profile: "A100-3g.20gb".
[[nodiscard]] std::string device_model(std::string_view vendor,
                                       std::string_view name,
                                       std::optional<Memory> memory);

/// What a person wrote, in the spelling of device_model(): "a100-80g" and "A100 80GB" are
/// "A100-80G", "V100M32" is "V100-32G", "3090" and "RTX 3090" are "RTX3090". A size that is the
/// only one of its model is left out. "" for what cannot be a model: it has a letter and a digit,
/// or is known.
[[nodiscard]] std::string read_model(std::string_view text);

/// Whether a device of device_model() `device` is what was asked for by read_model() `wanted`: the
/// same, or the same without its size, or the family of it ("910B" of "910B3"). A MIG device is
/// asked for by its profile, with its GPU or without: "A100-3g.20gb", "3g.20gb".
[[nodiscard]] bool answers(std::string_view wanted, std::string_view device);

/// The MIG profile of a device_model() or read_model(): "3g.20gb" of "A100-3g.20gb" and of itself;
/// "" for a whole GPU.
[[nodiscard]] std::string_view profile_of(std::string_view model);
/// The GPU it is cut from as its name has it: "A100" of "A100-3g.20gb"; "" where that says none.
[[nodiscard]] std::string gpu_of_slice(std::string_view model);
/// Whether it is a MIG device and no GPU.
[[nodiscard]] inline bool is_slice(std::string_view model) { return !profile_of(model).empty(); }

/// A name without its size: "A100" of "A100-80G".
[[nodiscard]] std::string_view without_size(std::string_view model);

/// Whether the list has it, with or without a size.
[[nodiscard]] bool is_known(std::string_view model);
/// "nvidia", "amd", "intel", "ascend"; "" if the list does not have it.
[[nodiscard]] std::string_view vendor_of(std::string_view model);
/// What such a device is sold with: the size in its name, else the usual one of the list.
[[nodiscard]] std::optional<Memory> memory_of(std::string_view model);
/// Every short name of the list.
[[nodiscard]] const std::vector<std::string>& known_models();

/// A model of the list.
struct Listed {
  std::string_view name;
  std::string_view vendor;
  /// What it is sold with, in GB as written on the box; the usual one first. Empty: not known.
  std::vector<int> sizes;
};
[[nodiscard]] std::span<const Listed> list();
/// Null if the list does not have this short name (without a size).
[[nodiscard]] const Listed* find(std::string_view short_name);

}  // namespace gflow::catalogue

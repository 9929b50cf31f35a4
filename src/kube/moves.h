// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Moves of pods that somebody wants made, and what becomes of that: both stand in a ConfigMap, so
/// that whichever scheduler decides knows them (docs/format/moves.md).
namespace gflow::kube {

/// This very pod: another of its name is another.
struct PodName {
  std::string name_space;
  std::string name;
  std::string uid;

  [[nodiscard]] std::string full_name() const { return name_space + "/" + name; }
  friend bool operator==(const PodName&, const PodName&) = default;
};

struct MovesAsked {
  std::string id;              ///< of this request: its answer has it, too
  std::vector<PodName> pods;   ///< who waits: one, or those that start together
  std::vector<PodName> moves;  ///< who moves for them

  friend bool operator==(const MovesAsked&, const MovesAsked&) = default;
};

enum class MovesState {
  Refused,  ///< nobody moves
  Making,   ///< who moves is evicted, and the room kept
  Started,  ///< who waited has its room
  GivenUp,  ///< the room is anybody's
};
inline constexpr std::array<std::string_view, 4> kMovesStates = {
    "refused", "making", "started", "given_up"};

struct MovesAnswer {
  std::string id;
  MovesState state = MovesState::Refused;
  std::string why{};  ///< a sentence, of Refused and GivenUp
  int priority = 0;   ///< of Making: that of who waits, in the steps of the engine

  friend bool operator==(const MovesAnswer&, const MovesAnswer&) = default;
};

/// The ConfigMap.
struct MovesRecord {
  std::string version{};                ///< resourceVersion; "": it is not there
  std::optional<MovesAsked> asked{};    ///< empty: nothing, or what cannot be read
  std::optional<MovesAnswer> answer{};  ///< to that request

  /// Whether it is not settled what becomes of what was asked for.
  [[nodiscard]] bool is_open() const {
    return asked && (!answer || answer->state == MovesState::Making);
  }
};

/// More pods are not asked for at once, neither to start nor to move.
inline constexpr std::size_t kMostPodsAsked = 512;

/// What the ConfigMap of a scheduler of this schedulerName is called.
[[nodiscard]] std::string moves_name_of(const std::string& scheduler);
[[nodiscard]] std::string config_map_path(const std::string& name_space, const std::string& name);
[[nodiscard]] MovesRecord moves_record_of(const nlohmann::json& config_map);
/// Merge patches of the ConfigMap as it was read: one that was changed since is a conflict.
[[nodiscard]] std::string patch_to_ask(const MovesAsked& asked, const std::string& version);
[[nodiscard]] std::string patch_to_withdraw(const std::string& version);
[[nodiscard]] std::string patch_to_answer(const MovesAnswer& answer, const std::string& version);

}  // namespace gflow::kube

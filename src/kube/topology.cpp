// SPDX-License-Identifier: Apache-2.0
#include "kube/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

constexpr std::size_t kMostLevels = 8;
constexpr std::size_t kMostOfLabel = 317;  // of a label's key, as Kubernetes has it
constexpr std::string_view kNodeLevel = "kubernetes.io/hostname";

std::string_view last_part(std::string_view label) { return label.substr(label.rfind('/') + 1); }

bool is_label(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
  return !text.empty() && text.size() <= kMostOfLabel &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

/// How many levels there are down to the one that is called so; 0: none is, or several are.
std::size_t level_called(const Levels& levels, std::string_view name) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i] == name) return i + 1;
    if (last_part(levels[i]) != name && level_word(levels[i]) != name) continue;
    if (found > 0) return 0;
    found = i + 1;
  }
  return found;
}

std::size_t level_of_tier(const Levels& levels, int tier) {
  const auto of_network = static_cast<std::size_t>(
      std::ranges::count_if(levels, [](const std::string& level) { return level != kNodeLevel; }));
  const auto counted = static_cast<std::size_t>(tier);
  return counted > 0 && counted <= of_network ? of_network + 1 - counted : 0;
}

/// The narrowest levels that are asked for, and what is none.
class WantedLevels {
 public:
  WantedLevels(const Levels& levels, const std::string& source)
      : levels_(levels), source_(source) {}

  void take(const NearWish& wish) {
    if (levels_.empty() && !wish.is_own) return;
    required = std::max(required, named(wish.required, kRequiredAnnotation, wish.is_own));
    preferred = std::max(preferred, named(wish.preferred, kPreferredAnnotation, wish.is_own));
    required = std::max(required, level_of_tier(levels_, wish.highest_tier));
    if (wish.is_near) preferred = std::max(preferred, level_of_tier(levels_, 1));
  }

  std::size_t required = 0;
  std::size_t preferred = 0;
  std::string trouble;

 private:
  std::size_t named(const std::string& name, std::string_view annotation, bool is_own) {
    if (name.empty()) return 0;
    const std::size_t level = level_called(levels_, name);
    if (level > 0 || !trouble.empty()) return level;
    const std::string shown = cut_end(printable(name), kMostOfLabel);
    const std::string said = is_own ? fmt::format("{} is '{}'", annotation, shown)
                                    : fmt::format("Its gang is to be in one domain of '{}'", shown);
    trouble =
        levels_.empty()
            ? fmt::format("{}, and the cluster has no such levels: {} names them.", said, source_)
            : fmt::format(
                  "{}, which is not one of the levels of {}: {}.", said, source_, to_text(levels_));
    return 0;
  }

  const Levels& levels_;
  const std::string& source_;
};

}  // namespace

std::string to_text(const Levels& levels) {
  return levels.empty() ? "none" : fmt::format("{}", fmt::join(levels, ", "));
}

std::string level_word(std::string_view label) {
  constexpr std::string_view kOften = "topology-";
  std::string_view word = last_part(label);
  if (word.starts_with(kOften) && word.size() > kOften.size()) word.remove_prefix(kOften.size());
  return std::string(word);
}

LevelsRead levels_of(const nlohmann::json& config_map, const Levels& before) {
  const std::string written = text(part(config_map, "data"), std::string(kLevelsKey).c_str());
  LevelsRead read;
  for (const std::string_view one : split(written, ',')) {
    const std::string_view label = trim(one);
    if (label.empty() && trim(written).empty()) break;
    const bool is_again = std::ranges::find(read.levels, label) != read.levels.end();
    if (!is_label(label) || is_again || read.levels.size() == kMostLevels) {
      return {before,
              fmt::format("{} names labels of nodes, the widest first, {} at most and each once, "
                          "with commas between, and '{}' is not such a one, keeping {}",
                          kLevelsKey,
                          kMostLevels,
                          cut_end(printable(label), kMostOfLabel),
                          to_text(before))};
    }
    read.levels.emplace_back(label);
  }
  return read;
}

NearWish near_wish_of(const nlohmann::json& metadata) {
  // What is longer is no label, and names none: all that was written is nobody's to keep.
  const auto noted = [&metadata](std::string_view name) {
    return kube::noted(metadata, name).substr(0, kMostOfLabel + 1);
  };
  NearWish wish{.required = noted(kRequiredAnnotation), .preferred = noted(kPreferredAnnotation)};
  wish.is_own = !wish.required.empty() || !wish.preferred.empty();
  if (wish.is_own) return wish;
  wish.required = noted("kueue.x-k8s.io/podset-required-topology");
  wish.preferred = noted("kueue.x-k8s.io/podset-preferred-topology");
  if (wish.required.empty()) {
    wish.required = noted("kai.scheduler/topology-required-placement");
  }
  if (wish.preferred.empty()) {
    wish.preferred = noted("kai.scheduler/topology-preferred-placement");
  }
  return wish;
}

NearGang near_gang_of(const Levels& levels,
                      const std::map<NearWish, std::size_t>& wishes,
                      const std::vector<std::string>& shared,
                      const std::string& source,
                      bool are_unread) {
  WantedLevels wanted(levels, source);
  Levels all;  // those that are no levels of the cluster come before these
  const auto add = [&](const std::string& label) {
    const bool is_known = std::ranges::find(levels, label) != levels.end() ||
                          std::ranges::find(all, label) != all.end();
    if (!label.empty() && !is_known && all.size() < kMostLevels) all.push_back(label);
  };
  for (const auto& [wish, pods] : wishes) wanted.take(wish);
  for (const auto& [wish, pods] : wishes) add(wish.key);
  const std::size_t required_of_all = all.size();
  for (const std::string& label : shared) add(label);
  const std::size_t before = all.size();
  all.insert(all.end(), levels.begin(), levels.end());
  const auto place_of = [&](const std::string& label) {
    const auto at = std::ranges::find(all, label);
    return at == all.end() ? std::size_t{0} : static_cast<std::size_t>(at - all.begin()) + 1;
  };
  NearGang gang{.near = {.levels = all}, .trouble = std::move(wanted.trouble)};
  const auto is_required = [](const auto& said) {
    return !said.first.required.empty() || said.first.highest_tier > 0;
  };
  if (are_unread && std::ranges::any_of(wishes, is_required)) {
    gang.trouble = fmt::format(
        "All of its gang have to be in one domain, and {} of {} cannot be read: see the log of "
        "gflow-kube.",
        kLevelsKey,
        source);
  }
  engine::Nearness& near = gang.near;
  near.required = wanted.required > 0 ? before + wanted.required : required_of_all;
  near.preferred = wanted.preferred > 0 ? before + wanted.preferred : 0;
  for (const auto& [wish, pods] : wishes) {
    if (!wish.key.empty()) near.required = std::max(near.required, place_of(wish.key));
  }
  for (const std::string& label : shared)
    near.preferred = std::max(near.preferred, place_of(label));
  return gang;
}

}  // namespace gflow::kube

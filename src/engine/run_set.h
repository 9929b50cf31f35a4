// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/job_id.h"

/// Inside of the engine: jobs in an order, where many have ids one behind the other, as those of an
/// array have. Not for other modules.
namespace gflow::engine {

/// What of a key is its job; keys in a run are alike but for that.
template <typename Key>
[[nodiscard]] auto& id_of(Key& key) {
  if constexpr (std::is_same_v<std::remove_const_t<Key>, JobId>) {
    return key;
  } else {
    return key.id;
  }
}

/// An ordered set that takes memory for each run of keys: a key and those behind it, alike, with
/// the next ids. What is sought, put in or taken out costs the logarithm of the number of runs.
/// Keys are ordered by their id at last; they are had by value.
template <typename Key>
class RunSet {
  using Runs = std::map<Key, std::uint64_t>;  ///< the first of each, and how many

 public:
  class Iterator {
   public:
    // NOLINTBEGIN(readability-identifier-naming): names the standard library looks for
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Key;
    using difference_type = std::ptrdiff_t;
    using pointer = const Key*;
    using reference = Key;
    // NOLINTEND(readability-identifier-naming)

    Iterator() = default;
    Key operator*() const { return behind(run_->first, offset_); }
    Iterator& operator++() {
      if (++offset_ < run_->second) return *this;
      ++run_;
      offset_ = 0;
      return *this;
    }
    Iterator& operator--() {
      if (offset_ == 0) {
        --run_;
        offset_ = run_->second;
      }
      --offset_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator operator--(int) {
      Iterator before = *this;
      --*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class RunSet;
    using Run = typename Runs::const_iterator;
    Iterator(Run run, std::uint64_t offset) : run_(run), offset_(offset) {}

    Run run_{};
    std::uint64_t offset_ = 0;
  };

  [[nodiscard]] Iterator begin() const { return {runs_.begin(), 0}; }
  [[nodiscard]] Iterator end() const { return {runs_.end(), 0}; }
  /// REQUIRES: not empty.
  [[nodiscard]] Key front() const { return *begin(); }
  [[nodiscard]] Key back() const { return *std::prev(end()); }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t runs() const { return runs_.size(); }

  [[nodiscard]] bool contains(const Key& key) const { return find(key).has_value(); }
  /// The first that is not before the key, or that is behind it.
  [[nodiscard]] Iterator lower_bound(const Key& key) const {
    if (const auto at = find(key)) return *at;
    return {runs_.upper_bound(key), 0};
  }
  [[nodiscard]] Iterator upper_bound(const Key& key) const {
    Iterator at = lower_bound(key);
    if (at != end() && *at == key) ++at;
    return at;
  }

  /// The key and those behind it, so many in all. REQUIRES: none is there and none between them.
  void insert(const Key& key, std::uint64_t count) {
    if (count == 0) return;
    insert(key);
    const auto run = std::prev(runs_.upper_bound(key));
    const std::uint64_t more = count - 1;
    size_ += more;
    run->second += more;
    const auto next = std::next(run);
    if (more == 0 || next == runs_.end() || next->first != behind(run->first, run->second)) return;
    run->second += next->second;
    runs_.erase(next);
  }

  void insert(const Key& key) {
    auto next = runs_.upper_bound(key);
    const bool joins_next = next != runs_.end() && next->first == behind(key, 1);
    if (next != runs_.begin()) {
      const auto before = std::prev(next);
      if (holds(*before, key)) return;
      if (behind(before->first, before->second) == key) {
        ++size_;
        ++before->second;
        if (!joins_next) return;
        before->second += next->second;
        runs_.erase(next);
        return;
      }
    }
    ++size_;
    if (!joins_next) {
      runs_.emplace_hint(next, key, 1);
      return;
    }
    rename(next, key, next->second + 1);
  }

  /// How many it took out: 1, or 0.
  std::size_t erase(const Key& key) {
    const auto found = find(key);
    if (!found) return 0;
    --size_;
    const auto run = runs_.find(found->run_->first);
    const std::uint64_t before = found->offset_;
    const std::uint64_t after = run->second - before - 1;
    if (before > 0) {
      run->second = before;
      if (after > 0) runs_.emplace_hint(std::next(run), behind(key, 1), after);
    } else if (after > 0) {
      rename(run, behind(key, 1), after);
    } else {
      runs_.erase(run);
    }
    return 1;
  }
  void clear() {
    runs_.clear();
    size_ = 0;
  }

  friend bool operator==(const RunSet&, const RunSet&) = default;

 private:
  static Key behind(Key key, std::uint64_t count) {
    id_of(key).value += count;
    return key;
  }
  static std::uint64_t offset_in(const typename Runs::value_type& run, const Key& key) {
    return id_of(key).value - id_of(run.first).value;
  }
  static bool holds(const typename Runs::value_type& run, const Key& key) {
    const std::uint64_t offset = offset_in(run, key);
    return offset < run.second && behind(run.first, offset) == key;
  }
  [[nodiscard]] std::optional<Iterator> find(const Key& key) const {
    auto run = runs_.upper_bound(key);
    if (run == runs_.begin()) return std::nullopt;
    --run;
    if (!holds(*run, key)) return std::nullopt;
    return Iterator(run, offset_in(*run, key));
  }
  void rename(typename Runs::iterator run, const Key& first, std::uint64_t count) {
    const auto next = std::next(run);
    auto node = runs_.extract(run);
    node.key() = first;
    node.mapped() = count;
    runs_.insert(next, std::move(node));
  }

  Runs runs_;
  std::size_t size_ = 0;
};

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace gflow {
class MessageCatalogue;
}

namespace gflow::server {

/// A document that stays as it is, and what every answer with it needs.
struct Made {
  std::string text;
  /// "" if that is no shorter; none: it is compressed for each who takes that.
  std::optional<std::string> zipped;
  std::string tag;  ///< its ETag
};

/// Documents that are the same as long as the daemon runs, but for the language: each is made,
/// compressed and digested when it is first asked for. From any thread.
class MadeOnce {
 public:
  /// In the language of this thread's messages.
  [[nodiscard]] std::shared_ptr<const Made> get(const std::string& name,
                                                const std::function<std::string()>& make);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, const MessageCatalogue*>, std::shared_ptr<const Made>> made_;
};

}  // namespace gflow::server

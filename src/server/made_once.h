// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace gflow {
class MessageCatalogue;
}

namespace gflow::server {

/// Documents that are the same as long as the daemon runs, but for the language: each is made when
/// it is first asked for. From any thread.
class MadeOnce {
 public:
  /// In the language of this thread's messages.
  [[nodiscard]] std::string get(const std::string& name, const std::function<std::string()>& make);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, const MessageCatalogue*>, std::string> made_;
};

}  // namespace gflow::server

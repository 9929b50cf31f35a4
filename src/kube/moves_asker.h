// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "kube/moves.h"
#include "kube/workers.h"

namespace gflow::kube {

/// Hands moves to the scheduler of a cluster by its ConfigMap, with the rights of who runs this, on
/// a thread of its own; what the scheduler says of them is told on the loop. Let go of this before
/// who asked.
class MovesAsker {
 public:
  struct Where {
    std::string name_space;  ///< of the scheduler
    std::string scheduler;   ///< schedulerName of its pods
  };
  MovesAsker(boost::asio::io_context& io,
             const Access& access,
             Credentials& credentials,
             const Where& where)
      : io_(io),
        path_(config_map_path(where.name_space, moves_name_of(where.scheduler))),
        workers_(access, credentials, 1) {}

  using Done = std::function<void(const Result<void>&)>;
  /// A request that nobody answers any more, as who asked has ended, is taken over. Errors:
  /// WrongState where the scheduler refuses, or makes room already: nothing is left to be done
  /// then; Timeout where none answers, and the request was taken back; else as the API server has
  /// it, where it is not known whether the request stands there.
  void ask(MovesAsked asked, Done then);

 private:
  struct Asking {
    MovesAsked asked;
    Done then;
    std::chrono::steady_clock::time_point until{};  ///< for an answer, to this or another
    std::string other{};  ///< resourceVersion of a request that stands there unanswered
    std::chrono::steady_clock::time_point last{};  ///< for others who asked before
    std::optional<Error> lost{};                   ///< why it is not known whether it was written
  };
  void begin(Api& api, Asking asking);
  void look(Api& api, Asking asking);
  [[nodiscard]] Result<MovesRecord> read(Api& api) const;
  [[nodiscard]] Error refused(const Answer& answer) const;
  [[nodiscard]] Result<bool> withdraw(Api& api, const MovesRecord& record) const;
  void tell(const Asking& asking, Result<void> how);

  boost::asio::io_context& io_;
  std::string path_;  ///< of the ConfigMap
  Workers workers_;
};

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "lab/simulation.h"
#include "lab/trace.h"

/// How queues go elsewhere, each written anew in its plainest form, to be measured beside ours:
/// equal nodes, whole GPUs, the node where least is left over.
namespace gflow::lab {

enum class QueuePeer {
  Fifo,      ///< the first that does not fit stops all behind it
  FirstFit,  ///< whatever fits starts, oldest first
  Guard,     ///< as FirstFit, but jobs that waited PeerRules::guard go before all others, and for
             ///< the oldest of them the nodes expected to be free first are kept until it starts
  Easy,      ///< as FirstFit, but never later than limits let the first blocked job start
             ///< (EASY backfill: Lifka, JSSPP 1995); jobs need a time limit
  Tiresias,  ///< two queues by attained service, parted at 36,000 GPU-seconds; the first goes
             ///< first, each by submission; preempts at will (after Gu et al., NSDI 2019)
};
[[nodiscard]] std::string_view queue_peer_name(QueuePeer peer);  ///< "first fit"

struct EqualNodes {
  int nodes = 1;
  int gpus = 8;  ///< of each
};

struct PeerRules {
  RunnerRules runner;
  std::chrono::seconds guard = std::chrono::days(7);  ///< of QueuePeer::Guard
};

/// What becomes of these jobs. A job that wants more GPUs than a node has gets whole nodes, as many
/// as it needs. Jobs that can never fit do not end. `jobs` by submission.
[[nodiscard]] std::vector<Life> play_peer(QueuePeer peer,
                                          const std::vector<TraceJob>& jobs,
                                          const EqualNodes& machines,
                                          const PeerRules& rules);

}  // namespace gflow::lab

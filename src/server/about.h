// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/operation.h"

/// What is told of each route, beside its handler in the table of routes.cpp: summary, documents,
/// examples. Each is in the about_*.cpp named above it, with the table of what its query may have
/// (api::query_table). Examples are executed by tests/e2e/test_openapi.py.
namespace gflow::server::about {

// about_jobs.cpp
extern const api::Operation kListJobs;
extern const api::Operation kSubmitJobs;
extern const api::Operation kCheckJobs;
extern const api::Operation kUpdateJobs;
extern const api::Operation kCancelJobs;
extern const api::Operation kSignalJobs;
extern const api::Operation kHoldJobs;
extern const api::Operation kReleaseJobs;
extern const api::Operation kSuspendJobs;
extern const api::Operation kResumeJobs;
extern const api::Operation kShowJob;
extern const api::Operation kUpdateJob;
extern const api::Operation kCancelJob;
extern const api::Operation kSuspendJob;
extern const api::Operation kResumeJob;
extern const api::Operation kMoveJob;
extern const api::Operation kExplainJob;
extern const api::Operation kShowQueue;
extern const api::Operation kShowDefrag;
extern const api::Operation kApplyDefrag;
extern const api::Operation kShowNewestJob;
extern const api::Operation kShowJobLog;
extern const api::Operation kWaitForChange;
extern const api::Operation kListenToEvents;
// about_groups.cpp
extern const api::Operation kListGroups;
extern const api::Operation kShowGroup;
extern const api::Operation kShowStatistics;
// about_machine.cpp
extern const api::Operation kListNodes;
extern const api::Operation kShowNode;
extern const api::Operation kListDevices;
extern const api::Operation kShowDevice;
extern const api::Operation kShowTopology;
extern const api::Operation kShowMachine;
extern const api::Operation kShowPlace;
extern const api::Operation kShowSnapshot;
extern const api::Operation kListDrains;
extern const api::Operation kChangeDrain;
// about_daemon.cpp
extern const api::Operation kShowDaemon;
extern const api::Operation kStopDaemon;
extern const api::Operation kReloadDaemon;
extern const api::Operation kShowPrincipal;
extern const api::Operation kShowSettings;
extern const api::Operation kShowOpenapi;
extern const api::Operation kShowDocs;
extern const api::Operation kShowDocsStyle;
extern const api::Operation kShowDocsScript;
extern const api::Operation kShowHealth;
extern const api::Operation kShowReadiness;
extern const api::Operation kShowVersion;
extern const api::Operation kShowMetrics;
// about_tokens.cpp
extern const api::Operation kListTokens;
extern const api::Operation kCreateToken;
extern const api::Operation kRevokeToken;
// about_gpu.cpp
extern const api::Operation kShowGpuStatus;
extern const api::Operation kListGpuNodes;
extern const api::Operation kShowGpuHealth;
extern const api::Operation kShowGpuMonitoring;
extern const api::Operation kValidateGpuNeed;
extern const api::Operation kAllocateGpus;
extern const api::Operation kSetUpPytorch;
extern const api::Operation kSetUpTensorflow;
extern const api::Operation kCleanUpGpus;
extern const api::Operation kListGpuAllocations;
extern const api::Operation kShowGpuAllocation;
extern const api::Operation kReleaseGpuAllocation;
extern const api::Operation kRenewGpuAllocation;

}  // namespace gflow::server::about

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/mig_gpu.h"
#include "devices/sim/machine_file.h"

/// GPU instances that were made of simulated GPUs, as a driver remembers them: in a file beside the
/// machine file, which is left as its author wrote it.
namespace gflow::devices::sim {

struct MadeInstance {
  std::string gpu;  ///< UUID
  MigInstance instance;
  std::string uuid{};  ///< of its MIG device; "": it has no compute instance

  friend bool operator==(const MadeInstance&, const MadeInstance&) = default;
};

/// What that file says.
struct MadeInstances {
  int counted = 0;  ///< compute instances made so far: no UUID is given twice
  std::vector<MadeInstance> all;

  friend bool operator==(const MadeInstances&, const MadeInstances&) = default;
};

/// "lab.yaml.made" of "lab.yaml".
[[nodiscard]] std::string made_file(const std::string& machine_file);
/// Nothing was made where there is no such file. Errors: it cannot be read.
[[nodiscard]] Result<MadeInstances> read_made(const std::string& machine_file);
[[nodiscard]] Result<void> write_made(const std::string& machine_file, const MadeInstances& made);

/// The machine of a file, with what was made since. Errors: as of read_machine().
[[nodiscard]] Result<SimMachine> load_machine(const std::string& machine_file);

/// The GPU with that UUID as a driver tells of it; null if it has none with MIG.
[[nodiscard]] const SimDevice* mig_device(const SimMachine& machine, const std::string& gpu);

/// Makes an instance, its compute instance, and undoes both, as calls of a driver do. Errors: what
/// that says.
[[nodiscard]] Result<MigInstance> make_instance(const std::string& machine_file,
                                                const std::string& gpu,
                                                const std::string& profile,
                                                int start);
[[nodiscard]] Result<std::string> make_compute(const std::string& machine_file,
                                               const std::string& gpu,
                                               int id);
[[nodiscard]] Result<void> destroy_compute(const std::string& machine_file,
                                           const std::string& gpu,
                                           int id);
[[nodiscard]] Result<void> destroy_instance(const std::string& machine_file,
                                            const std::string& gpu,
                                            int id);

}  // namespace gflow::devices::sim

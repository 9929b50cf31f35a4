// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/source.h"

#include "devices/sim/file_source.h"
#include "devices/sim/machine_file.h"

namespace gflow::devices::sim {
namespace {

class FixedSource final : public Source {
 public:
  explicit FixedSource(Machine machine) : machine_(std::move(machine)) {}
  [[nodiscard]] const Machine& machine() const override { return machine_; }

 private:
  Machine machine_;
};

bool is_path(std::string_view text) {
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.contains('/');
}

}  // namespace

Result<std::unique_ptr<Source>> open(const std::string& text) {
  if (is_path(text)) return FileSource::open(text);
  const SimMachine machine = GF_TRY(machine_of_models(text));
  return std::make_unique<FixedSource>(machine_of(machine, "sim:" + text));
}

}  // namespace gflow::devices::sim

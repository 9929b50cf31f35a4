// SPDX-License-Identifier: Apache-2.0
#include "api/config_view.h"
#include "api/json_writer.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::api {

template <class Io, Like<ConfigCheckView::Problem> T>
void fields(Io& io, T& problem) {
  io.field("line", problem.line);
  io.field("message", problem.message);
}

template <class Io, Like<ConfigCheckView::File> T>
void fields(Io& io, T& file) {
  io.field("path", file.path);
  io.field("exists", file.exists);
  io.field("problems", file.problems);
  io.field("notes", file.notes);
}

template <class Io, Like<ConfigCheckView> T>
void fields(Io& io, T& check) {
  io.field("files", check.files);
}

template <class Io, Like<ConfigChangeView> T>
void fields(Io& io, T& change) {
  io.field("file", change.file);
  io.field("name", change.name);
  io.field("before", change.before);
  io.field("value", change.value);
  io.field("state", change.state);
  io.field("origin", change.origin);
}

std::string for_restart_text(const std::vector<std::string>& settings) {
  return tr_format("changed, but only 'gflowd restart' takes it up, which leaves jobs running: {}",
                   join(settings, ", "));
}

std::string write(const ConfigCheckView& check) { return Writer::document("ConfigCheck", check); }

std::string write(const ConfigChangeView& change) {
  return Writer::document("ConfigChange", change);
}

}  // namespace gflow::api

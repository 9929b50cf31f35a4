// SPDX-License-Identifier: Apache-2.0
#include "server/made_once.h"

#include "base/translate.h"
#include "server/compression.h"
#include "server/entity_tag.h"

namespace gflow::server {
namespace {

std::shared_ptr<const Made> made_of(std::string text) {
  auto made = std::make_shared<Made>();
  made->text = std::move(text);
  made->zipped = gzip(made->text);
  if (made->zipped->size() >= made->text.size()) made->zipped->clear();
  made->tag = tag_of_text(made->text);
  return made;
}

}  // namespace

std::shared_ptr<const Made> MadeOnce::get(const std::string& name,
                                          const std::function<std::string()>& make) {
  const std::lock_guard lock(mutex_);
  auto [at, is_new] = made_.try_emplace({name, messages_in_use()});
  if (is_new) at->second = made_of(make());
  return at->second;
}

}  // namespace gflow::server

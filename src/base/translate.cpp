// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"

#include <atomic>

namespace gflow {

namespace {

std::atomic<const MessageCatalogue*>& messages() {
  static std::atomic<const MessageCatalogue*> catalogue{nullptr};
  return catalogue;
}

/// What MessagesOfThread said.
struct OfThread {
  const MessageCatalogue* catalogue = nullptr;
  bool is_set = false;
};
OfThread& of_thread() {
  static thread_local OfThread own;
  return own;
}

}  // namespace

const MessageCatalogue* messages_in_use() {
  const OfThread& own = of_thread();
  return own.is_set ? own.catalogue : messages().load(std::memory_order_acquire);
}

MessagesOfThread::MessagesOfThread(const MessageCatalogue* catalogue)
    : before_(of_thread().catalogue), was_set_(of_thread().is_set) {
  of_thread() = {catalogue, true};
}
MessagesOfThread::~MessagesOfThread() { of_thread() = {before_, was_set_}; }

void set_messages(const MessageCatalogue* catalogue) { messages().store(catalogue); }

std::string tr(std::string_view english) {
  const std::string_view translated = detail::translation_of(english, 1);
  return std::string(translated.empty() ? english : translated);
}

namespace detail {

std::string_view translation_of(std::string_view english, std::uint64_t count) {
  const MessageCatalogue* catalogue = messages_in_use();
  // The empty message is the head of a catalogue.
  return catalogue == nullptr || english.empty() ? "" : catalogue->find(english, count);
}

std::string format_either(std::string_view translated,
                          std::string_view english,
                          fmt::format_args values) {
  if (!translated.empty()) {
    try {
      return fmt::vformat(fmt::string_view(translated.data(), translated.size()), values);
    } catch (const fmt::format_error&) {  // the translator's mistake, not the reader's
    }
  }
  return fmt::vformat(fmt::string_view(english.data(), english.size()), values);
}

}  // namespace detail

}  // namespace gflow

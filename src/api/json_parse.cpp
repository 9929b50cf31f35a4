// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/json_value.h"
#include "base/text.h"

namespace gflow::api {
namespace {

/// Builds the tree while the text is read, so that a document over a limit costs no more than it.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return add(static_cast<double>(value));
    }
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override {
    return refuse(Code::Usage, "there is no binary value in JSON");
  }
  bool start_object(std::size_t /*size*/) override { return open<Value::Object>(); }
  bool key(string_t& name) override;
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open<Value::Array>(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position,
                   const std::string& token,
                   const nlohmann::json::exception& error) override;

  [[nodiscard]] Result<Value> take(bool complete);

 private:
  bool refuse(Code code, std::string message) {
    if (!error_) error_ = Error{code, std::move(message)};
    return false;
  }
  /// A null where the next value goes, or a null pointer if the document is full.
  Value* place();
  template <typename T>
  bool add(T value) {
    Value* placed = place();
    if (placed != nullptr) placed->data.emplace<T>(std::move(value));
    return placed != nullptr;
  }
  template <typename Container>
  bool open() {
    if (open_.size() >= kMaxDepth) {
      return refuse(Code::Usage,
                    fmt::format("the document is nested more than {} deep", kMaxDepth));
    }
    Value* placed = place();
    if (placed == nullptr) return false;
    placed->data.emplace<Container>();
    open_.push_back(placed);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Value root_;
  std::vector<Value*> open_;  // a container does not move while one inside it is open
  std::size_t values_ = 0;
  std::optional<Error> error_;
};

Value* Builder::place() {
  if (++values_ > kMaxValues) {
    refuse(Code::Usage, fmt::format("the document holds more than {} values", kMaxValues));
    return nullptr;
  }
  if (open_.empty()) return &root_;
  if (auto* array = std::get_if<Value::Array>(&open_.back()->data)) return &array->emplace_back();
  return &std::get<Value::Object>(open_.back()->data).back().value;
}

bool Builder::key(string_t& name) {
  auto& object = std::get<Value::Object>(open_.back()->data);
  if (object.size() >= kMaxMembers) {
    return refuse(Code::Usage, fmt::format("an object has more than {} members", kMaxMembers));
  }
  for (const Member& member : object) {
    if (member.name == name) {
      return refuse(Code::Usage,
                    fmt::format("'{}' stands twice in one object", printable(name.substr(0, 100))));
    }
  }
  object.emplace_back().name = std::move(name);
  return true;
}

bool Builder::parse_error(std::size_t position,
                          const std::string& /*token*/,
                          const nlohmann::json::exception& error) {
  // The library's sentence comes after its own "[json.exception.parse_error.101] ".
  std::string_view what = error.what();
  if (const auto end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  return refuse(Code::Usage,
                fmt::format("not JSON at byte {}: {}", position, printable(what.substr(0, 200))));
}

Result<Value> Builder::take(bool complete) {
  if (error_) return std::unexpected(std::move(*error_));
  if (!complete) return fail(Code::Usage, "not JSON");
  return std::move(root_);
}

}  // namespace

Result<Value> parse_json(std::string_view json) {
  Builder builder;
  const bool complete = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  return builder.take(complete);
}

std::string Value::text() const {
  struct Text {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{}", value); }
    std::string operator()(const std::string& value) const {
      if (value.size() > 60) return "a long string";
      return fmt::format("'{}'", printable(value));
    }
    std::string operator()(const Array&) const { return "an array"; }
    std::string operator()(const Object&) const { return "an object"; }
  };
  return std::visit(Text{}, data);
}

}  // namespace gflow::api

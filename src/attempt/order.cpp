// SPDX-License-Identifier: Apache-2.0
#include "attempt/order.h"

#include <utility>

#include "base/text_fields.h"

namespace gflow::attempt {
namespace {

template <typename T>
bool set_number(std::string_view value, T& field) {
  const auto number = number_of<T>(value);
  if (number) field = *number;
  return number.has_value();
}

bool set_seconds(std::string_view value, std::chrono::seconds& field) {
  const auto number = number_of<std::uint32_t>(value);
  if (number) field = std::chrono::seconds(*number);
  return number.has_value();
}

/// "SHARE_PARTS" or "SHARE_PARTS..SHARE_LIMIT_PARTS".
bool set_share(std::string_view value, Grant& grant) {
  constexpr std::string_view kTo = "..";
  const std::size_t to = value.find(kTo);
  if (to == std::string_view::npos) return set_number(value, grant.share_parts);
  return set_number(value.substr(0, to), grant.share_parts) &&
         set_number(value.substr(to + kTo.size()), grant.share_limit_parts);
}

/// "INDEX SHARE MEMORY_BYTES VENDOR UUID".
bool set_device(std::string_view value, std::vector<Grant>& devices) {
  Grant grant;
  const bool understood = set_number(take_field(value, ' '), grant.index) &&
                          set_share(take_field(value, ' '), grant) &&
                          set_number(take_field(value, ' '), grant.memory_bytes);
  grant.vendor = take_field(value, ' ');
  grant.uuid = value;
  devices.push_back(std::move(grant));
  return understood;
}

bool set_nodes(std::string_view value, std::vector<DeviceNodes>& list) {
  const auto nodes = parse_device_nodes(value);
  if (nodes) list.push_back(*nodes);
  return nodes.has_value();
}

std::string device_text(const Grant& grant) {
  std::string text = std::to_string(grant.index);
  text.append(" ").append(std::to_string(grant.share_parts));
  if (grant.share_limit_parts != 0) {
    text.append("..").append(std::to_string(grant.share_limit_parts));
  }
  text.append(" ").append(std::to_string(grant.memory_bytes));
  return text.append(" ").append(grant.vendor).append(" ").append(grant.uuid);
}

bool set_number_field(Order& order, std::string_view key, std::string_view value) {
  if (key == "job") return set_number(value, order.job);
  if (key == "attempt") return set_number(value, order.attempt);
  if (key == "umask") return set_number(value, order.umask) && order.umask <= 0777;
  if (key == "mark") return set_number(value, order.mark);
  if (key == "open_files") return set_number(value, order.open_files);
  if (key == "uid") return set_number(value, order.uid.emplace());
  if (key == "time_limit") return set_seconds(value, order.time_limit.emplace());
  if (key == "cpu") return set_number(value, order.cpus.emplace_back());
  if (key == "grace") return set_seconds(value, order.grace);
  if (key == "device") return set_device(value, order.devices);
  if (key == "denied") return set_nodes(value, order.filter.denied);
  if (key == "cpu_limit") return set_number(value, order.cpu_limit);
  if (key == "memory_limit") return set_number(value, order.memory_limit);
  return false;
}

std::string* text_field(Order& order, std::string_view key) {
  if (key == "launch_id") return &order.launch_id;
  if (key == "boot_id") return &order.boot_id;
  if (key == "node") return &order.node;
  if (key == "gpu_mode") return &order.gpu_mode;
  if (key == "work_dir") return &order.work_dir;
  if (key == "log_path") return &order.log_path;
  if (key == "script") return &order.script;
  if (key == "kill_cgroup") return &order.kill_cgroup;
  if (key == "memory_cgroup") return &order.memory_cgroup;
  if (key == "freeze_cgroup") return &order.freeze_cgroup;
  if (key == "isolation") return &order.isolation;
  if (key == "argv") return &order.argv.emplace_back();
  if (key == "environment") return &order.environment.emplace_back();
  if (key == "cgroup") return &order.cgroups.emplace_back();
  return nullptr;
}

bool set_field(Order& order, std::string_view key, std::string_view value) {
  if (std::string* text = text_field(order, key)) {
    *text = value;
    return true;
  }
  return set_number_field(order, key, value);
}

class Writer {
 public:
  Writer& put(std::string_view key, std::string_view value) {
    has_nul_ = has_nul_ || value.find('\0') != std::string_view::npos;
    text_.append(key).append("=").append(value).push_back('\0');
    return *this;
  }
  Writer& put(std::string_view key, const std::vector<std::string>& values) {
    for (const std::string& value : values) put(key, value);
    return *this;
  }
  [[nodiscard]] bool has_nul() const { return has_nul_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  bool has_nul_ = false;
};

}  // namespace

std::expected<std::string, std::string> encode_order(const Order& order) {
  Writer writer;
  writer.put("protocol", std::to_string(kOrderProtocol)).put("job", std::to_string(order.job));
  writer.put("attempt", std::to_string(order.attempt)).put("launch_id", order.launch_id);
  writer.put("mark", std::to_string(order.mark));
  writer.put("boot_id", order.boot_id).put("node", order.node).put("gpu_mode", order.gpu_mode);
  for (const Grant& grant : order.devices) writer.put("device", device_text(grant));
  writer.put("cpu_limit", std::to_string(order.cpu_limit));
  writer.put("memory_limit", std::to_string(order.memory_limit));
  if (order.uid) writer.put("uid", std::to_string(*order.uid));
  writer.put("work_dir", order.work_dir).put("log_path", order.log_path);
  writer.put("script", order.script).put("argv", order.argv);
  writer.put("environment", order.environment).put("umask", std::to_string(order.umask));
  writer.put("open_files", std::to_string(order.open_files));
  if (order.time_limit) writer.put("time_limit", std::to_string(order.time_limit->count()));
  writer.put("grace", std::to_string(order.grace.count())).put("cgroup", order.cgroups);
  writer.put("kill_cgroup", order.kill_cgroup).put("memory_cgroup", order.memory_cgroup);
  writer.put("freeze_cgroup", order.freeze_cgroup);
  for (const std::uint32_t cpu : order.cpus) writer.put("cpu", std::to_string(cpu));
  if (!order.isolation.empty()) {
    writer.put("isolation", order.isolation);
    for (const DeviceNodes& one : order.filter.denied) writer.put("denied", device_nodes_text(one));
  }
  writer.put("end", "");
  if (writer.has_nul()) {
    return std::unexpected("an argument, a variable or a path contains a NUL byte");
  }
  return writer.take();
}

std::expected<Order, std::string> decode_order(std::string_view text) {
  if (take_field(text, '\0') != "protocol=" + std::to_string(kOrderProtocol)) {
    return std::unexpected("the launch order is not of protocol " + std::to_string(kOrderProtocol));
  }
  Order order;
  while (!text.empty()) {
    std::string_view record = take_field(text, '\0');
    if (record == "end=") {
      if (order.argv.empty()) return std::unexpected("the launch order names no program");
      return order;
    }
    const std::string_view key = take_field(record, '=');
    if (!set_field(order, key, record)) {
      return std::unexpected("the launch order has a field that is not understood: " +
                             std::string(key.substr(0, 40)));
    }
  }
  return std::unexpected("the launch order is cut short");
}

}  // namespace gflow::attempt

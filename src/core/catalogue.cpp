// SPDX-License-Identifier: Apache-2.0
#include "core/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "core/mig_profile.h"

namespace gflow::catalogue {
namespace {

/// A name taken apart: "NVIDIA A100-SXM4-80GB" is A100 and 80.
struct Parts {
  std::string base;   ///< upper case, no separators
  int gigabytes = 0;  ///< 0: not said
};

constexpr std::size_t kMaxName = 128;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return ascii_upper(c) >= 'A' && ascii_upper(c) <= 'Z'; }
bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

/// Removes everything in round brackets; of "Navi 31 [Radeon RX 7900 XT/7900 XTX]" what stands in
/// the square ones, and the first of several names parted by "/".
std::string without_asides(std::string_view text) {
  const std::size_t open = text.rfind('[');
  const std::size_t close = text.rfind(']');
  if (open != std::string_view::npos && close != std::string_view::npos && open + 1 < close) {
    text = text.substr(open + 1, close - open - 1);
  }
  std::string kept;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) kept += c;
    if (c == ')' && depth > 0) --depth;
  }
  const std::size_t slash = kept.find('/');
  return slash == 0 || slash == std::string::npos ? kept : kept.substr(0, slash);
}

/// The words of a name in upper case; whatever is neither letter nor digit parts them.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool open = false;
  for (const char c : text) {
    const bool belongs = is_digit(c) || is_letter(c);
    if (belongs && !open) words.emplace_back();
    if (belongs) words.back() += ascii_upper(c);
    open = belongs;
  }
  return words;
}

/// Words that say who made or sells it, how it is built in or what memory it has, not what it is.
bool is_noise(std::string_view word) {
  constexpr std::array kNoise = std::to_array<std::string_view>(
      {"NVIDIA", "TESLA",     "GEFORCE",   "QUADRO",  "GRID",   "AMD",         "ATI",
       "RADEON", "INSTINCT",  "INTEL",     "ARC",     "DATA",   "CENTER",      "GPU",
       "NPU",    "GRAPHICS",  "CARD",      "ADAPTER", "DEVICE", "GENERATION",  "CORPORATION",
       "INC",    "HUAWEI",    "ASCEND",    "LAPTOP",  "MOBILE", "PCIE",        "PCI",
       "NVL",    "OAM",       "MCM",       "MBA",     "FHHL",   "DGXS",        "DGX",
       "HGX",    "LS",        "EDITION",   "SERVER",  "ACTIVE", "WORKSTATION", "BLACKWELL",
       "SHARED", "SUPERCHIP", "PROCESSOR", "CUSTOM",  "3E"});
  if (std::ranges::find(kNoise, word) != kNoise.end()) return true;
  return (word.starts_with("SXM") && word.size() <= 4) ||
         (word.starts_with("HBM") && word.size() <= 5);
}

/// "80GB", "80G", "80GIB" is 80, anything else 0.
int size_word(std::string_view word) {
  const std::size_t digits = word.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || digits > 3) return 0;
  const std::string_view unit = word.substr(digits);
  if (unit != "G" && unit != "GB" && unit != "GIB") return 0;
  return static_cast<int>(parse_number(word.substr(0, digits)).value_or(0));
}

/// What follows says how the device is divided or which board it is on: "MIG 1g.5gb", "PG509 200",
/// "with Max-Q Design".
bool ends_name(std::span<const std::string> words, std::size_t at) {
  const std::string& word = words[at];
  if (word == "MIG" || word == "WITH") return true;
  if (word.starts_with("PG") && is_number(std::string_view(word).substr(2))) return true;
  return word == "MAX" && at + 1 < words.size() && words[at + 1] == "Q";
}

/// A virtual GPU's profile: the "12Q" of "A40-12Q", after a name.
bool is_profile(std::string_view word) {
  return word.size() <= 3 && is_number(word.substr(0, word.size() - 1)) &&
         std::string_view("ABCQ").find(word.back()) != std::string_view::npos;
}

bool is_unit(std::string_view word) { return word == "G" || word == "GB" || word == "GIB"; }

/// The words that make the name, the size taken out.
std::vector<std::string> telling_words(std::span<const std::string> words, int& gigabytes) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!kept.empty() && ends_name(words, i)) break;
    if (const int size = size_word(word); size > 0) {
      gigabytes = size;
      continue;
    }
    if (!kept.empty() && is_unit(word) && is_number(kept.back()) && kept.back().size() <= 3) {
      gigabytes = static_cast<int>(parse_number(kept.back()).value_or(0));
      kept.pop_back();
      continue;
    }
    const bool pro = word == "PRO" && (kept.empty() || kept.back() != "RTX");
    const bool after = !kept.empty() && (word == "H" || word == "AC" || is_profile(word));
    if (!pro && !after && !is_noise(word)) kept.push_back(word);
  }
  return kept;
}

bool has_size(const Listed& model, int gigabytes) {
  return std::ranges::find(model.sizes, gigabytes) != model.sizes.end();
}

std::string spelled(const std::string& upper);

/// "V100M32" and "A100 40" without a unit: a size if there is such a model with it.
void take_bare_size(std::vector<std::string>& words, Parts& parts) {
  if (words.empty() || parts.gigabytes != 0) return;
  std::string rest;
  std::string digits;
  if (words.size() > 1) {
    digits = words.back();
    for (std::size_t i = 0; i + 1 < words.size(); ++i) rest += words[i];
  } else if (const std::size_t m = words.back().rfind('M'); m != std::string::npos) {
    digits = words.back().substr(m + 1);
    rest = words.back().substr(0, m);
  }
  if (!is_number(digits) || digits.size() > 3) return;
  const auto size = static_cast<int>(parse_number(digits).value_or(0));
  // "910B4-1" is the 910B4 with 64 GB.
  const bool bigger_910b4 = rest == "910B4" && digits == "1";
  const Listed* model = find(spelled(rest));
  if (!bigger_910b4 && (model == nullptr || !has_size(*model, size))) return;
  parts.gigabytes = bigger_910b4 ? 64 : size;
  words = {rest};
}

/// Drops makers before a name and forms after it, where they are written as one word with it.
std::string_view without_glued(std::string_view name) {
  constexpr std::array kBefore = std::to_array<std::string_view>({"NVIDIA",
                                                                  "TESLA",
                                                                  "GEFORCE",
                                                                  "QUADRO",
                                                                  "AMD",
                                                                  "RADEON",
                                                                  "INSTINCT",
                                                                  "INTEL",
                                                                  "ARC",
                                                                  "HUAWEI",
                                                                  "ASCEND"});
  constexpr std::array kAfter = std::to_array<std::string_view>(
      {"SXM", "SXM2", "SXM3", "SXM4", "SXM5", "SXM6", "PCIE", "NVL", "OAM"});
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view word : kBefore) {
      if (name.size() <= word.size() || !name.starts_with(word)) continue;
      name.remove_prefix(word.size());
      changed = true;
    }
    for (const std::string_view word : kAfter) {
      if (name.size() <= word.size() || !name.ends_with(word)) continue;
      name.remove_suffix(word.size());
      changed = true;
    }
  }
  return name;
}

/// The same of a number of three digits: 950 to 999 are GTX.
std::string_view series_of_three(std::string_view number, std::string_view rest) {
  if (number[0] != '9' || number[1] < '5') return "";
  return rest.empty() || rest == "TI" || rest == "M" ? "GTX" : "";
}

/// The series of a bare number: "3090" is RTX3090, "1080TI" GTX1080TI, "7900XTX" RX7900XTX. Before
/// the 20 series NVIDIA wrote GTX.
std::string_view series_of(std::string_view name) {
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::string_view number = name.substr(0, digits);
  const std::string_view rest = name.substr(digits);
  if (number.size() == 3) return series_of_three(number, rest);
  if (number.size() != 4) return "";
  if (rest.starts_with("XT") || rest == "GRE") return "RX";
  const bool series = number[2] >= '5' && number[3] == '0';  // 3050 to 3090
  if (series && number[0] == '1') return number[1] == '0' || number[1] == '6' ? "GTX" : "";
  if (series && number[1] == '0' && number[0] >= '2' && number[0] <= '5') return "RTX";
  const bool round = number.ends_with("000") && number[0] >= '3' && number[0] <= '8';
  const bool ada = rest == "ADA" && number[3] == '0' && number[0] >= '2' && number[0] <= '6';
  return (round && rest.empty()) || ada ? "RTX" : "";
}

/// One spelling of what is written in several ways.
std::string settled(std::string_view vendor, std::string_view glued) {
  std::string name(without_glued(glued));
  if (name.ends_with("SUPER") && name.size() > 5) name.resize(name.size() - 4);
  if (name.starts_with("RTXA") && name.size() > 4 && is_digit(name[4])) name.erase(0, 3);
  if (name == "VII" || name == "PROVII") name = "RADEONVII";
  // The die of an Atlas A3 calls itself Ascend910_93nn.
  if (name.size() == 7 && name.starts_with("91093") && is_number(name)) name = "910C";
  if (vendor == "ascend") return name;  // its numbers are not those of desktop cards
  return std::string(series_of(name)) + name;
}

/// The upper-case name as it is written: "RTX3090Ti", "RTX6000Ada", "Max1550".
std::string spelled(const std::string& upper) {
  std::string name = upper;
  const auto lower_tail = [&name](std::size_t from, std::size_t length) {
    for (std::size_t i = from; i < from + length; ++i) name[i] = to_lower(name.substr(i, 1))[0];
  };
  for (std::size_t i = 1; i + 1 < name.size(); ++i) {
    const bool ends = i + 2 == name.size() || name[i + 2] == 'S';
    if (name[i] == 'T' && name[i + 1] == 'I' && is_digit(name[i - 1]) && ends) lower_tail(i + 1, 1);
  }
  const std::size_t size = name.size();
  if (name.starts_with("RTX") && name.ends_with("ADA")) lower_tail(size - 2, 2);
  if (size > 3 && name.starts_with("MAX") && is_digit(name[3])) lower_tail(1, 2);
  if (size > 4 && name.starts_with("FLEX") && is_digit(name[4])) lower_tail(1, 3);
  if (name == "RADEONVII") name = "RadeonVII";
  return name;
}

Parts parts_once(std::string_view vendor, std::string_view text) {
  Parts parts;
  std::vector<std::string> words = words_of(without_asides(text));
  std::vector<std::string> telling = telling_words(words, parts.gigabytes);
  take_bare_size(telling, parts);
  if (telling.empty()) {  // all noise: then that is its name
    telling = words;
    if (std::erase_if(words, size_word) < telling.size()) telling = words;
  }
  const std::string joined = join(telling, "");
  parts.base = settled(vendor, joined);
  if (parts.base == "GH200") parts.gigabytes = 0;  // its name says the memory of the host
  return parts;
}

/// Until it stays: what is left may itself be a word of the rules.
Parts parts_of(std::string_view vendor, std::string_view text) {
  Parts parts = parts_once(vendor, text.substr(0, kMaxName));
  for (int turn = 0; turn < 8; ++turn) {
    Parts again = parts_once(vendor, parts.base);
    if (again.base == parts.base || again.base.empty()) break;
    if (parts.gigabytes == 0) parts.gigabytes = again.gigabytes;
    parts.base = std::move(again.base);
  }
  parts.base = spelled(parts.base);
  return parts;
}

/// The size of the list nearest to an amount, if it is near: what a driver reports lacks up to a
/// sixteenth that error correction takes. 0: none.
int listed_size(const Listed& model, double gigabytes) {
  int best = 0;
  for (const int size : model.sizes) {
    if (gigabytes < 0.85 * size || gigabytes > 1.1 * size) continue;
    if (best == 0 || std::abs(gigabytes - size) < std::abs(gigabytes - best)) best = size;
  }
  return best;
}

std::string with_size(const std::string& base, int gigabytes) {
  return gigabytes > 0 ? fmt::format("{}-{}G", base, gigabytes) : base;
}

/// A name with its MIG profile taken out: "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
struct Sliced {
  std::string_view name;  ///< "NVIDIA A100-SXM4-40GB"; "" where the profile stands alone
  std::string profile;    ///< "" for a whole GPU
};

Sliced sliced_name(std::string_view text) {
  const auto found = find_mig_profile(text);
  if (!found) return {text, ""};
  const auto before_marks = [](std::string_view name) {
    const std::size_t last = name.find_last_not_of(" -_");
    return name.substr(0, last == std::string_view::npos ? 0 : last + 1);
  };
  std::string_view name = before_marks(text.substr(0, found->begin));
  if (to_lower(name).ends_with("mig")) name = before_marks(name.substr(0, name.size() - 3));
  return {name, mig_profile_text(found->profile)};
}

std::string with_profile(const Sliced& sliced, const std::string& gpu) {
  if (sliced.profile.empty() || gpu.empty()) return gpu + sliced.profile;
  return fmt::format("{}-{}", gpu, sliced.profile);
}

/// The size in a name as device_model() writes it: 80 of "A100-80G", else 0.
int size_in(std::string_view model) {
  const std::string_view base = without_size(model);
  return base.size() == model.size() ? 0 : size_word(model.substr(base.size() + 1));
}

}  // namespace

std::string short_model(std::string_view vendor, std::string_view name) {
  const Sliced sliced = sliced_name(name);
  return with_profile(sliced, parts_of(vendor, sliced.name).base);
}

std::string device_model(std::string_view vendor,
                         std::string_view name,
                         std::optional<Memory> memory) {
  if (find_mig_profile(name)) return short_model(vendor, name);  // which says its size
  const Parts parts = parts_of(vendor, name);
  const Listed* model = find(parts.base);
  if (model == nullptr) return with_size(parts.base, parts.gigabytes);
  if (model->sizes.size() < 2) return parts.base;
  if (!memory) return with_size(parts.base, listed_size(*model, parts.gigabytes));
  return with_size(parts.base, listed_size(*model, static_cast<double>(memory->bytes) / 0x1p30));
}

std::string read_model(std::string_view text) {
  if (text.size() > kMaxName) return "";
  if (find(text) != nullptr) return std::string(text);  // as most people write it
  if (const Sliced sliced = sliced_name(text); !sliced.profile.empty()) {
    const std::string gpu = read_model(sliced.name);
    const bool is_one = sliced.name.empty() || !gpu.empty();
    return is_one ? with_profile(sliced, std::string(without_size(gpu))) : "";
  }
  const Parts parts = parts_of("", text);
  const Listed* model = find(parts.base);
  if (model == nullptr) {
    const bool plausible = std::ranges::any_of(parts.base, is_digit) &&
                           std::ranges::any_of(parts.base, is_letter) &&
                           size_word(words_of(parts.base).front()) == 0;
    return plausible ? with_size(parts.base, parts.gigabytes) : "";
  }
  if (parts.gigabytes == 0) return parts.base;
  const int size = listed_size(*model, parts.gigabytes);
  if (size != 0 && model->sizes.size() == 1) return parts.base;
  return with_size(parts.base, size != 0 ? size : parts.gigabytes);
}

bool answers(std::string_view wanted, std::string_view device) {
  if (wanted == device) return true;
  if (const std::string_view profile = profile_of(device); !profile.empty()) {
    return wanted == profile;  // a slice of an A100 is no A100
  }
  const std::string_view base = without_size(device);
  return wanted == base || (wanted == "910B" && base.starts_with(wanted));
}

std::string_view without_size(std::string_view model) {
  const std::size_t dash = model.rfind('-');
  if (dash == std::string_view::npos || size_word(model.substr(dash + 1)) == 0) return model;
  return model.substr(0, dash);
}

std::string_view profile_of(std::string_view model) {
  const auto found = find_mig_profile(model);
  return found ? model.substr(found->begin) : std::string_view();
}

std::string gpu_of_slice(std::string_view model) { return std::string(sliced_name(model).name); }

bool is_known(std::string_view model) {
  const Sliced sliced = sliced_name(model);
  if (sliced.profile.empty()) return find(without_size(model)) != nullptr;
  return sliced.name.empty() || find(sliced.name) != nullptr;
}

std::string_view vendor_of(std::string_view model) {
  if (is_slice(model)) return "nvidia";
  const Listed* listed = find(without_size(model));
  return listed == nullptr ? "" : listed->vendor;
}

std::optional<Memory> memory_of(std::string_view model) {
  if (const auto found = find_mig_profile(model)) return Memory::gib(found->profile.gigabytes);
  if (const int size = size_in(model); size > 0) return Memory::gib(size);
  const Listed* listed = find(model);
  if (listed == nullptr || listed->sizes.empty()) return std::nullopt;
  return Memory::gib(listed->sizes.front());
}

}  // namespace gflow::catalogue

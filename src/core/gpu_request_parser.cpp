// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "core/gpu_request_scan.h"

namespace gflow::gpu_request {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const GpuResources& resources)
      : text_(text), scan_(text), resources_(resources) {}

  Read<GpuRequest> parse();

 private:
  [[nodiscard]] std::unexpected<Mistake> mistake(Piece at,
                                                 std::string what,
                                                 std::string instead = "") const {
    return scan_.mistake(at, std::move(what), std::move(instead));
  }

  Read<GpuRequest> slurm(Piece piece);
  Read<void> take_part(const Part& part);
  Read<void> take_negative(Piece body, const Decimal& number, Piece rest);
  Read<void> take_rest(const Decimal& number, Piece rest);
  [[nodiscard]] Read<void> take_word(Piece body) const;
  Read<void> take_amount(const Decimal& number);
  Read<void> take_memory(const Decimal& number, int shift, Piece at);
  Read<void> take_product(const Decimal& count, Piece share);
  Read<void> take_range(const Decimal& share, Piece at, Piece most);
  Read<void> take_kind(Piece inner);
  Read<void> take_models(Piece piece);
  [[nodiscard]] Read<std::string> model(Piece piece) const;
  [[nodiscard]] Read<void> check_kind(Piece inner) const;
  [[nodiscard]] Read<void> check_whole(Piece all) const;

  [[nodiscard]] bool is_memory(Piece piece) const;
  [[nodiscard]] Read<int> count_of(const Decimal& number) const;
  [[nodiscard]] Read<Share> share_of(const Decimal& number) const;

  std::string_view text_;
  Scan scan_;
  const GpuResources& resources_;
  GpuRequest request_;
  std::optional<Piece> amount_;
  std::optional<Piece> memory_;
};

/// The shift of "G", "gb", "GiB"; empty if it is no unit.
std::optional<int> unit_shift(std::string_view unit) {
  constexpr std::string_view kLetters = "KMGT";
  const std::string lower = to_lower(unit);
  if (lower.empty()) return std::nullopt;
  const std::size_t at = kLetters.find(ascii_upper(lower[0]));
  const std::string rest = lower.substr(1);
  if (at == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "i" || rest == "ib"))
    return std::nullopt;
  return 10 * (static_cast<int>(at) + 1);
}

Read<int> Parser::count_of(const Decimal& number) const {
  if (number.whole > static_cast<std::uint64_t>(kMaxGpus)) {
    const std::string model = catalogue::read_model(scan_.view(number.at));
    return mistake(number.at,
                   tr_format("more than the {} GPUs a job may ask for", kMaxGpus),
                   catalogue::is_known(model) ? tr_format("write 1({}) for the model", model) : "");
  }
  return static_cast<int>(number.whole);
}

Read<Share> Parser::share_of(const Decimal& number) const {
  constexpr std::size_t kDigits = 4;
  std::string digits = number.decimals;
  if (digits.size() > kDigits) {
    const std::string cut = digits.substr(0, kDigits);
    return mistake(number.at,
                   tr("a share has at most four decimals"),
                   tr_format("write 0.{}", cut == "0000" ? "0001" : cut));
  }
  digits.append(kDigits - digits.size(), '0');
  return Share{static_cast<std::int32_t>(*parse_number(digits))};
}

Read<void> Parser::take_amount(const Decimal& number) {
  amount_ = number.at;
  if (!number.is_whole() && number.whole > 0) {
    return mistake(number.at,
                   tr("a job has whole GPUs or a part of one"),
                   tr_format("write {} or 0.{}",
                             std::min<std::uint64_t>(number.whole + 1, kMaxGpus),
                             number.decimals.substr(0, 4)));
  }
  if (number.is_whole() && number.pointed && number.whole == 0) {
    return mistake(number.at, tr("a share of zero"), tr("write 0 for a job without GPUs"));
  }
  if (number.is_whole()) {
    auto count = count_of(number);
    if (!count) return std::unexpected(count.error());
    request_.gpus = *count;
    return {};
  }
  auto share = share_of(number);
  if (!share) return std::unexpected(share.error());
  request_.gpus = 1;
  request_.share = *share;
  return {};
}

Read<void> Parser::take_memory(const Decimal& number, int shift, Piece at) {
  if (memory_) return mistake(at, tr("memory is given twice"), tr("write it once"));
  memory_ = at;
  // Whole MiB, rounded up, in integers: decimals beyond the sixth are refused.
  constexpr std::uint64_t kMillion = 1'000'000;
  std::string digits = number.decimals;
  if (digits.size() > 6) return mistake(at, tr("memory with more than six decimals"));
  digits.append(6 - digits.size(), '0');
  const std::uint64_t most = std::uint64_t{1} << (60 - shift);  // so that nothing overflows
  if (number.whole >= most) return mistake(at, tr("more memory than any GPU has"));
  using Wide = unsigned __int128;
  const Wide millionths = Wide{number.whole} * kMillion + *parse_number(digits);
  const Wide unit = Wide{kMillion} << 20;
  const auto mib = static_cast<std::int64_t>(((millionths << shift) + unit - 1) / unit);
  if (mib == 0) return mistake(at, tr("zero memory"), tr("leave it out"));
  request_.memory = Memory::mib(mib);
  return {};
}

/// "0.3..1" of one GPU: so much in any case, and the most.
Read<void> Parser::take_range(const Decimal& share, Piece at, Piece most) {
  const auto number = scan_.leading_number(most);
  if (!number) return std::unexpected(number.error());
  const bool is_one =
      *number && (*number)->at.end == most.end && (*number)->is_whole() && (*number)->whole == 1;
  const bool is_part =
      *number && (*number)->at.end == most.end && !(*number)->is_whole() && (*number)->whole == 0;
  const bool has_three_dots = !most.empty() && scan_.at(most.begin) == '.';
  if (share.is_whole() || !(is_one || is_part) || has_three_dots) {
    return mistake(at,
                   tr("a range is of parts of one GPU, what is guaranteed and the most"),
                   tr("write 0.3..1"));
  }
  const auto limit = is_one ? Read<Share>(Share::whole()) : share_of(**number);
  if (!limit) return std::unexpected(limit.error());
  if (auto taken = take_amount(share); !taken) return taken;
  if (*limit < request_.share) {
    return mistake(at,
                   tr("the most is less than what is guaranteed"),
                   tr_format("write {}..{}", scan_.view((*number)->at), scan_.view(share.at)));
  }
  if (*limit != request_.share) request_.share_limit = *limit;
  amount_ = at;
  return {};
}

/// "2x0.5": so much of each of so many devices.
Read<void> Parser::take_product(const Decimal& count, Piece share) {
  const auto number = scan_.leading_number(share);
  if (!number) return std::unexpected(number.error());
  if (!*number || (*number)->at.end != share.end || !count.is_whole() || count.whole == 0 ||
      (*number)->whole > 1 || ((*number)->whole == 1 && !(*number)->is_whole())) {
    return mistake({count.at.begin, share.end},
                   tr("the number of GPUs goes before the x, the share of each after it"),
                   tr("write 2x0.5 for half of two GPUs"));
  }
  auto taken = take_amount(**number);
  if (!taken) return taken;
  auto devices = count_of(count);
  if (!devices) return std::unexpected(devices.error());
  if (request_.gpus == 0) return mistake(share, tr("a share of zero"), tr("write 0 for no GPU"));
  request_.gpus = *devices;
  amount_ = Piece{count.at.begin, share.end};
  return {};
}

/// A part that does not begin with a number: always wrong, and often it is clear what was meant.
Read<void> Parser::take_word(Piece body) const {
  const std::string word(scan_.view(body));
  if (read_vendor(word, resources_)) {
    return mistake(
        body, tr("the number of GPUs is missing"), tr_format("write 1({})", to_lower(word)));
  }
  if (const std::string model = catalogue::read_model(word); catalogue::is_known(model)) {
    return mistake(body, tr("the number of GPUs is missing"), tr_format("write 1({})", model));
  }
  return mistake(
      body,
      tr_format("'{}' is neither a number of GPUs nor an amount of memory", scan_.typed(body)),
      tr("write 2, 0.5, 2(V100) or 8G,0.5"));
}

Read<void> Parser::take_part(const Part& part) {
  Piece body = part.body;
  if (body.empty()) {
    return mistake({body.begin, part.kind ? part.kind->begin : body.begin},
                   part.kind ? tr("the number of GPUs is missing") : tr("a value is missing here"),
                   part.kind ? tr_format("write 1({})", scan_.typed(*part.kind)) : "");
  }
  const bool negative = scan_.at(body.begin) == '-';
  if (negative || scan_.at(body.begin) == '+') ++body.begin;
  const auto number = scan_.leading_number(body);
  if (!number) return std::unexpected(number.error());
  if (!*number) return take_word(part.body);
  const Piece rest = scan_.trimmed({(*number)->at.end, body.end});
  if (negative) return take_negative(part.body, **number, rest);
  if (const auto shift = unit_shift(scan_.view(rest))) {
    return take_memory(**number, *shift, part.body);
  }
  if (scan_.view(rest) == "%") {
    return mistake(part.body, tr("a share is written as a decimal"), tr("50% is 0.5"));
  }
  if (amount_) {
    return mistake(part.body,
                   tr("the number of GPUs is given twice"),
                   tr("memory needs a unit, such as 8G,0.5"));
  }
  if (rest.empty()) return take_amount(**number);
  if (const std::string model = catalogue::read_model(scan_.view(part.body));
      catalogue::is_slice(model)) {
    return mistake(part.body, tr("the number of GPUs is missing"), tr_format("write 1({})", model));
  }
  if (scan_.view(rest).starts_with("..")) {
    return take_range(**number, part.body, scan_.trimmed({rest.begin + 2, rest.end}));
  }
  return take_rest(**number, rest);
}

Read<void> Parser::take_negative(Piece body, const Decimal& number, Piece rest) {
  if (!rest.empty() || number.whole != 1 || !number.is_whole() || amount_) {
    return mistake(body, tr("a negative amount"), tr("-1 alone sees every GPU"));
  }
  amount_ = body;
  request_.see_all = true;
  return {};
}

/// What stands behind a number: of the second in "2x0.5", or a mistake.
Read<void> Parser::take_rest(const Decimal& number, Piece rest) {
  const std::string again(scan_.view(rest));
  if (const std::size_t to = again.find(".."); to != std::string::npos) {
    const Piece all{number.at.begin, rest.end};
    if (!unit_shift(again.substr(0, to))) {
      return mistake(all,
                     tr("a range is of parts of one GPU, what is guaranteed and the most"),
                     tr("write 0.3..1"));
    }
    return mistake(all,
                   tr("memory has no range: what a job has got of it cannot be taken back"),
                   tr("write the most it needs"));
  }
  if (again.starts_with('x') || again.starts_with('X') || again.starts_with('*')) {
    const Piece share = scan_.trimmed({rest.begin + 1, rest.end});
    if (!share.empty() && (is_digit(scan_.at(share.begin)) || scan_.at(share.begin) == '.')) {
      return take_product(number, share);
    }
  }
  const std::string model = catalogue::read_model(again.starts_with('x') ? again.substr(1) : again);
  return mistake(
      rest,
      tr_format("'{}' does not belong here", scan_.typed(rest)),
      catalogue::is_known(model)
          ? tr_format("write {}({})", scan_.view(number.at), model)
          : tr("the GPU model goes in brackets, 2(V100), and memory needs K, M, G or T"));
}

bool Parser::is_memory(Piece piece) const {
  const auto number = scan_.leading_number(piece);
  return number && *number && unit_shift(scan_.view(scan_.trimmed({(*number)->at.end, piece.end})));
}

Read<std::string> Parser::model(Piece piece) const {
  if (piece.empty()) return mistake({piece.begin, piece.end}, tr("a model is missing here"));
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    const char c = scan_.at(i);
    const bool letter = ascii_upper(c) >= 'A' && ascii_upper(c) <= 'Z';
    if (!letter && !is_digit(c) && std::string_view(" -_./+").find(c) == std::string_view::npos) {
      return mistake(
          {i, i + 1},
          tr_format("'{}' is not allowed in the name of a GPU", scan_.typed({i, i + 1})));
    }
  }
  const std::string word(scan_.view(piece));
  std::string read = catalogue::read_model(word);
  if (!read.empty()) {
    const catalogue::Listed* listed = catalogue::find(catalogue::without_size(read));
    const bool odd = listed != nullptr && read != listed->name &&
                     std::ranges::none_of(listed->sizes, [&](int size) {
                       return read == fmt::format("{}-{}G", listed->name, size);
                     });
    if (!odd) return read;
    return mistake(piece,
                   tr_format("there is no {} with that much memory", listed->name),
                   tr_format("it has {}G", fmt::join(listed->sizes, "G or ")));
  }
  if (is_memory(piece)) {
    return mistake(piece, tr("memory goes outside the brackets"), tr("write 2(V100),32G"));
  }
  std::vector<std::string> names = catalogue::known_models();
  for (const auto& [vendor, resource] : resources_.names) names.push_back(vendor);
  const auto near = nearest(word, names);
  return mistake(
      piece,
      tr_format("'{}' is neither a vendor nor a model of GPUs", scan_.typed(piece)),
      near ? tr_format("did you mean {}?", *near)
           : tr("vendors are nvidia, amd, intel and npu; models such as V100 or RTX3090"));
}

Read<void> Parser::take_models(Piece piece) {
  for (const Piece one : scan_.split(piece, '|')) {
    auto name = model(one);
    if (!name) return std::unexpected(name.error());
    if (request_.models.size() == kMaxModels) {
      return mistake(one, tr_format("more than {} models", kMaxModels));
    }
    request_.models.push_back(*std::move(name));
  }
  std::ranges::sort(request_.models);
  const auto repeated = std::ranges::unique(request_.models);
  request_.models.erase(repeated.begin(), repeated.end());
  return {};
}

Read<void> Parser::take_kind(Piece inner) {
  if (inner.empty()) {
    return mistake({inner.begin, inner.begin}, tr("the brackets are empty"), tr("leave them out"));
  }
  bool has_vendor = false;
  bool has_models = false;
  for (const Piece item : scan_.split(inner, ',')) {
    const auto vendor = read_vendor(scan_.view(item), resources_);
    if (vendor && has_vendor) return mistake(item, tr("a second vendor"));
    if (!vendor && has_models && !is_memory(item)) {
      return mistake(item, tr("a second model"), tr("write A100|H100 for either model"));
    }
    if (vendor) {
      has_vendor = true;
      request_.vendor = *vendor;
      continue;
    }
    has_models = true;
    if (auto taken = take_models(item); !taken) return taken;
  }
  return check_kind(inner);
}

Read<void> Parser::check_kind(Piece inner) const {
  constexpr std::array<std::string_view, 4> kMakers = {"amd", "ascend", "intel", "nvidia"};
  if (std::ranges::find(kMakers, request_.vendor) == kMakers.end()) return {};
  for (const std::string& name : request_.models) {
    const std::string_view maker = catalogue::vendor_of(name);
    if (maker.empty() || maker == request_.vendor) continue;
    return mistake(inner,
                   tr_format("{} is made by {}, not {}", name, maker, request_.vendor),
                   tr_format("write {}", name));
  }
  return {};
}

/// ["gpu" ":"] [MODEL ":"] COUNT, as --gres and --gpus of Slurm have it.
Read<GpuRequest> Parser::slurm(Piece piece) {
  std::vector<Piece> words = scan_.split(piece, ':');
  const std::string first = to_lower(scan_.view(words.front()));
  if (first == "gpu" || first == "gres/gpu") words.erase(words.begin());
  const auto count = words.empty() ? Read<std::optional<Decimal>>(std::nullopt)
                                   : scan_.leading_number(words.back());
  if (!count) return std::unexpected(count.error());
  const bool counted = *count && (*count)->at.end == words.back().end;
  if (counted) {
    if (auto taken = take_amount(**count); !taken) return std::unexpected(taken.error());
    words.pop_back();
  } else {
    request_.gpus = 1;
    amount_ = piece;
  }
  if (words.size() > 1) {
    return mistake(
        words[1], tr("one model and one number of GPUs"), tr("write gpu:v100:2 or 2(V100)"));
  }
  if (!words.empty()) {
    if (words.front().empty())
      return mistake(words.front(), tr("a model or a number is missing here"));
    if (auto taken = take_kind(words.front()); !taken) return std::unexpected(taken.error());
  }
  if (auto checked = check_whole(piece); !checked) return std::unexpected(checked.error());
  return request_;
}

/// What no part can tell alone.
Read<void> Parser::check_whole(Piece all) const {
  const bool kind = !request_.vendor.empty() || !request_.models.empty();
  if (!amount_) {
    return mistake(all,
                   tr("memory alone does not say how much of a GPU"),
                   tr_format("write {0},0.5 for half of one, or 1,{0} for one with that much free",
                             scan_.typed(all.empty() ? *memory_ : all)));
  }
  const auto slice = std::ranges::find_if(request_.models, catalogue::is_slice);
  if (request_.share != Share::whole() && slice != request_.models.end()) {
    return mistake(*amount_,
                   tr("a MIG device is given to one job as a whole"),
                   tr_format("write 1({})", *slice));
  }
  if (request_.see_all && memory_) {
    return mistake(*memory_, tr("-1 reserves nothing, so no memory can be promised"));
  }
  if (request_.gpus == 0 && !request_.see_all && (memory_ || kind)) {
    return mistake(
        *amount_, tr("zero GPUs with a model or memory"), tr("write 0 alone, or at least 1"));
  }
  return {};
}

Read<GpuRequest> Parser::parse() {
  if (text_.size() > kMaxGpuRequestText) {
    return mistake({0, 0}, tr_format("longer than {} bytes", kMaxGpuRequestText));
  }
  const Piece all = scan_.trimmed({0, scan_.size()});
  if (all.empty()) {
    return mistake({0, 0}, tr("a value is missing here"), tr("write 0 for a job without GPUs"));
  }
  if (const std::size_t strange = scan_.find(kStrange); strange != std::string::npos) {
    const Piece at{strange, strange + 1};
    return mistake(at, tr_format("'{}' does not belong in a request for GPUs", scan_.typed(at)));
  }
  const bool colon = scan_.view(all).find(':') != std::string_view::npos;
  if (colon || to_lower(scan_.view(all)) == "gpu") return slurm(all);
  const auto found = scan_.parts(all);
  if (!found) return std::unexpected(found.error());
  bool kind = false;
  for (const Part& part : *found) {
    if (auto taken = take_part(part); !taken) return std::unexpected(taken.error());
    if (!part.kind) continue;
    if (kind) return mistake(*part.kind, tr("a second pair of brackets"));
    kind = true;
    if (auto taken = take_kind(*part.kind); !taken) return std::unexpected(taken.error());
  }
  if (auto checked = check_whole(all); !checked) return std::unexpected(checked.error());
  return request_;
}

}  // namespace
}  // namespace gflow::gpu_request

namespace gflow {

std::expected<GpuRequest, GpuRequestMistake> read_gpu_request(std::string_view text,
                                                              const GpuResources& resources) {
  return gpu_request::Parser(text, resources).parse();
}

}  // namespace gflow

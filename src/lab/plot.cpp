// SPDX-License-Identifier: Apache-2.0
#include "lab/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/html.h"
#include "base/text.h"

namespace gflow::lab {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 360;  // of one chart without its legend
constexpr double kLeft = 76;
constexpr double kRight = 20;
constexpr double kTop = 44;
constexpr double kBottom = 56;
constexpr double kLegendLine = 20;
constexpr double kCharacter = 7;  // width of one at the size of the legend, on average
constexpr int kSlantDegrees = 40;
constexpr double kSlantSine = 0.643;

// Colours that people who see few of them can tell apart: Okabe and Ito, "Color Universal Design",
// 2008; black is left out because it cannot be seen on dark paper.
constexpr std::array<const char*, 7> kColors = {
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b5a900"};

std::string shown(std::string_view text) { return html_text(printable(text)); }

struct Extent {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();

  void take(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  [[nodiscard]] Extent or_unit() const { return least > greatest ? Extent{0, 1} : *this; }
};

/// Values of one axis as places on the paper.
struct Scale {
  double from = 0;
  double to = 1;
  double at_from = 0;
  double at_to = 1;

  [[nodiscard]] double operator()(double value) const {
    return at_from + (value - from) / (to - from) * (at_to - at_from);
  }
};

std::string tick_text(double value) {
  if (std::abs(value) >= 1e6 || (value != 0 && std::abs(value) < 1e-3)) {
    return fmt::format("{:.3g}", value);
  }
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

const char* color_of(std::size_t series) { return kColors.at(series % kColors.size()); }

/// One chart on its part of the paper.
class Drawing {
 public:
  Drawing(const Chart& chart, double top) : chart_(chart), top_(top), drop_(drop_of_labels(chart)) {
    Extent xs;
    Extent ys;
    ys.take(0);  // a bar or a wait that does not start at nothing misleads
    for (const Series& series : chart.series) {
      for (const Point& point : series.points) {
        xs.take(point.x);
        ys.take(point.y);
      }
    }
    xs = xs.or_unit();
    x_steps_ = axis_steps(xs.least, xs.greatest, 8);
    y_steps_ = axis_steps(ys.least, ys.greatest, 6);
    x_ = {x_steps_.front(), x_steps_.back(), kLeft, kWidth - kRight};
    if (chart.kind != Chart::Kind::Bar) x_.to = std::max(xs.greatest, x_.from + 1e-9);
    y_ = {y_steps_.front(), y_steps_.back(), top + kHeight - kBottom, top + kTop};
  }

  std::string draw() {
    heading();
    frame();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (chart_.kind == Chart::Kind::Bar) {
        bars(i);
      } else {
        line(i);
      }
    }
    legend();
    return std::move(out_);
  }

  [[nodiscard]] static double height(const Chart& chart) {
    double lines = 1;
    double x = kLeft;
    for (const Series& series : chart.series) {
      const double wide = entry_width(series);
      if (x + wide > kWidth - kRight && x > kLeft) {
        ++lines;
        x = kLeft;
      }
      x += wide;
    }
    return kHeight + drop_of_labels(chart) + lines * kLegendLine + 12;
  }

 private:
  static double entry_width(const Series& series) { return 30 + width_of(series.name); }

  static double width_of(std::string_view what) {
    return kCharacter * static_cast<double>(display_width(printable(what)));
  }
  static double group_width(const Chart& chart) {
    const auto groups = static_cast<double>(std::max<std::size_t>(chart.categories.size(), 1));
    return (kWidth - kLeft - kRight) / groups;
  }
  /// How much further down labels of bars reach that have to be written aslant; 0 if none has.
  static double drop_of_labels(const Chart& chart) {
    double widest = 0;
    for (const std::string& category : chart.categories) {
      widest = std::max(widest, width_of(category));
    }
    return widest <= group_width(chart) ? 0 : widest * kSlantSine;
  }

  void text(double x, double y, const char* kind, std::string_view what) {
    out_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, kind, shown(what));
  }

  void heading() {
    text(kLeft, top_ + 22, "title", chart_.title);
    text((kLeft + kWidth - kRight) / 2, top_ + kHeight + drop_ - 12, "label", chart_.x_label);
    out_ += fmt::format(
        "<text transform=\"translate(18 {:.1f}) rotate(-90)\" class=\"label\">{}</text>\n",
        top_ + (kTop + kHeight - kBottom) / 2,
        shown(chart_.y_label));
  }

  void frame() {
    for (const double step : y_steps_) {
      out_ += fmt::format(
          "<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", kLeft, y_(step), kWidth - kRight);
      text(kLeft - 8, y_(step) + 4, "tick end", tick_text(step));
    }
    if (chart_.kind == Chart::Kind::Bar) {
      for (std::size_t i = 0; i < chart_.categories.size(); ++i) {
        label(kLeft + group_width(chart_) * (static_cast<double>(i) + 0.5), chart_.categories[i]);
      }
      return;
    }
    for (const double step : x_steps_) {
      if (step > x_.to * (1 + 1e-9)) continue;
      text(x_(step), y_.at_from + 18, "tick middle", tick_text(step));
    }
  }

  /// Of a group of bars, below its middle.
  void label(double middle, const std::string& what) {
    if (drop_ == 0) return text(middle, y_.at_from + 18, "tick middle", what);
    out_ += fmt::format(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-{})\" class=\"tick end\">{}</text>\n",
        middle + 4,
        y_.at_from + 14,
        kSlantDegrees,
        shown(what));
  }

  void line(std::size_t at) {
    std::string path;
    for (const Point& point : chart_.series[at].points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      if (path.empty()) {
        path = fmt::format("M{:.1f} {:.1f}", x_(point.x), y_(point.y));
      } else if (chart_.kind == Chart::Kind::Step) {
        path += fmt::format("H{:.1f}V{:.1f}", x_(point.x), y_(point.y));
      } else {
        path += fmt::format("L{:.1f} {:.1f}", x_(point.x), y_(point.y));
      }
    }
    out_ += fmt::format("<path class=\"line\" stroke=\"{}\" d=\"{}\"/>\n", color_of(at), path);
    if (chart_.kind != Chart::Kind::Marks) return;
    for (const Point& point : chart_.series[at].points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n",
                          x_(point.x),
                          y_(point.y),
                          color_of(at));
    }
  }

  void bars(std::size_t at) {
    const double wide = group_width(chart_) * 0.8 / static_cast<double>(chart_.series.size());
    const auto& points = chart_.series[at].points;
    for (std::size_t i = 0; i < std::min(points.size(), chart_.categories.size()); ++i) {
      if (!std::isfinite(points[i].y)) continue;
      const double x = kLeft + group_width(chart_) * (static_cast<double>(i) + 0.1) +
                       wide * static_cast<double>(at);
      const double top = std::min(y_(points[i].y), y_(0));
      out_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
          "<title>{} {}: {}</title></rect>\n",
          x,
          top,
          wide * 0.92,
          std::abs(y_(points[i].y) - y_(0)),
          color_of(at),
          shown(chart_.series[at].name),
          shown(chart_.categories[i]),
          tick_text(points[i].y));
    }
  }

  void legend() {
    double x = kLeft;
    double y = top_ + kHeight + drop_ + 10;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const double wide = entry_width(chart_.series[i]);
      if (x + wide > kWidth - kRight && x > kLeft) {
        x = kLeft;
        y += kLegendLine;
      }
      out_ +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                      x,
                      y - 10,
                      color_of(i));
      text(x + 17, y, "key", chart_.series[i].name);
      x += wide;
    }
  }

  const Chart& chart_;
  double top_;
  double drop_;
  Scale x_;
  Scale y_;
  std::vector<double> x_steps_;
  std::vector<double> y_steps_;
  std::string out_;
};

constexpr const char* kStyle =
    "<style>\n"
    ".paper{fill:#fff}text{fill:#222;font:12px system-ui,sans-serif}\n"
    ".title{font-size:15px;font-weight:600}.label,.middle{text-anchor:middle}.end{text-anchor:end}"
    "\n"
    ".grid{stroke:#ddd;fill:none}.line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    "@media (prefers-color-scheme:dark){.paper{fill:#16181c}text{fill:#ddd}.grid{stroke:#3a3d44}}\n"
    "</style>\n";

}  // namespace

std::vector<double> axis_steps(double least, double greatest, int most) {
  if (!(greatest > least)) greatest = least + (least == 0 ? 1 : std::abs(least));
  const double rough = (greatest - least) / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double candidate : {1.0, 2.0, 5.0}) {
    if (candidate * power >= rough) {
      step = candidate * power;
      break;
    }
  }
  const double first = std::floor(least / step);
  const double last = std::ceil(greatest / step - 1e-9);
  std::vector<double> steps;
  for (double i = first; i <= last; ++i) steps.push_back(i * step);
  return steps;
}

std::string svg_text(std::span<const Chart> charts) {
  std::string body;
  double top = 0;
  for (const Chart& chart : charts) {
    body += Drawing(chart, top).draw();
    top += Drawing::height(chart);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n{2}<rect class=\"paper\" width=\"100%\" "
      "height=\"100%\"/>\n{3}</svg>\n",
      kWidth,
      top,
      kStyle,
      body);
}

}  // namespace gflow::lab

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gflow::lab {

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;  ///< by x
};

/// A picture of numbers: lines over an axis, or bars, one group per category.
struct Chart {
  enum class Kind { Line, Step, Bar, Marks };  ///< Marks: lines with a dot at each point

  std::string title;
  std::string x_label;
  std::string y_label;
  Kind kind = Kind::Line;
  std::vector<Series> series;           ///< of bars: y by category, x is not looked at
  std::vector<std::string> categories;  ///< of bars
};

/// One self-contained SVG 1.1 picture, charts below each other: nothing to load, no script; light
/// and dark follow what the reader's system is set to. The same charts give the same bytes.
[[nodiscard]] std::string svg_text(std::span<const Chart> charts);

/// Even steps over a range that read well (1, 2 or 5 times a power of ten), about `most` of them;
/// the first is at or below `least`, the last at or above `greatest`.
[[nodiscard]] std::vector<double> axis_steps(double least, double greatest, int most);

}  // namespace gflow::lab

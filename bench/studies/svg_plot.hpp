#pragma once

#include <string>
#include <utility>
#include <vector>

namespace redline::studies {

struct plot_series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; pairs that are not finite are left out
};

/// One diagram with axes from zero.
struct plot {
  enum class mark {
    dots,
    lines,
    bars,  // one bar per point, later series in front of earlier ones, the first grey
  };
  std::string title;
  std::string note;  // a line under the title: what was measured on what
  std::string x_label;
  std::string y_label;
  mark drawn_as = mark::dots;
  std::vector<plot_series> series;
};

/// A whole SVG file that refers to nothing outside of itself.
[[nodiscard]] std::string svg_of(const plot& what);

}  // namespace redline::studies

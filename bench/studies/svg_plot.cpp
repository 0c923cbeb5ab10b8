#include "bench/studies/svg_plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace redline::studies {
namespace {

// Pixels.
constexpr double width = 860, height = 480;
constexpr double left = 70, right = 690, top = 60, bottom = 425;

// Okabe and Ito's colours, which people who see few colours tell apart.
constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
constexpr const char* grey = "#c8c8c8";

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

std::string pixel(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", v);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;  // XML has no other control characters
  }
  return out;
}

/// One, two or five times a power of ten, so that about six of them reach `most`.
double tick_of(double most) {
  const double rough = most / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

struct axis {
  double most = 1;
  double tick = 0.2;
  double from = 0;  // pixels at 0 and at `most`
  double to = 1;
  [[nodiscard]] double at(double v) const { return from + (to - from) * v / most; }
};

axis axis_for(double most, double from, double to) {
  if (!(most > 0)) most = 1;
  const double tick = tick_of(most);
  return {std::ceil(most / tick) * tick, tick, from, to};
}

std::string text_at(double x, double y, const char* anchor, int size, const std::string& text, const char* more = "") {
  return "<text x=\"" + pixel(x) + "\" y=\"" + pixel(y) + "\" text-anchor=\"" + anchor + "\" font-size=\"" +
         std::to_string(size) + "\"" + more + ">" + escaped(text) + "</text>\n";
}

std::string line_at(double x1, double y1, double x2, double y2, const char* colour) {
  return "<line x1=\"" + pixel(x1) + "\" y1=\"" + pixel(y1) + "\" x2=\"" + pixel(x2) + "\" y2=\"" + pixel(y2) +
         "\" stroke=\"" + colour + "\"/>\n";
}

std::string axes(const plot& what, const axis& x, const axis& y) {
  std::string out;
  for (double v = 0; v <= y.most * 1.0001; v += y.tick) {
    out += line_at(left, y.at(v), right, y.at(v), "#e6e6e6") + text_at(left - 8, y.at(v) + 4, "end", 12, number(v));
  }
  for (double v = 0; v <= x.most * 1.0001; v += x.tick) {
    out += line_at(x.at(v), bottom, x.at(v), bottom + 5, "#444444") +
           text_at(x.at(v), bottom + 20, "middle", 12, number(v));
  }
  out += line_at(left, bottom, right, bottom, "#444444") + line_at(left, top, left, bottom, "#444444");
  out += text_at((left + right) / 2, bottom + 42, "middle", 13, what.x_label);
  out += text_at(18, (top + bottom) / 2, "middle", 13, what.y_label,
                 (" transform=\"rotate(-90 18 " + pixel((top + bottom) / 2) + ")\"").c_str());
  return out;
}

std::string marks(const plot_series& s, plot::mark how, const char* colour, const axis& x, const axis& y) {
  std::string out;
  std::string path;
  // Bars stand at whole numbers; half a unit to each side is theirs.
  const double bar = std::max(0.8 * (x.at(1) - x.at(0)), 0.5);
  for (const auto& [px, py] : s.points) {
    if (!std::isfinite(px) || !std::isfinite(py)) continue;
    if (how == plot::mark::bars) {
      out += "<rect x=\"" + pixel(x.at(px) - bar / 2) + "\" y=\"" + pixel(y.at(py)) + "\" width=\"" + pixel(bar) +
             "\" height=\"" + pixel(y.at(0) - y.at(py)) + "\" fill=\"" + colour + "\"/>\n";
      continue;
    }
    out += "<circle cx=\"" + pixel(x.at(px)) + "\" cy=\"" + pixel(y.at(py)) + "\" r=\"3.5\" fill=\"" + colour +
           "\" fill-opacity=\"0.75\"/>\n";
    path += (path.empty() ? "M" : " L") + pixel(x.at(px)) + " " + pixel(y.at(py));
  }
  if (how == plot::mark::lines && !path.empty()) {
    out += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"2\"/>\n";
  }
  return out;
}

}  // namespace

std::string svg_of(const plot& what) {
  double x_most = 0;
  double y_most = 0;
  for (const plot_series& s : what.series) {
    for (const auto& [px, py] : s.points) {
      if (std::isfinite(px)) x_most = std::max(x_most, px);
      if (std::isfinite(py)) y_most = std::max(y_most, py);
    }
  }
  const axis x = axis_for(x_most, left, right);
  const axis y = axis_for(y_most, bottom, top);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
                    "\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  out +=
      text_at(left, 26, "start", 16, what.title, " font-weight=\"bold\"") + text_at(left, 46, "start", 12, what.note);
  out += axes(what, x, y);
  for (std::size_t i = 0; i < what.series.size(); ++i) {
    const bool behind = what.drawn_as == plot::mark::bars && i == 0;
    const char* colour = behind ? grey : colours[i % std::size(colours)];
    out += marks(what.series[i], what.drawn_as, colour, x, y);
    const double row = top + 12 + 22 * static_cast<double>(i);
    out += "<rect x=\"" + pixel(right + 16) + "\" y=\"" + pixel(row - 10) + "\" width=\"12\" height=\"12\" fill=\"" +
           colour + "\"/>\n" + text_at(right + 34, row, "start", 13, what.series[i].name);
  }
  return out + "</svg>\n";
}

}  // namespace redline::studies

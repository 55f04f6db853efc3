#include "train/report/coordinate_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "train/report/svg_plot.h"
#include "train/report/svg_style.h"

namespace lockstep::train {
namespace {

constexpr double kCoordinateWidth = 980, kCoordinateHeight = 460;
constexpr double kCoordinateRight = 300;  // room of the legend
constexpr double kCoordinateRow = 38;     // of the legend

constexpr const char* kCoordinateStyle =
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}.dot{stroke-width:1.6}";

bool is_drawn(double size) { return std::isfinite(size) && size > 0; }

class CoordinateDrawing {
 public:
  explicit CoordinateDrawing(const CoordinateCheck& check)
      : check_(check),
        plot_(kCoordinateWidth, kCoordinateHeight, kCoordinateRight,
              "Mean size of activations over the width", kCoordinateStyle) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const LayerCoordinates& layer : check.layers) {
      for (const auto* sizes : {&layer.sizes.front(), &layer.sizes.back()}) {
        for (const double size : *sizes) {
          if (!is_drawn(size)) continue;
          least = std::min(least, size);
          most = std::max(most, size);
        }
      }
    }
    if (most == 0) least = most = 1;
    Axis x = logarithmic_axis(static_cast<double>(check.widths.front()),
                              static_cast<double>(check.widths.back()));
    x.ticks.clear();
    for (const int64_t width : check.widths) {
      x.ticks.push_back({static_cast<double>(width), fmt::format("{}", width)});
    }
    plot_.set_axes(std::move(x), logarithmic_axis(least / 1.5, most * 1.5));
  }

  std::string draw() {
    plot_.draw_axes("Width, logarithmic", "Mean |activation|, logarithmic");
    for (size_t i = 0; i < check_.layers.size(); ++i) {
      const LayerCoordinates& layer = check_.layers[i];
      draw_line(layer.sizes.front(), i, true);
      draw_line(layer.sizes.back(), i, false);
      draw_entry(layer, i);
    }
    plot_.add(fmt::format(
        R"(<text x="{:.1f}" y="{:.1f}">broken: before the first step; full: after step {}</text>)",
        SvgPlot::kLeft, plot_.plot_bottom() + 42, check_.steps));
    return plot_.finish();
  }

 private:
  static const char* colour(size_t layer) { return kSvgColours[layer % kSvgColours.size()]; }

  void draw_line(const std::vector<double>& sizes, size_t layer, bool broken) {
    std::string path, dots;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!is_drawn(sizes[i])) continue;
      const double x = plot_.x(static_cast<double>(check_.widths[i])), y = plot_.y(sizes[i]);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      dots += fmt::format(R"(<circle class="dot paper" cx="{:.1f}" cy="{:.1f}" r="3"/>)", x, y);
    }
    if (path.empty()) return;
    plot_.add(fmt::format(R"(<g stroke="{}"><path class="line"{} d="{}"/>{}</g>)", colour(layer),
                          broken ? R"( stroke-dasharray="4 3")" : "", path, broken ? "" : dots));
  }

  /// Right of the plot.
  void draw_entry(const LayerCoordinates& layer, size_t index) {
    const double left = plot_.plot_right() + 16;
    const double top = SvgPlot::kTop + kCoordinateRow * static_cast<double>(index) + 12;
    plot_.add(fmt::format(
        R"(<line class="line" stroke="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)",
        colour(index), left, top - 4, left + 20, top - 4));
    plot_.add(fmt::format(R"(<text class="label" x="{:.1f}" y="{:.1f}">{}: {}</text>)", left + 26,
                          top, svg_escaped(layer.layer), to_string(check_.verdict(layer))));
    plot_.add(fmt::format(
        R"(<text x="{:.1f}" y="{:.1f}">size ~ width^{:.2f}, move ~ width^{:.2f}</text>)", left + 26,
        top + 16, check_.size_exponent(layer, check_.steps),
        check_.move_exponent(layer, check_.steps)));
  }

  const CoordinateCheck& check_;
  SvgPlot plot_;
};

}  // namespace

std::string coordinate_chart(const CoordinateCheck& check) {
  return CoordinateDrawing(check).draw();
}

}  // namespace lockstep::train

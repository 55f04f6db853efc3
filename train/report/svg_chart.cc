#include "train/report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "train/report/step_line.h"
#include "train/report/svg_plot.h"
#include "train/report/svg_style.h"

namespace lockstep::train {
namespace {

constexpr double kCurveWidth = 880, kCurveHeight = 500, kCurveRight = 24;
constexpr double kCurveRow = 19;    // of the legend
constexpr int kCurveColumns = 400;  // buckets of a dense curve
constexpr double kCharacter = 6.4;  // mean advance of 12 px sans-serif

constexpr const char* kCurveStyle =
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}"
    ".band{stroke:none;fill-opacity:.16}"
    ".under{stroke-width:5;stroke-opacity:.4}"  // below an equal curve
    ".dot{stroke-width:1.6}";

const char* colour(const Curve& curve) {
  return kSvgColours[static_cast<size_t>(curve.group) % kSvgColours.size()];
}

class CurveDrawing {
 public:
  CurveDrawing(std::span<const Curve> curves, bool log_x)
      : curves_(curves),
        plot_(kCurveWidth, kCurveHeight, kCurveRight, "Loss over steps", kCurveStyle) {
    Axes axes = axes_of(curves, log_x, 8, 6);
    plot_.set_axes(std::move(axes.x), std::move(axes.y));
  }

  std::string draw() {
    add(R"(<clipPath id="plot"><rect x="{}" y="{}" width="{}" height="{}"/></clipPath>)",
        SvgPlot::kLeft, SvgPlot::kTop - 6, plot_.plot_width() + 6, plot_.plot_height() + 12);
    plot_.draw_axes(plot_.x_axis().logarithmic ? "Step, logarithmic" : "Step",
                    "Loss, nats per token");
    for (size_t i = 0; i < curves_.size(); ++i) draw_curve(i);
    draw_legend();
    return plot_.finish();
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    plot_.add(fmt::format(format, std::forward<Args>(args)...));
  }

  /// The class of a curve's line: wider if an equal curve is drawn over it.
  const char* line_class(size_t i) const {
    for (size_t later = i + 1; later < curves_.size(); ++later) {
      if (same_as(curves_, later) == std::optional(i)) return "line under";
    }
    return "line";
  }

  /// A curve's label, which names the curve that it equals.
  std::string label(size_t i) const {
    const std::optional<size_t> same = same_as(curves_, i);
    return curves_[i].label() + (same ? " = " + curves_[*same].label() : "");
  }

  void draw_curve(size_t i) {
    const Curve& curve = curves_[i];
    const std::vector<Bucket> points =
        buckets(curve, plot_.x_axis(), curve.sparse ? 1 << 20 : kCurveColumns);
    add(R"svg(<g clip-path="url(#plot)" stroke="{0}" fill="{0}"><title>{1}</title>)svg",
        colour(curve), svg_escaped(label(i)));
    if (std::ranges::any_of(points, [](const Bucket& b) { return b.max > b.min; })) {
      draw_band(points);
    }
    std::string path;
    for (const Bucket& point : points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", plot_.x(point.x),
                          plot_.y(point.mean));
    }
    add(R"(<path class="{}"{} d="{}"/>)", line_class(i),
        curve.sparse ? R"( stroke-dasharray="4 3")" : "", path);
    if (curve.sparse || points.size() == 1) {
      for (const Bucket& point : points) {
        add(R"(<circle class="dot paper" cx="{:.1f}" cy="{:.1f}" r="3"/>)", plot_.x(point.x),
            plot_.y(point.mean));
      }
    }
    add("</g>");
  }

  void draw_band(const std::vector<Bucket>& points) {
    std::string path;
    for (const Bucket& point : points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", plot_.x(point.x),
                          plot_.y(point.max));
    }
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
      path += fmt::format("L{:.1f} {:.1f}", plot_.x(point->x), plot_.y(point->min));
    }
    add(R"(<path class="band" d="{}Z"/>)", path);
  }

  /// Draws the legend at the upper right, where falling losses leave room.
  void draw_legend() {
    size_t longest = 0;
    for (size_t i = 0; i < curves_.size(); ++i) longest = std::max(longest, label(i).size());
    constexpr double kSwatch = 26, kValue = 52, kPad = 10;
    const double name_width = std::min(static_cast<double>(longest) * kCharacter,
                                       plot_.plot_width() - kSwatch - kValue - 60);
    const double width = kSwatch + name_width + kValue + 3 * kPad;
    const double left = plot_.plot_right() - width;
    add(R"(<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="3" class="paper" fill-opacity=".88"/>)",
        left, SvgPlot::kTop + 4, width, kCurveRow * static_cast<double>(curves_.size()) + 8);
    double middle = SvgPlot::kTop + 4 + 4 + kCurveRow / 2;
    for (size_t i = 0; i < curves_.size(); ++i) {
      const Curve& curve = curves_[i];
      const double from = left + kPad;
      add(R"(<g stroke="{0}"><line class="{5}" x1="{1:.1f}" y1="{3}" x2="{2:.1f}" y2="{3}"{4}/></g>)",
          colour(curve), from, from + kSwatch - 6, middle,
          curve.sparse ? R"( stroke-dasharray="4 3")" : "", line_class(i));
      if (curve.sparse) {
        add(R"(<circle class="dot paper" stroke="{}" cx="{:.1f}" cy="{}" r="3"/>)", colour(curve),
            from + (kSwatch - 6) / 2, middle);
      }
      add(R"(<text x="{:.1f}" y="{}">{}</text>)", from + kSwatch, middle + 4,
          svg_escaped(label(i)));
      add(R"(<text x="{:.1f}" y="{}" text-anchor="end">{}</text>)", left + width - kPad, middle + 4,
          format_loss(curve.points.back().y));
      middle += kCurveRow;
    }
  }

  std::span<const Curve> curves_;
  SvgPlot plot_;
};

}  // namespace

std::string svg_chart(std::span<const Curve> curves, bool log_x) {
  return CurveDrawing(curves, log_x).draw();
}

}  // namespace lockstep::train

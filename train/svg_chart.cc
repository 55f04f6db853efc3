#include "train/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace lockstep::train {
namespace {

constexpr double kWidth = 880, kHeight = 500;
constexpr double kLeft = 64, kRight = 24, kTop = 52, kBottom = 52;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kHeight - kTop - kBottom;
constexpr double kRow = 19;         // of the legend
constexpr int kColumns = 400;       // buckets of a dense curve
constexpr double kCharacter = 6.4;  // mean advance of 12 px sans-serif

/// Okabe and Ito 2008: told apart with any kind of colour vision.
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#e69f00", "#333333"};

constexpr const char* kStyle =
    "text{font:12px system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif;"
    "fill:#444;font-variant-numeric:tabular-nums}"
    ".label{font-size:13px;fill:#222}"
    ".grid{stroke:#e4e4e4;stroke-width:1}"
    ".axis{stroke:#888;stroke-width:1}"
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}"
    ".band{stroke:none;fill-opacity:.16}"
    ".dot{fill:#fff;stroke-width:1.6}";

const char* colour(const Curve& curve) {
  return kColours[static_cast<size_t>(curve.group) % kColours.size()];
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {  // XML 1.0 has no other control characters
      result += c;
    }
  }
  return result;
}

class Drawing {
 public:
  Drawing(std::span<const Curve> curves, bool log_x)
      : curves_(curves), axes_(axes_of(curves, log_x, 8, 6)) {}

  std::string draw() {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">)",
        kWidth, kHeight);
    add("<title>Loss over steps</title>\n<style>{}</style>", kStyle);
    add(R"(<clipPath id="plot"><rect x="{}" y="{}" width="{}" height="{}"/></clipPath>)", kLeft,
        kTop - 6, kPlotWidth + 6, kPlotHeight + 12);
    add(R"(<rect width="{}" height="{}" fill="#fff"/>)", kWidth, kHeight);
    draw_axes();
    for (const Curve& curve : curves_) draw_curve(curve);
    draw_legend();
    add("</svg>");
    return std::move(text_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  double x(double value) const { return kLeft + axes_.x.position(value) * kPlotWidth; }
  double y(double value) const { return kTop + (1 - axes_.y.position(value)) * kPlotHeight; }

  void draw_axes() {
    const double bottom = kTop + kPlotHeight;
    for (const Tick& tick : axes_.y.ticks) {
      const double at = std::round(y(tick.value)) + 0.5;  // sharp one-pixel lines
      add(R"(<line class="grid" x1="{}" y1="{}" x2="{}" y2="{}"/>)", kLeft, at, kLeft + kPlotWidth,
          at);
      add(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8, at + 4, tick.label);
    }
    for (const Tick& tick : axes_.x.ticks) {
      const double at = std::round(x(tick.value)) + 0.5;
      add(R"(<line class="axis" x1="{0}" y1="{1}" x2="{0}" y2="{2}"/>)", at, bottom + 0.5,
          bottom + 5.5);
      add(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", at, bottom + 20, tick.label);
    }
    add(R"(<line class="axis" x1="{0}" y1="{2}" x2="{1}" y2="{2}"/>)", kLeft, kLeft + kPlotWidth,
        bottom + 0.5);
    add(R"(<text class="label" x="{}" y="{}">Loss, nats per token</text>)", kLeft - 40, kTop - 22);
    add(R"(<text class="label" x="{}" y="{}" text-anchor="end">Step{}</text>)", kLeft + kPlotWidth,
        bottom + 42, axes_.x.logarithmic ? ", logarithmic" : "");
  }

  void draw_curve(const Curve& curve) {
    const std::vector<Bucket> points = buckets(curve, axes_.x, curve.sparse ? 1 << 20 : kColumns);
    add(R"svg(<g clip-path="url(#plot)" stroke="{0}" fill="{0}"><title>{1}</title>)svg",
        colour(curve), escaped(curve.name));
    if (std::ranges::any_of(points, [](const Bucket& b) { return b.max > b.min; })) {
      draw_band(points);
    }
    std::string path;
    for (const Bucket& point : points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point.x), y(point.mean));
    }
    add(R"(<path class="line"{} d="{}"/>)", curve.sparse ? R"( stroke-dasharray="4 3")" : "", path);
    if (curve.sparse || points.size() == 1) {
      for (const Bucket& point : points) {
        add(R"(<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="3"/>)", x(point.x), y(point.mean));
      }
    }
    add("</g>");
  }

  void draw_band(const std::vector<Bucket>& points) {
    std::string path;
    for (const Bucket& point : points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point.x), y(point.max));
    }
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
      path += fmt::format("L{:.1f} {:.1f}", x(point->x), y(point->min));
    }
    add(R"(<path class="band" d="{}Z"/>)", path);
  }

  /// Upper right, where falling losses leave room.
  void draw_legend() {
    size_t longest = 0;
    for (const Curve& curve : curves_) longest = std::max(longest, curve.name.size());
    constexpr double kSwatch = 26, kValue = 52, kPad = 10;
    const double name_width =
        std::min(static_cast<double>(longest) * kCharacter, kPlotWidth - kSwatch - kValue - 60);
    const double width = kSwatch + name_width + kValue + 3 * kPad;
    const double left = kLeft + kPlotWidth - width;
    add(R"(<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="3" fill="#fff" fill-opacity=".88"/>)",
        left, kTop + 4, width, kRow * static_cast<double>(curves_.size()) + 8);
    double middle = kTop + 4 + 4 + kRow / 2;
    for (const Curve& curve : curves_) {
      const double from = left + kPad;
      add(R"(<g stroke="{0}"><line class="line" x1="{1:.1f}" y1="{3}" x2="{2:.1f}" y2="{3}"{4}/></g>)",
          colour(curve), from, from + kSwatch - 6, middle,
          curve.sparse ? R"( stroke-dasharray="4 3")" : "");
      if (curve.sparse) {
        add(R"(<circle class="dot" stroke="{}" cx="{:.1f}" cy="{}" r="3"/>)", colour(curve),
            from + (kSwatch - 6) / 2, middle);
      }
      add(R"(<text x="{:.1f}" y="{}">{}</text>)", from + kSwatch, middle + 4, escaped(curve.name));
      add(R"(<text x="{:.1f}" y="{}" text-anchor="end">{:.4f}</text>)", left + width - kPad,
          middle + 4, curve.points.back().y);
      middle += kRow;
    }
  }

  std::span<const Curve> curves_;
  Axes axes_;
  std::string text_;
};

}  // namespace

std::string svg_chart(std::span<const Curve> curves, bool log_x) {
  return Drawing(curves, log_x).draw();
}

}  // namespace lockstep::train

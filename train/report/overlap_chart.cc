#include "train/report/overlap_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "train/report/step_line.h"
#include "train/report/svg_plot.h"
#include "train/report/svg_style.h"

namespace lockstep::train {
namespace {

constexpr double kOverlapWidth = 980, kOverlapRight = 150;
constexpr double kOverlapRow = 14;  // of a bucket
constexpr double kOverlapBar = 9;   // its height
constexpr size_t kTopRows = 3;      // for the computation

constexpr const char* kComputes = kSvgColours[2];
constexpr const char* kUpdates = kSvgColours[3];
constexpr const char* kHidden = kSvgColours[0];
constexpr const char* kExposed = kSvgColours[1];

struct LegendEntry {
  const char* colour;
  std::string_view text;
};
constexpr std::array kLegend = {
    LegendEntry{kComputes, "forward and backward"},
    LegendEntry{kHidden, "bucket behind backward"},
    LegendEntry{kExposed, "waiting, and buckets after backward"},
    LegendEntry{kUpdates, "optimizer"},
};

class OverlapDrawing {
 public:
  explicit OverlapDrawing(const OverlapTimeline& timeline)
      : timeline_(timeline),
        rows_(static_cast<double>(timeline.buckets.size() + kTopRows)),
        plot_(kOverlapWidth, SvgPlot::kTop + SvgPlot::kBottom + rows_ * kOverlapRow, kOverlapRight,
              "Communication behind computation", "") {
    plot_.set_axes(linear_axis(0, std::max(timeline.step_end, 1e-3), 10),
                   {.min = 0, .max = rows_, .logarithmic = false, .ticks = {}});
  }

  std::string draw() {
    plot_.draw_axes("Time, ms", svg_escaped(timeline_.title));
    bar(0.8, 0, timeline_.backward_end, 1.6, kComputes, "forward and backward");
    bar(0.8, timeline_.backward_end, timeline_.wait_end, 1.6, kExposed, "waits");
    bar(0.8, timeline_.wait_end, timeline_.step_end, 1.6, kUpdates, "optimizer");
    note(0.8, fmt::format("waits {:.1f} ms", timeline_.wait_end - timeline_.backward_end));
    for (size_t i = 0; i < timeline_.buckets.size(); ++i) {
      const OverlapTimeline::Bucket& bucket = timeline_.buckets[i];
      const double row = static_cast<double>(i + kTopRows) - 0.5;
      const double hidden = std::clamp(timeline_.backward_end, bucket.ready, bucket.done);
      const std::string title = fmt::format("{}: {:.1f} to {:.1f} ms, {}",
                                            format_bytes(static_cast<uint64_t>(bucket.bytes)),
                                            bucket.ready, bucket.done, bucket.cause);
      bar(row, bucket.ready, hidden, 1, kHidden, title);
      bar(row, hidden, bucket.done, 1, kExposed, title);
      if (bucket.cause != "hidden") note(row, bucket.cause);
    }
    draw_legend();
    return plot_.finish();
  }

 private:
  /// Below the plot, left of the axis' title.
  void draw_legend() {
    constexpr double kSwatch = 12, kGap = 18;
    constexpr double kCharacter = 6.4;  // mean advance of 12 px sans-serif
    const double base = plot_.plot_bottom() + 42;
    double left = SvgPlot::kLeft;
    for (const auto& [colour, text] : kLegend) {
      plot_.add(fmt::format(
          R"(<rect class="legend" x="{:.1f}" y="{:.1f}" width="{}" height="{}" fill="{}"/>)", left,
          base - kOverlapBar, kSwatch, kOverlapBar, colour));
      plot_.add(
          fmt::format(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)", left + kSwatch + 5, base, text));
      left += kSwatch + 5 + kCharacter * static_cast<double>(text.size()) + kGap;
    }
  }

  /// Rows count from above.
  void bar(double row, double from, double to, double height, const char* colour,
           const std::string& title) {
    if (to <= from) return;
    plot_.add(fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"><title>{}</title></rect>)",
        plot_.x(from), SvgPlot::kTop + row * kOverlapRow - kOverlapBar * height / 2,
        std::max(plot_.x(to) - plot_.x(from), 0.5), kOverlapBar * height, colour,
        svg_escaped(title)));
  }

  void note(double row, const std::string& text) {
    plot_.add(fmt::format(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)", plot_.plot_right() + 8,
                          SvgPlot::kTop + row * kOverlapRow + 4, svg_escaped(text)));
  }

  const OverlapTimeline& timeline_;
  double rows_;
  SvgPlot plot_;
};

}  // namespace

std::string overlap_chart(const OverlapTimeline& timeline) {
  return OverlapDrawing(timeline).draw();
}

}  // namespace lockstep::train

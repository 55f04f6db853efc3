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

constexpr double kOverlapWidth = 1080, kOverlapRight = 290;
constexpr double kOverlapRow = 16;  // of a bucket
constexpr double kOverlapBar = 10;  // its height
constexpr double kComputeRow = 0.9, kLinkRow = 2.3;
constexpr size_t kTopRows = 4;  // for these two

constexpr const char* kComputes = kSvgColours[2];
constexpr const char* kUpdates = kSvgColours[3];
constexpr const char* kHidden = kSvgColours[0];
constexpr const char* kExposed = kSvgColours[1];
constexpr const char* kQueued = "#bbb";

struct LegendEntry {
  const char* colour;
  std::string_view text;
};
constexpr std::array kLegend = {
    LegendEntry{kComputes, "forward and backward"},
    LegendEntry{kQueued, "bucket queued"},
    LegendEntry{kHidden, "transfer behind backward"},
    LegendEntry{kExposed, "exposed"},
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
    const double waited = timeline_.wait_end - timeline_.backward_end;
    const double updated = timeline_.step_end - timeline_.wait_end;
    plot_.add(
        fmt::format(R"(<text x="{}" y="{}">{}</text>)", SvgPlot::kLeft - 40, SvgPlot::kTop - 5,
                    fmt::format("forward and backward {:.1f} ms + waiting {:.1f} ms + "
                                "optimizer {:.1f} ms = step {:.1f} ms",
                                timeline_.backward_end, waited, updated, timeline_.step_end)));
    label(kComputeRow, "compute");
    bar(kComputeRow, 0, timeline_.backward_end, 1.3, kComputes, "forward and backward");
    bar(kComputeRow, timeline_.backward_end, timeline_.wait_end, 1.3, kExposed, "waits");
    bar(kComputeRow, timeline_.wait_end, timeline_.step_end, 1.3, kUpdates, "optimizer");
    note(kComputeRow, fmt::format("waits {:.1f} ms", waited));
    label(kLinkRow, "link");
    for (size_t i = 0; i < timeline_.buckets.size(); ++i) draw_bucket(i);
    draw_legend();
    return plot_.finish();
  }

 private:
  void draw_bucket(size_t index) {
    const OverlapTimeline::Bucket& bucket = timeline_.buckets[index];
    const double row = static_cast<double>(index + kTopRows) - 0.5;
    const std::string size = format_bytes(static_cast<uint64_t>(bucket.bytes));
    std::string title = fmt::format("bucket {}, {}", index + 1, size);
    if (!bucket.first.empty()) title += ", " + bucket.first;
    if (bucket.last != bucket.first) title += " to " + bucket.last;
    title += fmt::format(": ready at {:.1f}, transfer {:.1f} to {:.1f} ms, {}", bucket.ready,
                         bucket.begin, bucket.done, bucket.cause);
    const double hidden = std::clamp(timeline_.backward_end, bucket.begin, bucket.done);
    label(row, fmt::format("bucket {}", index + 1));
    bar(row, bucket.ready, bucket.begin, 1, kQueued, title);
    for (const auto& [at, height] : {std::pair{row, 1.0}, std::pair{kLinkRow, 1.3}}) {
      bar(at, bucket.begin, hidden, height, kHidden, title);
      bar(at, hidden, bucket.done, height, kExposed, title);
    }
    std::string text = size;
    if (bucket.exposed > 0) text += fmt::format(", {:.1f} ms: {}", bucket.exposed, bucket.cause);
    note(row, text);
  }

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

  /// Left of the plot.
  void label(double row, const std::string& text) {
    plot_.add(fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)",
                          SvgPlot::kLeft - 8, SvgPlot::kTop + row * kOverlapRow + 4, text));
  }

  /// Right of it.
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

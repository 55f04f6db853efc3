#include "train/report/memory_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "train/report/step_line.h"
#include "train/report/svg_plot.h"
#include "train/report/svg_style.h"

namespace lockstep::train {
namespace {

constexpr double kMemoryWidth = 980, kMemoryHeight = 520, kMemoryRight = 290;
constexpr double kMemoryRow = 19;    // of the legend
constexpr size_t kColumns = 600;     // moments that are drawn
constexpr size_t kLongestName = 26;  // that fits the legend

constexpr const char* kAreaStyle =
    ".area{stroke:none}.peak{stroke:#888;stroke-width:1;stroke-dasharray:4 3}";

struct Unit {
  double bytes;
  const char* name;
};
constexpr std::array<Unit, 4> kUnits = {Unit{1, "B"}, Unit{0x1p10, "KiB"}, Unit{0x1p20, "MiB"},
                                        Unit{0x1p30, "GiB"}};

using Moment = MemoryTimeline::Moment;

/// Selects the moments to draw: the highest of each column, so that no peak is lost.
std::vector<const Moment*> drawn(const MemoryTimeline& timeline, double end_ms) {
  std::vector<const Moment*> result;
  size_t current = kColumns;
  for (const Moment& moment : timeline.moments) {
    const double place = end_ms > 0 ? moment.ms / end_ms : 0;
    const size_t column =
        std::min(static_cast<size_t>(place * static_cast<double>(kColumns)), kColumns - 1);
    if (column != current) {
      result.push_back(&moment);
    } else if (moment.total() > result.back()->total()) {
      result.back() = &moment;
    }
    current = column;
  }
  return result;
}

std::string short_name(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  return "..." + name.substr(name.size() - kLongestName + 3);
}

class MemoryDrawing {
 public:
  explicit MemoryDrawing(const MemoryTimeline& timeline)
      : timeline_(timeline),
        peak_(timeline.moments[timeline.peak]),
        plot_(kMemoryWidth, kMemoryHeight, kMemoryRight, "Memory over a step", kAreaStyle) {
    const double end = timeline.moments.back().ms;
    const double highest = static_cast<double>(peak_.total());
    for (const Unit& unit : kUnits) {
      if (highest >= 4 * unit.bytes) unit_ = unit;
    }
    plot_.set_axes(linear_axis(0, end > 0 ? end : 1, 8),
                   linear_axis(0, std::max(highest / unit_.bytes * 1.04, 1.0), 6));
    moments_ = drawn(timeline, end);
  }

  std::string draw() {
    plot_.draw_axes(
        "Time, ms",
        fmt::format("Memory on loan, {}: {}{}", unit_.name, svg_escaped(timeline_.device),
                    timeline_.title.empty() ? "" : ", " + svg_escaped(timeline_.title)));
    draw_areas();
    draw_peak();
    draw_legend();
    return plot_.finish();
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    plot_.add(fmt::format(format, std::forward<Args>(args)...));
  }

  double y(int64_t bytes) const { return plot_.y(static_cast<double>(bytes) / unit_.bytes); }
  /// Fill of a group's area. The first group, held all the time, is grey. When the colours are used
  /// up they repeat, paler.
  static std::string fill(size_t group) {
    if (group == 0) return R"(fill="#b8b8b8")";
    const size_t i = group - 1;
    return fmt::format(R"(fill="{}" fill-opacity="{}")", kSvgColours[i % kSvgColours.size()],
                       i < kSvgColours.size() ? 0.85 : 0.45);
  }

  /// Draws the areas from bottom to top, each on those before it. Edges are steps, since memory
  /// does not change between two moments.
  void draw_areas() {
    std::vector<int64_t> below(moments_.size(), 0);
    for (size_t group = 0; group < timeline_.groups.size(); ++group) {
      std::string top;
      std::string bottom;
      for (size_t i = 0; i < moments_.size(); ++i) {
        const double from = plot_.x(moments_[i]->ms);
        const double to =
            plot_.x(i + 1 < moments_.size() ? moments_[i + 1]->ms : timeline_.moments.back().ms);
        const double low = y(below[i]);
        below[i] += moments_[i]->bytes[group];
        const double high = y(below[i]);
        top += fmt::format("L{:.1f} {:.1f}H{:.1f}", from, high, to);
        bottom = fmt::format("L{:.1f} {:.1f}H{:.1f}", to, low, from) + bottom;
      }
      top[0] = 'M';
      add(R"(<path class="area" {} d="{}{}Z"><title>{}</title></path>)", fill(group), top, bottom,
          svg_escaped(timeline_.groups[group]));
    }
  }

  void draw_peak() {
    const double at = plot_.x(peak_.ms);
    const double high = y(peak_.total());
    add(R"(<line class="peak" x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2}"/>)", at, high,
        plot_.plot_bottom());
    add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" class="ink"/>)", at, high);
    const bool right = at > SvgPlot::kLeft + plot_.plot_width() / 2;
    add(R"(<text class="label" x="{:.1f}" y="{:.1f}"{}>peak {}</text>)", at + (right ? -8 : 8),
        high - 6, right ? R"( text-anchor="end")" : "",
        format_bytes(static_cast<uint64_t>(peak_.total())));
  }

  /// Draws the legend in the order of the areas, the topmost first.
  void draw_legend() {
    const double left = plot_.plot_right() + 20;
    add(R"(<text class="label" x="{}" y="{}">at the peak</text>)", left, SvgPlot::kTop - 4);
    double middle = SvgPlot::kTop + kMemoryRow / 2 + 4;
    for (size_t group = timeline_.groups.size(); group-- > 0;) {
      add(R"(<rect x="{}" y="{}" width="12" height="12" {}/>)", left, middle - 6, fill(group));
      add(R"(<text x="{}" y="{}">{}</text>)", left + 18, middle + 4,
          svg_escaped(short_name(timeline_.groups[group])));
      add(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", plot_.width() - 12, middle + 4,
          format_bytes(static_cast<uint64_t>(peak_.bytes[group])));
      middle += kMemoryRow;
    }
  }

  const MemoryTimeline& timeline_;
  const Moment& peak_;
  Unit unit_ = kUnits[0];
  SvgPlot plot_;
  std::vector<const Moment*> moments_;
};

}  // namespace

std::string memory_chart(const MemoryTimeline& timeline) { return MemoryDrawing(timeline).draw(); }

}  // namespace lockstep::train

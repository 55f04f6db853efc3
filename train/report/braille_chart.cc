#include "train/report/braille_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "train/report/step_line.h"

namespace lockstep::train {
namespace {

constexpr std::array<int, 6> kColours = {36, 33, 32, 35, 34, 31};  // terminal colours, by group
constexpr std::string_view kMarks = "123456789abcdefghijklmnopqrstuvwxyz";
constexpr int kStretch = 8;    // dots that equal curves take in turn
constexpr int kMarkWidth = 2;  // a space and the mark of the curve that ends in the row

/// The dots of a braille character, U+2800 + bits, by [row][column].
constexpr std::array<std::array<int, 2>, 4> kDots = {
    {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};

std::string utf8(int bits) {
  return {static_cast<char>(0xe2), static_cast<char>(0xa0 | bits >> 6),
          static_cast<char>(0x80 | (bits & 0x3f))};
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

char mark_of(size_t curve) { return kMarks[curve % kMarks.size()]; }

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns), rows_(rows), cells_(static_cast<size_t>(columns * rows)) {}

  int width() const { return columns_ * 2; }
  int height() const { return rows_ * 4; }

  void dot(int x, int y, int group) {
    x = std::clamp(x, 0, width() - 1);
    y = std::clamp(y, 0, height() - 1);
    Cell& cell = at(x / 2, y / 4);
    cell.bits |= kDots[static_cast<size_t>(y % 4)][static_cast<size_t>(x % 2)];
    cell.group = group;
  }

  /// `broken`: with gaps as wide as a character; both ends are drawn.
  void line(int x0, int y0, int x1, int y1, int group, bool broken) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      if (broken && i % 4 >= 2 && i != steps) continue;
      const double share = static_cast<double>(i) / steps;
      dot(static_cast<int>(std::lround(x0 + share * (x1 - x0))),
          static_cast<int>(std::lround(y0 + share * (y1 - y0))), group);
    }
  }

  std::string row(int row, bool colour) {
    std::string text;
    int shown = -1;  // group of the terminal's current colour; -1: none
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = at(column, row);
      const int group = cell.bits == 0 ? -1 : cell.group;
      if (colour && group != shown) {
        text += group < 0 ? "\x1b[0m" : escape(group);
        shown = group;
      }
      text += cell.bits == 0 ? " " : utf8(cell.bits);
    }
    return shown >= 0 ? text + "\x1b[0m" : text;
  }

  static std::string escape(int group) {
    return fmt::format("\x1b[{}m", kColours[static_cast<size_t>(group) % kColours.size()]);
  }

 private:
  struct Cell {
    int bits = 0;
    int group = 0;
  };
  Cell& at(int column, int row) { return cells_[static_cast<size_t>(row * columns_ + column)]; }

  int columns_;
  int rows_;
  std::vector<Cell> cells_;
};

/// Places `label` in `line` centred on `column` unless it would touch another.
void place(std::string& line, const std::string& label, int column) {
  const int width = static_cast<int>(label.size());
  const int begin =
      std::clamp(column - width / 2, 0, std::max(0, static_cast<int>(line.size()) - width));
  if (begin + width > static_cast<int>(line.size())) return;
  for (int i = std::max(begin - 1, 0);
       i < std::min(begin + width + 1, static_cast<int>(line.size())); ++i) {
    if (line[static_cast<size_t>(i)] != ' ') return;
  }
  line.replace(static_cast<size_t>(begin), label.size(), label);
}

/// The empty row nearest to `row`; -1 if there is none.
int free_row(const std::vector<std::string>& rows, int row) {
  const int count = static_cast<int>(rows.size());
  for (int distance = 0; distance < count; ++distance) {
    for (const int candidate : {row + distance, row - distance}) {
      if (candidate >= 0 && candidate < count && rows[static_cast<size_t>(candidate)].empty()) {
        return candidate;
      }
    }
  }
  return -1;
}

std::string shortened(const std::string& name, size_t width) {
  if (name.size() <= width) return name;
  return width > 3 ? name.substr(0, width - 3) + "..." : name.substr(0, width);
}

/// The curve's label within `width` characters, or a little more: the run's name is cut, what of
/// the run it shows is not.
std::string label_within(const Curve& curve, size_t width) {
  const size_t metric = curve.metric.empty() ? 0 : curve.metric.size() + 1;
  Curve cut;
  cut.name = shortened(curve.name, width > metric ? width - metric : 1);
  cut.metric = curve.metric;
  return cut.label();
}

/// How the curve is drawn, in three characters.
const char* sample_of(const Curve& curve) { return curve.sparse ? "⠤ ⠤" : "⠤⠤⠤"; }

}  // namespace

std::string braille_chart(std::span<const Curve> curves, const BrailleOptions& options) {
  const int columns = std::max(options.columns, 30);
  const int rows = std::max(options.rows, 4);
  const Axes axes = axes_of(curves, options.log_x, columns / 12, rows / 2);
  size_t label_width = 0;
  for (const Tick& tick : axes.y.ticks) {
    label_width = std::max(label_width, display_width(tick.label));
  }
  Canvas canvas(columns - static_cast<int>(label_width) - 2 - kMarkWidth, rows);
  const auto x = [&](double value) {
    return static_cast<int>(std::lround(axes.x.position(value) * (canvas.width() - 1)));
  };
  const auto y = [&](double value) {
    return static_cast<int>(std::lround((1 - axes.y.position(value)) * (canvas.height() - 1)));
  };

  std::vector<std::string> ends(static_cast<size_t>(rows));
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::vector<Bucket> points = buckets(curves[i], axes.x, canvas.width());
    const bool hides_another = same_as(curves, i).has_value();
    for (size_t p = 0; p < points.size(); ++p) {
      const Bucket& from = points[p == 0 ? 0 : p - 1];
      // Every other stretch is left to the curve below.
      if (hides_another && x(points[p].x) / kStretch % 2 == 0) continue;
      canvas.line(x(from.x), y(from.mean), x(points[p].x), y(points[p].mean), curves[i].group,
                  curves[i].sparse);
    }
    if (const int row = free_row(ends, y(points.back().mean) / 4); row >= 0) {
      ends[static_cast<size_t>(row)] = mark_of(i);
    }
  }
  std::vector<std::string> labels(static_cast<size_t>(rows));
  for (const Tick& tick : axes.y.ticks) labels[static_cast<size_t>(y(tick.value) / 4)] = tick.label;

  std::string text;
  for (int row = 0; row < rows; ++row) {
    const std::string& label = labels[static_cast<size_t>(row)];
    const std::string& end = ends[static_cast<size_t>(row)];
    text += fmt::format("{}{} {}{}", std::string(label_width - display_width(label), ' '), label,
                        label.empty() ? "│" : "┤", canvas.row(row, options.colour));
    text += fmt::format("{}{}\n", end.empty() ? "" : " ", end);
  }
  const std::string indent(label_width + 1, ' ');
  std::string rule;
  for (int i = 0; i < canvas.width() / 2; ++i) rule += "─";
  std::string marks(static_cast<size_t>(canvas.width() / 2 + kMarkWidth), ' ');
  for (const Tick& tick : axes.x.ticks) place(marks, tick.label, x(tick.value) / 2);
  marks.erase(marks.find_last_not_of(' ') + 1);
  text += fmt::format("{}└{}\n{} {}\n", indent, rule, indent, marks);
  for (size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    const std::optional<size_t> same = same_as(curves, i);
    text += fmt::format("{}{}{} {}{} {}  {}{}\n", indent,
                        options.colour ? Canvas::escape(curve.group) : "", mark_of(i),
                        sample_of(curve), options.colour ? "\x1b[0m" : "",
                        label_within(curve, static_cast<size_t>(columns) - indent.size() - 18),
                        format_loss(curve.points.back().y),
                        same ? fmt::format(", the same as {}", mark_of(*same)) : "");
  }
  return text;
}

}  // namespace lockstep::train

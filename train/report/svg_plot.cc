#include "train/report/svg_plot.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "train/report/svg_style.h"

namespace lockstep::train {

SvgPlot::SvgPlot(double width, double height, double right, std::string_view title,
                 std::string_view style)
    : width_(width), height_(height), right_(right) {
  add(fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">)",
      width, height));
  add(fmt::format("<title>{}</title>\n<style>{}{}</style>", title, kSvgStyle, style));
  add(fmt::format(R"(<rect class="paper" width="{}" height="{}"/>)", width, height));
}

void SvgPlot::set_axes(Axis x, Axis y) {
  x_ = std::move(x);
  y_ = std::move(y);
}

void SvgPlot::draw_axes(std::string_view x_title, std::string_view y_title) {
  const double bottom = plot_bottom();
  for (const Tick& tick : y_.ticks) {
    const double at = std::round(y(tick.value)) + 0.5;  // centred on a pixel: a sharp line
    add(fmt::format(R"(<line class="grid" x1="{}" y1="{}" x2="{}" y2="{}"/>)", kLeft, at,
                    plot_right(), at));
    add(fmt::format(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8, at + 4,
                    tick.label));
  }
  for (const Tick& tick : x_.ticks) {
    const double at = std::round(x(tick.value)) + 0.5;
    add(fmt::format(R"(<line class="axis" x1="{0}" y1="{1}" x2="{0}" y2="{2}"/>)", at, bottom + 0.5,
                    bottom + 5.5));
    add(fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", at, bottom + 20,
                    tick.label));
  }
  add(fmt::format(R"(<line class="axis" x1="{0}" y1="{2}" x2="{1}" y2="{2}"/>)", kLeft,
                  plot_right(), bottom + 0.5));
  add(fmt::format(R"(<text class="label" x="{}" y="{}">{}</text>)", kLeft - 40, kTop - 22,
                  y_title));
  add(fmt::format(R"(<text class="label" x="{}" y="{}" text-anchor="end">{}</text>)", plot_right(),
                  bottom + 42, x_title));
}

void SvgPlot::add(std::string_view line) {
  text_ += line;
  text_ += '\n';
}

std::string SvgPlot::finish() {
  add("</svg>");
  return std::exchange(text_, {});
}

std::string svg_escaped(std::string_view text) {
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

}  // namespace lockstep::train

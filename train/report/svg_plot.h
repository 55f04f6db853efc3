#pragma once

#include <string>
#include <string_view>

#include "train/report/axis.h"

namespace lockstep::train {

/// Builds an SVG image with a framed plot: the common part of all charts. Lengths are in pixels,
/// from the upper left corner.
class SvgPlot {
 public:
  static constexpr double kLeft = 64, kTop = 52, kBottom = 52;  // margins

  /// Begins an image of `width` by `height`, with a margin of `right` beside the plot, and `style`
  /// added to the common style. `title` is the text for screen readers.
  SvgPlot(double width, double height, double right, std::string_view title,
          std::string_view style);

  double width() const { return width_; }
  double height() const { return height_; }
  double plot_width() const { return width_ - kLeft - right_; }
  double plot_height() const { return height_ - kTop - kBottom; }
  double plot_right() const { return kLeft + plot_width(); }
  double plot_bottom() const { return kTop + plot_height(); }

  void set_axes(Axis x, Axis y);
  const Axis& x_axis() const { return x_; }
  /// Pixel coordinates of a value on the current axes.
  double x(double value) const { return kLeft + x_.position(value) * plot_width(); }
  double y(double value) const { return kTop + (1 - y_.position(value)) * plot_height(); }
  /// Draws the axes with their marks and titles; titles must be escaped.
  void draw_axes(std::string_view x_title, std::string_view y_title);

  /// Appends a line to the SVG text.
  void add(std::string_view line);
  /// Returns the whole image. The plot is empty afterwards.
  std::string finish();

 private:
  double width_;
  double height_;
  double right_;
  Axis x_;
  Axis y_;
  std::string text_;
};

/// Escapes `text` for an element or an attribute; control characters are removed.
std::string svg_escaped(std::string_view text);

}  // namespace lockstep::train

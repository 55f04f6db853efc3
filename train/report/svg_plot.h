#pragma once

#include <string>
#include <string_view>

#include "train/report/axis.h"

namespace lockstep::train {

/// An SVG image with a framed plot in it: what every chart shares. Lengths are in pixels, from the
/// upper left corner.
class SvgPlot {
 public:
  static constexpr double kLeft = 64, kTop = 52, kBottom = 52;  // margins

  /// The image `width` by `height`, with `right` left free beside the plot, and its `style` added
  /// to the common one. Begins the text; `title` is what a screen reader says.
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
  /// Where a value lies on the axes set.
  double x(double value) const { return kLeft + x_.position(value) * plot_width(); }
  double y(double value) const { return kTop + (1 - y_.position(value)) * plot_height(); }
  /// The axes with their marks and titles; titles must be escaped.
  void draw_axes(std::string_view x_title, std::string_view y_title);

  /// One more line of the text.
  void add(std::string_view line);
  /// The whole image. The plot is empty after it.
  std::string finish();

 private:
  double width_;
  double height_;
  double right_;
  Axis x_;
  Axis y_;
  std::string text_;
};

/// `text` as it may stand in an element or an attribute; control characters are left out.
std::string svg_escaped(std::string_view text);

}  // namespace lockstep::train

#include "train/spike_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace lockstep::train {

std::string describe_largest(std::span<const double> losses,
                             std::span<const SampleOrigin> origins) {
  constexpr size_t kMost = 3;
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  std::vector<size_t> order(losses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // A loss that is not a number counts as the largest.
  const auto size = [&](size_t i) { return std::isnan(losses[i]) ? HUGE_VAL : losses[i]; };
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return size(a) > size(b); });
  std::string text;
  for (size_t n = 0; n < std::min(kMost, order.size()); ++n) {
    const size_t i = order[n];
    const bool is_finite = std::isfinite(losses[i]);
    if (is_finite && !(losses[i] * static_cast<double>(losses.size()) > sum)) break;
    text += fmt::format("{}sample {}", n == 0 ? "" : ", ", i);
    if (i < origins.size()) {
      text +=
          fmt::format(" ({}, {} {})", file_and_line(origins[i]), origins[i].unit, origins[i].first);
    }
    if (is_finite && std::isfinite(sum)) {
      text += fmt::format(" {}{:.0f} %", n == 0 ? "has " : "", 100 * losses[i] / sum);
      if (n == 0) text += " of the loss";
    } else {
      text += fmt::format(" has loss {}", losses[i]);
    }
  }
  return text;
}

}  // namespace lockstep::train

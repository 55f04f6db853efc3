#include "core/base/duration.h"

#include <charconv>
#include <cmath>

namespace lockstep {

double parse_duration(std::string_view text) {
  double total = 0;
  for (int parts = 0; !text.empty(); ++parts) {
    const size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    double value = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), value);
    const bool good = read.ec == std::errc{} && read.ptr == part.data() + part.size() &&
                      std::isfinite(value) && value >= 0;
    if (!good || parts == 3) return -1;
    total = total * 60 + value;
    if (colon == text.npos) return total;
    text.remove_prefix(colon + 1);
  }
  return total > 0 ? -1 : 0;  // the text ends with a colon
}

}  // namespace lockstep

#include "dist/rendezvous/text_difference.h"

#include <sstream>

namespace lockstep::dist {

LineDifference first_difference(const std::string& first, const std::string& second) {
  std::istringstream a(first);
  std::istringstream b(second);
  for (;;) {
    LineDifference lines{"nothing more", "nothing more"};
    const bool more_a = static_cast<bool>(std::getline(a, lines.first));
    const bool more_b = static_cast<bool>(std::getline(b, lines.second));
    if (!more_a) lines.first = "nothing more";
    if (!more_b) lines.second = "nothing more";
    if (lines.first != lines.second || (!more_a && !more_b)) return lines;
  }
}

}  // namespace lockstep::dist

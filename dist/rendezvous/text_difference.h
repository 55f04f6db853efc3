#pragma once

#include <string>

namespace lockstep::dist {

/// Two lines that stand at the same place of two texts.
struct LineDifference {
  std::string first;
  std::string second;
};
/// Returns the first pair of lines that differ; "nothing more" stands for a line that one of the
/// texts does not have.
LineDifference first_difference(const std::string& first, const std::string& second);

}  // namespace lockstep::dist

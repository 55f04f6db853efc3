#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// Splits a line into words at spaces, like a shell without quotes.
inline std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

}  // namespace lockstep::launcher

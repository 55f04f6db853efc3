#pragma once

#include <fstream>
#include <string>

namespace lockstep {

/// Bytes of a line of /proc/self/status: "VmRSS:", or "VmHWM:" for the most so far.
inline double status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    double kilobytes = 0;
    if (word == key && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace lockstep

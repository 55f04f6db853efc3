#pragma once

#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lockstep {

inline constexpr Device kHost{DeviceType::kHost, 0};

/// The findings of a report, one per line.
inline std::string lines_of(const std::vector<std::string>& findings) {
  std::string text;
  for (const std::string& finding : findings) text += finding + "\n";
  return text;
}

}  // namespace lockstep

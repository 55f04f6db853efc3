#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

enum class DeviceType : uint8_t { kCPU, kHost, kCUDA, kMeta };

/// Where a tensor's bytes are. `cpu` and `meta` have one device; `host` and `cuda` are numbered.
struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};
inline constexpr Device kCPU{DeviceType::kCPU, 0};
inline constexpr Device kMeta{DeviceType::kMeta, 0};

/// "cpu", "meta", "host:0", "cuda:1".
std::string to_string(Device device);
/// Inverse of `to_string`; "cuda" means "cuda:0". Throws DeviceError naming the accepted forms.
Device parse_device(std::string_view text);

}  // namespace lockstep

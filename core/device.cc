#include "core/device.h"

#include <charconv>

#include "core/check.h"

namespace lockstep {

std::string to_string(Device device) {
  switch (device.type) {
    case DeviceType::kCPU:
      return "cpu";
    case DeviceType::kMeta:
      return "meta";
    case DeviceType::kHost:
      return fmt::format("host:{}", device.index);
    case DeviceType::kCUDA:
      return fmt::format("cuda:{}", device.index);
  }
  return "?";
}

Device parse_device(std::string_view text) {
  if (text == "cpu") return kCPU;
  if (text == "meta") return kMeta;
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  int index = 0;
  bool good = kind == "host" || kind == "cuda";
  if (good && colon != std::string_view::npos) {
    const char* last = text.data() + text.size();
    const auto [end, failure] = std::from_chars(text.data() + colon + 1, last, index);
    good = failure == std::errc() && end == last && index >= 0 && index < 128;
  }
  LS_CHECK(good, DeviceError,
           "[device] unknown device \"{}\": expected cpu, meta, host:N or cuda:N.", text);
  return {kind == "host" ? DeviceType::kHost : DeviceType::kCUDA, static_cast<int8_t>(index)};
}

}  // namespace lockstep

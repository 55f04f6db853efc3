#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace lockstep {

/// How a new tensor's elements are ordered in memory.
enum class MemoryFormat : uint8_t { kContiguous, kPreserve, kChannelsLast, kChannelsLast3d };
/// As schemas write it: "contiguous_format", "preserve_format", ...
constexpr std::string_view name(MemoryFormat format) {
  constexpr std::string_view kNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                         "channels_last_3d"};
  return kNames[static_cast<int>(format)];
}
/// Dense tensors with strides are the only layout so far.
enum class Layout : uint8_t { kStrided };

/// What a factory makes; an absent member means the default (f32 on default_device()) or, for the
/// `*_like` family, the example's.
struct TensorOptions {
  std::optional<DType> dtype;
  std::optional<Device> device;
  bool requires_grad = false;

  TensorOptions() = default;
  TensorOptions(DType d) : dtype(d) {}
  TensorOptions(Device d) : device(d) {}
  TensorOptions(DType t, Device d) : dtype(t), device(d) {}
};

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace lockstep {

/// How a new tensor's elements are ordered in memory.
enum class MemoryFormat : uint8_t { kContiguous, kPreserve, kChannelsLast, kChannelsLast3d };
/// The name in operator schemas: "contiguous_format", "preserve_format", ...
constexpr std::string_view name(MemoryFormat format) {
  constexpr std::string_view kNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                         "channels_last_3d"};
  return kNames[static_cast<int>(format)];
}
/// Storage layout. Dense tensors with strides are the only one so far.
enum class Layout : uint8_t { kStrided };

/// Options of a factory; an absent member means the default (f32 on default_device()) or, in the
/// `*_like` family, the value of the example tensor.
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

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/dtype.h"

namespace lockstep::train {

/// The largest JSON header the format allows, in bytes.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// One tensor as the JSON header of a safetensors file declares it; nothing but its syntax and its
/// dtype is checked yet. Offsets are bytes from the start of the data.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Parses the JSON. Throws CheckpointError beginning with `origin` for malformed JSON, unexpected
/// members, duplicate keys and unsupported dtypes.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::string_view origin);

/// The JSON for `header`, padded with spaces to a multiple of 8 bytes. Throws CheckpointError
/// beginning with `origin` for names that are not UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header, std::string_view origin);

/// product(shape) * size_of(dtype). Throws CheckpointError with `origin` and `name` when a size is
/// negative or the product passes 2^63.
uint64_t byte_count(DType dtype, std::span<const int64_t> shape, std::string_view origin,
                    std::string_view name);

/// The place of `dtype` in the format's own list, by which the reference writer orders tensors.
int safetensors_rank(DType dtype);

}  // namespace lockstep::train

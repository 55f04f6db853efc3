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

/// One tensor as declared in the JSON header of a safetensors file; only its syntax and dtype have
/// been checked. Offsets are bytes from the start of the data.
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

/// Parses the JSON. Throws CheckpointError, with a message that begins with `origin`, for malformed
/// JSON, unexpected members, duplicate keys and unsupported dtypes.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::string_view origin);

/// Throws CheckpointError unless a header of `bytes` bytes is allowed and ends within the `left`
/// bytes that follow its length.
void check_header_bytes(uint64_t bytes, uint64_t left, std::string_view origin);

/// Sorts the tensors by their place. Throws CheckpointError, naming the tensor, unless they fill
/// `data_bytes` bytes without overlaps and holes, each as its shape needs.
void check_layout(SafetensorsHeader& header, uint64_t data_bytes, std::string_view origin);

/// Returns `header` as JSON, padded with spaces to a multiple of 8 bytes. Throws CheckpointError,
/// with a message that begins with `origin`, for names that are not UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header, std::string_view origin);

/// product(shape) * size_of(dtype). Throws CheckpointError with `origin` and `name` if a size is
/// negative or the product exceeds 2^63.
uint64_t byte_count(DType dtype, std::span<const int64_t> shape, std::string_view origin,
                    std::string_view name);

/// Index of `dtype` in the format's list of types, by which the reference writer orders tensors.
int safetensors_rank(DType dtype);

}  // namespace lockstep::train

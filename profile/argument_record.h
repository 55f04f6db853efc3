#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dispatch/value.h"
#include "core/tensor/dtype.h"

namespace lockstep::profile {

/// One argument of a call, as traces show it.
struct ArgumentInfo {
  std::vector<int64_t> sizes;                       ///< of a tensor
  std::vector<std::vector<int64_t>> sizes_of_list;  ///< of a list of tensors
  std::string type;   ///< "float", "c10::BFloat16", "TensorList", "Scalar", "ScalarList", ""
  std::string value;  ///< of a number, a truth value or a list of numbers

  friend bool operator==(const ArgumentInfo&, const ArgumentInfo&) = default;
};

/// Writes shapes, dtypes and small values of the arguments into `into` and returns the number of
/// bytes. What does not fit is left out. Takes no memory. Of a list of tensors the first 16 are
/// kept, of a list of numbers the first 8.
size_t write_arguments(std::span<const Value> arguments, std::span<char> into) noexcept;
/// Reads what `write_arguments` wrote.
std::vector<ArgumentInfo> read_arguments(std::string_view bytes);

/// Name of a dtype in PyTorch's traces: "float", "c10::BFloat16", "long int", ...
std::string_view trace_name(DType dtype);

}  // namespace lockstep::profile

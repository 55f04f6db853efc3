#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Number and size of the hidden copies that this process has made: a cast, a `contiguous()`, a
/// change of strides inside an operator. LOCKSTEP_WARN_COPIES=1 also writes a line to standard
/// error for each.
struct CopyCount {
  int64_t copies = 0;
  int64_t bytes = 0;
};
/// Thread-safe.
CopyCount hidden_copies();
/// Counts one hidden copy of `tensor`, made for operator `op`, and why.
void count_hidden_copy(std::string_view op, const Tensor& tensor, std::string_view why);

}  // namespace lockstep

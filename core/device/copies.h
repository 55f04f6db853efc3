#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Hidden copies made so far by this process: a cast, a `contiguous()`, a change of strides inside
/// an operator. With LOCKSTEP_WARN_COPIES=1 each also writes a line to standard error.
struct CopyCount {
  int64_t copies = 0;
  int64_t bytes = 0;
};
/// Thread-safe.
CopyCount hidden_copies();
/// Notes one hidden copy of `tensor` made for operator `op`, and why.
void count_hidden_copy(std::string_view op, const Tensor& tensor, std::string_view why);

}  // namespace lockstep

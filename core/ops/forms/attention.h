#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& rotary_embedding_out(const Tensor& out, const Tensor& input, const Tensor& cosine,
                                   const Tensor& sine, bool inverse = false);

}  // namespace lockstep

#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& arange_out(const Tensor& out, const Scalar& end);
const Tensor& arange_out(const Tensor& out, const Scalar& start, const Scalar& end,
                         const Scalar& step = 1);
const Tensor& clone_out(const Tensor& out, const Tensor& self,
                        std::optional<MemoryFormat> memory_format);
const Tensor& copy_out(const Tensor& out, const Tensor& self, const Tensor& src,
                       bool non_blocking = false);
const Tensor& empty_out(const Tensor& out, IntList size,
                        std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& empty_like_out(const Tensor& out, const Tensor& self,
                             std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& empty_permuted_out(const Tensor& out, IntList size, IntList physical_layout);
const Tensor& empty_strided_out(const Tensor& out, IntList size, IntList stride);
const Tensor& eye_out(const Tensor& out, int64_t n, int64_t m);
const Tensor& eye_out(const Tensor& out, int64_t n);
const Tensor& fill_out(const Tensor& out, const Tensor& self, const Scalar& value);
Tensor fill(const Tensor& self, const Tensor& value);
const Tensor& fill_out(const Tensor& out, const Tensor& self, const Tensor& value);
const Tensor& fill_(const Tensor& self, const Tensor& value);
const Tensor& full_out(const Tensor& out, IntList size, const Scalar& fill_value);
const Tensor& full_like_out(const Tensor& out, const Tensor& self, const Scalar& fill_value,
                            std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& linspace_out(const Tensor& out, const Scalar& start, const Scalar& end,
                           int64_t steps);
const Tensor& logspace_out(const Tensor& out, const Scalar& start, const Scalar& end, int64_t steps,
                           double base = 10.0);
const Tensor& new_empty_out(const Tensor& out, const Tensor& self, IntList size);
const Tensor& new_empty_strided_out(const Tensor& out, const Tensor& self, IntList size,
                                    IntList stride);
const Tensor& new_full_out(const Tensor& out, const Tensor& self, IntList size,
                           const Scalar& fill_value);
const Tensor& new_ones_out(const Tensor& out, const Tensor& self, IntList size);
const Tensor& new_zeros_out(const Tensor& out, const Tensor& self, IntList size);
const Tensor& ones_out(const Tensor& out, IntList size);
const Tensor& ones_like_out(const Tensor& out, const Tensor& self,
                            std::optional<MemoryFormat> memory_format = std::nullopt);
const Tensor& scalar_tensor_out(const Tensor& out, const Scalar& s);
/// A tensor with self's shape, strides and dtype and every element 0.
Tensor zero(const Tensor& self);
const Tensor& zero_out(const Tensor& out, const Tensor& self);
const Tensor& zeros_out(const Tensor& out, IntList size);
const Tensor& zeros_like_out(const Tensor& out, const Tensor& self,
                             std::optional<MemoryFormat> memory_format = std::nullopt);

}  // namespace lockstep

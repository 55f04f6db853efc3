#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& addbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1,
                         const Tensor& batch2, const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& addbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                      const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& addmm_(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                     const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& addmv_out(const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec,
                        const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& addmv_(const Tensor& self, const Tensor& mat, const Tensor& vec,
                     const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& addr_out(const Tensor& out, const Tensor& self, const Tensor& vec1,
                       const Tensor& vec2, const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& addr_(const Tensor& self, const Tensor& vec1, const Tensor& vec2,
                    const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& baddbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1,
                          const Tensor& batch2, const Scalar& beta = 1, const Scalar& alpha = 1);
const Tensor& baddbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                       const Scalar& beta = 1, const Scalar& alpha = 1);
Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode);
const Tensor& cross_out(const Tensor& out, const Tensor& self, const Tensor& other,
                        std::optional<int64_t> dim = std::nullopt);
const Tensor& diff_out(const Tensor& out, const Tensor& self, int64_t n = 1, int64_t dim = -1,
                       OptionalTensor prepend = {}, OptionalTensor append = {});
const Tensor& dist_out(const Tensor& out, const Tensor& self, const Tensor& other,
                       const Scalar& p = 2);
const Tensor& dot_out(const Tensor& out, const Tensor& self, const Tensor& tensor);
const Tensor& linalg_cross_out(const Tensor& out, const Tensor& self, const Tensor& other,
                               int64_t dim = -1);
const Tensor& linear_out(const Tensor& out, const Tensor& input, const Tensor& weight,
                         OptionalTensor bias = {});
Tensor linear_of_gelu(const Tensor& value, const Tensor& of, const Tensor& weight,
                      OptionalTensor bias = {}, OptionalTensor residual = {});
const Tensor& matmul_out(const Tensor& out, const Tensor& self, const Tensor& other);
const Tensor& mv_out(const Tensor& out, const Tensor& self, const Tensor& vec);
const Tensor& outer_out(const Tensor& out, const Tensor& self, const Tensor& vec2);
const Tensor& trace_out(const Tensor& out, const Tensor& self);

}  // namespace lockstep

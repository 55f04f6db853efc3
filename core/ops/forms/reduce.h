#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& all_out(const Tensor& out, const Tensor& self);
Tensor all(const Tensor& self, OptionalIntList dim, bool keepdim = false);
const Tensor& all_out(const Tensor& out, const Tensor& self, OptionalIntList dim,
                      bool keepdim = false);
const Tensor& all_out(const Tensor& out, const Tensor& self, int64_t dim, bool keepdim = false);
const Tensor& amax_out(const Tensor& out, const Tensor& self, IntList dim = {},
                       bool keepdim = false);
const Tensor& amin_out(const Tensor& out, const Tensor& self, IntList dim = {},
                       bool keepdim = false);
std::tuple<Tensor, Tensor> aminmax_out(const Tensor& min, const Tensor& max, const Tensor& self,
                                       std::optional<int64_t> dim = std::nullopt,
                                       bool keepdim = false);
const Tensor& any_out(const Tensor& out, const Tensor& self);
Tensor any(const Tensor& self, OptionalIntList dim, bool keepdim = false);
const Tensor& any_out(const Tensor& out, const Tensor& self, OptionalIntList dim,
                      bool keepdim = false);
const Tensor& any_out(const Tensor& out, const Tensor& self, int64_t dim, bool keepdim = false);
const Tensor& argmax_out(const Tensor& out, const Tensor& self,
                         std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
const Tensor& argmin_out(const Tensor& out, const Tensor& self,
                         std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim);
const Tensor& count_nonzero_out(const Tensor& out, const Tensor& self, IntList dim);
const Tensor& count_nonzero_out(const Tensor& out, const Tensor& self,
                                std::optional<int64_t> dim = std::nullopt);
const Tensor& cumprod_out(const Tensor& out, const Tensor& self, int64_t dim,
                          std::optional<DType> dtype = std::nullopt);
const Tensor& cumprod_(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
const Tensor& cumsum_out(const Tensor& out, const Tensor& self, int64_t dim,
                         std::optional<DType> dtype = std::nullopt);
const Tensor& cumsum_(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt);
std::vector<Tensor> gradient(const Tensor& self, IntList dim, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& self, std::optional<Scalar> spacing = std::nullopt,
                             std::optional<int64_t> dim = std::nullopt, int64_t edge_order = 1);
/// The only element as a number on the host.
Scalar item(const Tensor& self);
const Tensor& linalg_vector_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord = 2,
                                     OptionalIntList dim = std::nullopt, bool keepdim = false,
                                     std::optional<DType> dtype = std::nullopt);
const Tensor& logcumsumexp_out(const Tensor& out, const Tensor& self, int64_t dim);
const Tensor& logsumexp_out(const Tensor& out, const Tensor& self, IntList dim,
                            bool keepdim = false);
std::tuple<Tensor, Tensor> max_out(const Tensor& max, const Tensor& max_values, const Tensor& self,
                                   int64_t dim, bool keepdim = false);
const Tensor& max_out(const Tensor& out, const Tensor& self);
Tensor mean(const Tensor& self, std::optional<DType> dtype);
const Tensor& mean_out(const Tensor& out, const Tensor& self,
                       std::optional<DType> dtype = std::nullopt);
const Tensor& mean_out(const Tensor& out, const Tensor& self, OptionalIntList dim,
                       bool keepdim = false, std::optional<DType> dtype = std::nullopt);
std::tuple<Tensor, Tensor> min_out(const Tensor& min, const Tensor& min_indices, const Tensor& self,
                                   int64_t dim, bool keepdim = false);
const Tensor& min_out(const Tensor& out, const Tensor& self);
const Tensor& nanmean_out(const Tensor& out, const Tensor& self, OptionalIntList dim = std::nullopt,
                          bool keepdim = false, std::optional<DType> dtype = std::nullopt);
const Tensor& nansum_out(const Tensor& out, const Tensor& self, OptionalIntList dim = std::nullopt,
                         bool keepdim = false, std::optional<DType> dtype = std::nullopt);
/// linalg_vector_norm of all elements.
Tensor norm(const Tensor& self, const Scalar& p = 2);
Tensor norm(const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim = false);
Tensor norm(const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim, DType dtype);
Tensor norm(const Tensor& self, std::optional<Scalar> p, DType dtype);
const Tensor& norm_out(const Tensor& out, const Tensor& self, std::optional<Scalar> p, DType dtype);
const Tensor& norm_out(const Tensor& out, const Tensor& self, const Scalar& p = 2);
const Tensor& norm_out(const Tensor& out, const Tensor& self, std::optional<Scalar> p, IntList dim,
                       bool keepdim, DType dtype);
const Tensor& norm_out(const Tensor& out, const Tensor& self, std::optional<Scalar> p, IntList dim,
                       bool keepdim = false);
Tensor prod(const Tensor& self, std::optional<DType> dtype);
const Tensor& prod_out(const Tensor& out, const Tensor& self, int64_t dim, bool keepdim = false,
                       std::optional<DType> dtype = std::nullopt);
const Tensor& prod_out(const Tensor& out, const Tensor& self,
                       std::optional<DType> dtype = std::nullopt);
const Tensor& renorm_out(const Tensor& out, const Tensor& self, const Scalar& p, int64_t dim,
                         const Scalar& maxnorm);
const Tensor& renorm_(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm);
const Tensor& std_out(const Tensor& out, const Tensor& self, OptionalIntList dim = std::nullopt,
                      std::optional<Scalar> correction = std::nullopt, bool keepdim = false);
std::tuple<Tensor, Tensor> std_mean_out(const Tensor& out0, const Tensor& out1, const Tensor& self,
                                        OptionalIntList dim = std::nullopt,
                                        std::optional<Scalar> correction = std::nullopt,
                                        bool keepdim = false);
Tensor sum(const Tensor& self, std::optional<DType> dtype);
const Tensor& sum_out(const Tensor& out, const Tensor& self, OptionalIntList dim,
                      bool keepdim = false, std::optional<DType> dtype = std::nullopt);
const Tensor& sum_out(const Tensor& out, const Tensor& self,
                      std::optional<DType> dtype = std::nullopt);
const Tensor& var_out(const Tensor& out, const Tensor& self, OptionalIntList dim = std::nullopt,
                      std::optional<Scalar> correction = std::nullopt, bool keepdim = false);
std::tuple<Tensor, Tensor> var_mean_out(const Tensor& out0, const Tensor& out1, const Tensor& self,
                                        OptionalIntList dim = std::nullopt,
                                        std::optional<Scalar> correction = std::nullopt,
                                        bool keepdim = false);

}  // namespace lockstep

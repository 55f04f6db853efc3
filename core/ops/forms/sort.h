#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

Tensor argsort(const Tensor& self, bool stable, int64_t dim = -1, bool descending = false);
const Tensor& argsort_out(const Tensor& out, const Tensor& self, bool stable, int64_t dim = -1,
                          bool descending = false);
const Tensor& bincount_out(const Tensor& out, const Tensor& self, OptionalTensor weights = {},
                           int64_t minlength = 0);
Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32 = false,
                 bool right = false);
const Tensor& bucketize_out(const Tensor& out, const Scalar& self, const Tensor& boundaries,
                            bool out_int32 = false, bool right = false);
const Tensor& bucketize_out(const Tensor& out, const Tensor& self, const Tensor& boundaries,
                            bool out_int32 = false, bool right = false);
std::tuple<Tensor, Tensor> cummax_out(const Tensor& values, const Tensor& indices,
                                      const Tensor& self, int64_t dim);
std::tuple<Tensor, Tensor> cummin_out(const Tensor& values, const Tensor& indices,
                                      const Tensor& self, int64_t dim);
const Tensor& histc_out(const Tensor& out, const Tensor& self, int64_t bins = 100,
                        const Scalar& min = 0, const Scalar& max = 0);
Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique = false,
            bool invert = false);
const Tensor& isin_out(const Tensor& out, const Scalar& element, const Tensor& test_elements,
                       bool assume_unique = false, bool invert = false);
Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique = false,
            bool invert = false);
const Tensor& isin_out(const Tensor& out, const Tensor& elements, const Scalar& test_element,
                       bool assume_unique = false, bool invert = false);
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert);
const Tensor& isin_out(const Tensor& out, const Tensor& elements, const Tensor& test_elements,
                       bool assume_unique = false, bool invert = false);
std::tuple<Tensor, Tensor> kthvalue_out(const Tensor& values, const Tensor& indices,
                                        const Tensor& self, int64_t k, int64_t dim = -1,
                                        bool keepdim = false);
std::tuple<Tensor, Tensor> median_out(const Tensor& values, const Tensor& indices,
                                      const Tensor& self, int64_t dim, bool keepdim = false);
const Tensor& median_out(const Tensor& out, const Tensor& self);
std::tuple<Tensor, Tensor> mode_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    int64_t dim = -1, bool keepdim = false);
const Tensor& msort_out(const Tensor& out, const Tensor& self);
std::tuple<Tensor, Tensor> nanmedian_out(const Tensor& values, const Tensor& indices,
                                         const Tensor& self, int64_t dim, bool keepdim = false);
const Tensor& nanmedian_out(const Tensor& out, const Tensor& self);
const Tensor& nanquantile_out(const Tensor& out, const Tensor& self, const Tensor& q,
                              std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                              std::string_view interpolation = "linear");
Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim = std::nullopt,
                   bool keepdim = false, std::string_view interpolation = "linear");
const Tensor& nanquantile_out(const Tensor& out, const Tensor& self, double q,
                              std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                              std::string_view interpolation = "linear");
const Tensor& quantile_out(const Tensor& out, const Tensor& self, const Tensor& q,
                           std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                           std::string_view interpolation = "linear");
Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim = std::nullopt,
                bool keepdim = false, std::string_view interpolation = "linear");
const Tensor& quantile_out(const Tensor& out, const Tensor& self, double q,
                           std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                           std::string_view interpolation = "linear");
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32 = false,
                    bool right = false, std::optional<std::string_view> side = std::nullopt,
                    OptionalTensor sorter = {});
const Tensor& searchsorted_out(const Tensor& out, const Tensor& sorted_sequence, const Scalar& self,
                               bool out_int32 = false, bool right = false,
                               std::optional<std::string_view> side = std::nullopt,
                               OptionalTensor sorter = {});
const Tensor& searchsorted_out(const Tensor& out, const Tensor& sorted_sequence, const Tensor& self,
                               bool out_int32 = false, bool right = false,
                               std::optional<std::string_view> side = std::nullopt,
                               OptionalTensor sorter = {});
std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable, int64_t dim = -1,
                                bool descending = false);
std::tuple<Tensor, Tensor> sort_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    int64_t dim = -1, bool descending = false);
std::tuple<Tensor, Tensor> sort_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    std::optional<bool> stable, int64_t dim = -1,
                                    bool descending = false);
std::tuple<Tensor, Tensor> topk_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    int64_t k, int64_t dim = -1, bool largest = true,
                                    bool sorted = true);
/// The first of each run of equal elements, or of equal slices along a dimension, the run of each
/// element or slice, and the lengths of the runs.
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self,
                                                      bool return_inverse = false,
                                                      bool return_counts = false,
                                                      std::optional<int64_t> dim = std::nullopt);
std::tuple<Tensor, Tensor, Tensor> unique_consecutive_out(const Tensor& out0, const Tensor& out1,
                                                          const Tensor& out2, const Tensor& self,
                                                          bool return_inverse = false,
                                                          bool return_counts = false,
                                                          std::optional<int64_t> dim = std::nullopt);
/// The unique slices along a dimension in ascending order, the index of each slice among them, and
/// the number of occurrences of each.
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool sorted = true,
                                              bool return_inverse = false,
                                              bool return_counts = false);
std::tuple<Tensor, Tensor, Tensor> unique_dim_out(const Tensor& out0, const Tensor& out1,
                                                  const Tensor& out2, const Tensor& self,
                                                  int64_t dim, bool sorted = true,
                                                  bool return_inverse = false,
                                                  bool return_counts = false);

}  // namespace lockstep

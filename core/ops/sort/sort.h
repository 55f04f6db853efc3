#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Operators that order elements. NaN is larger than every number. Sorting is stable: of equal
// elements the one with the lower index comes first, in either direction; operators that choose
// elements take any of several equals, always the same. Indices are int64. Gradients go to the
// elements that were taken. `dim` may be negative (-1 is the last); a 0-d tensor counts as one
// element. Where an element must be chosen from none, they throw IndexError.

/// The elements in order along `dim`, and where they stood.
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1, bool descending = false);
/// Where the elements of the sorted tensor stand in self.
Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false);
/// The k largest (smallest) elements along `dim`, in order if `sorted`, and where they stand.
std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim = -1,
                                bool largest = true, bool sorted = true);
/// The k-th smallest element along `dim`, counted from 1, and where it stands.
std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim = -1,
                                    bool keepdim = false);
/// The middle element, the lower of two for an even number; NaN when there is a NaN or no element.
/// Equal elements share the gradient.
Tensor median(const Tensor& self);
/// The middle element along `dim` and where it stands.
std::tuple<Tensor, Tensor> median(const Tensor& self, int64_t dim, bool keepdim = false);
/// The same without NaN, unless all are.
Tensor nanmedian(const Tensor& self);
std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim = false);
/// The most frequent element along `dim`, the smallest of several as frequent, and where one of it
/// is. Every NaN is an element of its own.
std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim = -1, bool keepdim = false);

/// Where each value of self would be inserted into the last dimension of `sorted_sequence` so that
/// it stays in order: before its equals (side "left", the default) or behind them ("right", or
/// `right`). The sequence has one dimension, or the same leading sizes as self. `sorter` gives the
/// order of a sequence that is not sorted. int64, or int32 when `out_int32`.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32 = false,
                    bool right = false, std::optional<std::string_view> side = std::nullopt,
                    OptionalTensor sorter = {});
/// The index of the bucket of each value, between `boundaries` [n] in ascending order.
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32 = false,
                 bool right = false);
/// How often each of 0, 1, ... occurs in the vector `self` of integers, at least `minlength`
/// counts; with weights, the sum of the weights of each: float32 or float64. Waits.
Tensor bincount(const Tensor& self, OptionalTensor weights = {}, int64_t minlength = 0);

}  // namespace lockstep

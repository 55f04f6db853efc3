#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Sorting, selection and search. NaN is larger than every number. Sorting is stable: of equal
// elements the one with the lower index comes first, in either direction; operators that select
// elements may return any of several equal ones, but always the same. Indices are int64. Gradients
// go to the selected elements. `dim` may be negative (-1 is the last); a 0-d tensor counts as one
// element. Selecting an element from none throws IndexError.

/// The elements in order along `dim`, and their indices in self.
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1, bool descending = false);
/// The indices in self of the elements of the sorted tensor.
Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false);
/// The k largest (smallest) elements along `dim`, in order if `sorted`, and their indices.
std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim = -1,
                                bool largest = true, bool sorted = true);
/// The k-th smallest element along `dim`, counted from 1, and its index.
std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim = -1,
                                    bool keepdim = false);
/// The middle element, the lower of two for an even number; NaN when there is a NaN or no element.
/// Equal elements share the gradient.
Tensor median(const Tensor& self);
/// The middle element along `dim` and its index.
std::tuple<Tensor, Tensor> median(const Tensor& self, int64_t dim, bool keepdim = false);
/// median that ignores NaN; NaN if all elements are.
Tensor nanmedian(const Tensor& self);
std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim = false);
/// The most frequent element along `dim` (the smallest of equally frequent ones) and the index of
/// one such element. NaNs are not equal to each other.
std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim = -1, bool keepdim = false);

/// The index at which each value of self would be inserted into the last dimension of
/// `sorted_sequence` to keep it sorted: before equal elements (side "left", the default) or after
/// them ("right", or `right`). The sequence has one dimension, or the same leading sizes as self.
/// `sorter` holds the indices that sort a sequence that is not sorted. int64, or int32 if
/// `out_int32`.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32 = false,
                    bool right = false, std::optional<std::string_view> side = std::nullopt,
                    OptionalTensor sorter = {});
/// The index of the bucket of each value, between `boundaries` [n] in ascending order.
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32 = false,
                 bool right = false);
/// The number of occurrences of 0, 1, ... in the vector `self` of integers, at least `minlength`
/// counts; with weights, the sum of the weights of each: float32 or float64. Waits for the device,
/// since the largest element sets the shape.
Tensor bincount(const Tensor& self, OptionalTensor weights = {}, int64_t minlength = 0);

}  // namespace lockstep

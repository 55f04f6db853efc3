// Unique elements, or unique slices of a tensor.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/write_results.h"
#include "core/ops/index/index.h"
#include "core/ops/index/scatter.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

/// Runs of equal adjacent rows among n rows.
struct Runs {
  Tensor starts;   ///< [runs]: index of the first row of each run
  Tensor members;  ///< [n]: the run of each row
  Tensor counts;   ///< [runs]: number of rows of each run

  /// Compares adjacent rows of `rows` [n, width].
  explicit Runs(const Tensor& rows) {
    const TensorOptions options{DType::kI64, rows.device()};
    const int64_t n = rows.size(0);
    if (n == 0) {
      starts = members = counts = empty({0}, options);
      return;
    }
    const Tensor differs = ne(rows.slice(0, 1, n), rows.slice(0, 0, n - 1)).to(DType::kI64);
    const Tensor begins = gt(differs.sum({1}), 0);
    const Tensor first = cat({ones({1}, {DType::kBool, rows.device()}), begins}, 0);
    starts = nonzero(first).squeeze(1);
    members = cumsum(first, 0) - 1;
    counts = cat({starts.slice(0, 1, std::nullopt), full({1}, n, options)}, 0) - starts;
  }
};

/// Returns `tensor` if it was asked for, else an empty tensor.
Tensor wanted(bool asked, const Tensor& tensor) {
  return asked ? tensor : empty({0}, {DType::kI64, tensor.device()});
}

/// Converts runs among the slices in `order` to results for the slices in their original order.
ThreeTensors in_order(const Tensor& self, int64_t dim, const Runs& runs, const Tensor& order,
                      bool return_inverse, bool return_counts) {
  const Tensor places = index_select(order, 0, runs.starts);
  const Tensor inverse = index_copy(zeros_like(runs.members), 0, order, runs.members);
  return {index_select(self, dim, places), wanted(return_inverse, inverse),
          wanted(return_counts, runs.counts)};
}

/// The slices of self along a dimension as rows.
Tensor rows_of(const Tensor& self, int64_t dim) {
  const int64_t n = self.size(dim);
  return self.transpose(0, dim).reshape({n, n == 0 ? 0 : self.numel() / n});
}

ThreeTensors unique_elements(const Tensor& given, bool return_inverse, bool return_counts) {
  const Tensor self = given.detach().reshape({given.numel()});
  const auto [sorted, order] = sort(self);
  ThreeTensors result =
      in_order(self, 0, Runs(sorted.unsqueeze(1)), order, return_inverse, return_counts);
  if (return_inverse) std::get<1>(result) = std::get<1>(result).reshape(given.sizes());
  return result;
}

/// The order that sorts rows lexicographically: stable sorts by each column, the last one first.
Tensor order_of(const Tensor& rows) {
  Tensor order = arange(Scalar(rows.size(0)), TensorOptions{DType::kI64, rows.device()});
  for (int64_t column = rows.size(1) - 1; column >= 0; --column) {
    const Tensor keys = index_select(rows.select(1, column), 0, order);
    order = index_select(order, 0, argsort(keys));
  }
  return order;
}

}  // namespace

LS_OP(unique2, ThreeTensors(const Tensor&, bool, bool, bool),
      "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool "
      "return_counts=False) -> (Tensor, Tensor, Tensor)")
    .doc(
        "The unique elements in ascending order, the index of each element among them, and the "
        "number of occurrences of each.")
    .composite([](const Tensor& self, bool, bool return_inverse, bool return_counts) {
      return unique_elements(self, return_inverse, return_counts);
    });
LS_OP(unique2_out,
      ThreeTensors(const Tensor&, bool, bool, bool, const Tensor&, const Tensor&, const Tensor&),
      "_unique2.out(Tensor self, bool sorted=True, bool return_inverse=False, bool "
      "return_counts=False, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), "
      "Tensor(b!), Tensor(c!))")
    .doc("_unique2, written into out0, out1 and out2.")
    .composite([](const Tensor& self, bool, bool return_inverse, bool return_counts,
                  const Tensor& out0, const Tensor& out1, const Tensor& out2) {
      return write_results(unique_elements(self, return_inverse, return_counts), out0, out1, out2);
    });

using TwoTensors = std::tuple<Tensor, Tensor>;
LS_OP(unique, TwoTensors(const Tensor&, bool, bool),
      "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)")
    .doc("The unique elements in ascending order, and the index of each element among them.")
    .composite([](const Tensor& self, bool, bool return_inverse) {
      const auto [elements, inverse, counts] = unique_elements(self, return_inverse, false);
      return TwoTensors(elements, inverse);
    });
LS_OP(unique_out, TwoTensors(const Tensor&, bool, bool, const Tensor&, const Tensor&),
      "_unique.out(Tensor self, bool sorted=True, bool return_inverse=False, *, Tensor(a!) out0, "
      "Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))")
    .doc("_unique, written into out0 and out1.")
    .composite([](const Tensor& self, bool sorted, bool return_inverse, const Tensor& out0,
                  const Tensor& out1) {
      return write_results(op_unique(self, sorted, return_inverse), out0, out1);
    });

LS_OP(unique_dim, ThreeTensors(const Tensor&, int64_t, bool, bool, bool),
      "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
      "return_counts=False) -> (Tensor, Tensor, Tensor)")
    .doc(
        "The unique slices along a dimension in ascending order, the index of each slice among "
        "them, and the number of occurrences of each.")
    .composite([](const Tensor& given, int64_t dim, bool, bool, bool) {
      LS_CHECK(given.dim() > 0, IndexError, "[unique_dim] a 0-d tensor has no parts.");
      const Tensor self = given.detach();
      const int64_t d = wrap_dim("unique_dim", dim, self.dim());
      const Tensor rows = rows_of(self, d);
      const Tensor order = order_of(rows);
      // As in ATen, all three are returned whether asked for or not.
      return in_order(self, d, Runs(index_select(rows, 0, order)), order, true, true);
    });
LS_OP(unique_dim_out,
      ThreeTensors(const Tensor&, int64_t, bool, bool, bool, const Tensor&, const Tensor&,
                   const Tensor&),
      "unique_dim.out(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
      "return_counts=False, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), "
      "Tensor(b!), Tensor(c!))")
    .doc("unique_dim, written into out0, out1 and out2.")
    .composite([](const Tensor& self, int64_t dim, bool sorted, bool return_inverse,
                  bool return_counts, const Tensor& out0, const Tensor& out1, const Tensor& out2) {
      return write_results(op_unique_dim(self, dim, sorted, return_inverse, return_counts), out0,
                           out1, out2);
    });

LS_OP(unique_consecutive, ThreeTensors(const Tensor&, bool, bool, std::optional<int64_t>),
      "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
      "dim=None) -> (Tensor, Tensor, Tensor)")
    .doc(
        "The first of each run of equal elements, or of equal slices along a dimension, the run of "
        "each element or slice, and the lengths of the runs.")
    .composite([](const Tensor& given, bool return_inverse, bool return_counts,
                  std::optional<int64_t> dim) {
      const Tensor self =
          dim && given.dim() > 0 ? given.detach() : given.detach().reshape({given.numel()});
      const int64_t d = wrap_dim("unique_consecutive", dim.value_or(0), self.dim());
      const Runs runs(rows_of(self, d));
      const Tensor members = dim ? runs.members : runs.members.reshape(given.sizes());
      // As in ATen, for slices all three are returned whether asked for or not.
      const bool parts = dim && !(*dim == 0 && given.dim() == 1);
      return ThreeTensors(index_select(self, d, runs.starts),
                          wanted(parts || return_inverse, members),
                          wanted(parts || return_counts, runs.counts));
    });

LS_OP(unique_consecutive_out,
      ThreeTensors(const Tensor&, bool, bool, std::optional<int64_t>, const Tensor&, const Tensor&,
                   const Tensor&),
      "unique_consecutive.out(Tensor self, bool return_inverse=False, bool return_counts=False, "
      "int? dim=None, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), "
      "Tensor(b!), Tensor(c!))")
    .doc("unique_consecutive, written into out0, out1 and out2.")
    .composite([](const Tensor& self, bool return_inverse, bool return_counts,
                  std::optional<int64_t> dim, const Tensor& out0, const Tensor& out1,
                  const Tensor& out2) {
      return write_results(op_unique_consecutive(self, return_inverse, return_counts, dim), out0,
                           out1, out2);
    });

}  // namespace lockstep

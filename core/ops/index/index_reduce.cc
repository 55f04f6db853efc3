// Reductions of slices into indexed slices; declared in scatter.h.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/index/scatter.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// The index [n] for each element of source, whose dimension `d` has n elements.
Tensor for_each_element(const Tensor& index, const Tensor& source, int64_t d) {
  Dims sizes(static_cast<size_t>(source.dim()), 1);
  sizes[static_cast<size_t>(d)] = index.numel();
  return index.to(DType::kI64).reshape(sizes).expand(source.sizes());
}

Tensor reduced_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  constexpr std::string_view kName = "index_reduce";
  LS_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin", Error,
           "[{}] expected reduce to be prod, mean, amax or amin, got \"{}\".", kName, reduce);
  const int64_t d = wrap_dim(kName, dim, self.dim());
  LS_CHECK(index.dim() <= 1, ShapeError, "[{}] expected an index vector, got shape {}.", kName,
           index.shape());
  LS_CHECK(index.dtype() == DType::kI64 || index.dtype() == DType::kI32, DTypeError,
           "[{}] expected an index of int64 or int32, got {}.", kName, to_string(index));
  LS_CHECK(source.dtype() == self.dtype(), DTypeError,
           "[{}] dtypes differ: expected {} of source, got {}. Cast it with to(dtype).", kName,
           to_string(self.dtype()), to_string(source));
  if (self.dim() == 0 || source.dim() == 0) {
    LS_CHECK(self.dim() <= 1 && source.numel() == index.numel() && source.dim() <= 1, ShapeError,
             "[{}] the source does not fit: expected {} elements, got shape {}.", kName,
             index.numel(), source.shape());
    return scatter_reduce(self.reshape({self.numel()}), 0,
                          index.to(DType::kI64).reshape({index.numel()}),
                          source.reshape({source.numel()}), reduce, include_self)
        .reshape(self.sizes());
  }
  Dims wanted = to_dims(self.sizes());
  wanted[static_cast<size_t>(d)] = index.numel();
  LS_CHECK(same(source.sizes(), wanted), ShapeError,
           "[{}] the source does not fit: expected shape {}, got {}.", kName, to_string(wanted),
           source.shape());
  return scatter_reduce(self, d, for_each_element(index, source, d), source, reduce, include_self);
}

}  // namespace

LS_OP(index_reduce,
      Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool),
      "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
      "include_self=True) -> Tensor")
    .doc("A copy of self with the slices of source reduced into those at index along a dimension.")
    .composite(reduced_into);
Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  return op_index_reduce(self, dim, index, source, reduce, include_self);
}
LS_OP(index_reduce_out,
      const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool,
                    const Tensor&),
      "index_reduce.out(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
      "bool include_self=True, Tensor(a!) out) -> Tensor(a!)")
    .doc("index_reduce, written into out.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  std::string_view reduce, bool include_self, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_index_reduce(self, dim, index, source, reduce, include_self));
    });
LS_OP(index_reduce_in_place,
      const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool),
      "index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool "
      "include_self=True) -> Tensor(a!)")
    .doc("index_reduce, written into self.")
    .composite([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  std::string_view reduce, bool include_self) -> const Tensor& {
      // The derivative needs self as it was.
      return copy_(self, reduced_into(self.clone(), dim, index, source, reduce, include_self));
    });

}  // namespace lockstep

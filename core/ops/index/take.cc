// Indexing by row-major position in the whole tensor, and coordinates of non-zero elements.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/index/advanced_index.h"
#include "core/ops/index/index.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

void check_places(std::string_view op, const Tensor& index) {
  LS_CHECK(index.dtype() == DType::kI64, DTypeError,
           "[{}] an index must be int64, got {}. Cast it with to(DType::kI64).", op,
           to_string(index.dtype()));
}

Tensor flat(const Tensor& tensor) { return tensor.reshape({tensor.numel()}); }

Tensor taken(const Tensor& self, const Tensor& places) {
  check_places("take", places);
  return index(flat(self), {&places, 1});
}

Tensor with_put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check_places("put", index);
  LS_CHECK(source.numel() == index.numel(), ShapeError,
           "[put] expected an element for each of {} places, got a source of shape {}.",
           index.numel(), source.shape());
  const Tensor places = flat(index);
  return index_put(flat(self), {&places, 1}, flat(source), accumulate).reshape(self.sizes());
}

}  // namespace

LS_OP(take, Tensor(const Tensor&, const Tensor&), "take(Tensor self, Tensor index) -> Tensor")
    .doc("The elements at row-major positions, in the index's shape.")
    .composite(taken);
LS_OP(take_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&),
      "take.out(Tensor self, Tensor index, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("take, written into out.")
    .composite([](const Tensor& self, const Tensor& index, const Tensor& out) -> const Tensor& {
      return clone_out(out, taken(self, index));
    });

LS_OP(put, Tensor(const Tensor&, const Tensor&, const Tensor&, bool),
      "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
    .doc("A copy of self with the elements of source written, or added, at row-major positions.")
    .composite(with_put);
LS_OP(put_, const Tensor&(const Tensor&, const Tensor&, const Tensor&, bool),
      "put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!)")
    .doc("Writes, or adds, the elements of source at row-major positions of self.")
    .composite([](const Tensor& self, const Tensor& index, const Tensor& source,
                  bool accumulate) -> const Tensor& {
      return copy_(self, with_put(self, index, source, accumulate));
    });
LS_OP(put_out, const Tensor&(const Tensor&, const Tensor&, const Tensor&, bool, const Tensor&),
      "put.out(Tensor self, Tensor index, Tensor source, bool accumulate=False, *, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("put, written into out.")
    .composite([](const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, with_put(self, index, source, accumulate));
    });

LS_OP(argwhere, Tensor(const Tensor&), "argwhere(Tensor self) -> Tensor")
    .doc("Coordinates of the non-zero elements, one row each; nonzero by another name.")
    .composite([](const Tensor& self) { return nonzero(self); });

LS_OP(nonzero_numpy, std::vector<Tensor>(const Tensor&), "nonzero_numpy(Tensor self) -> Tensor[]")
    .doc("Coordinates of the non-zero elements, one tensor per dimension; a 0-d tensor gives one.")
    .composite([](const Tensor& self) {
      return unbind(nonzero(self.dim() == 0 ? self.unsqueeze(0) : self), 1);
    });

LS_OP(where_places, std::vector<Tensor>(const Tensor&), "where(Tensor condition) -> Tensor[]")
    .doc("Coordinates where the condition is true; nonzero_numpy by another name.")
    .composite([](const Tensor& condition) { return op_nonzero_numpy(condition); });

}  // namespace lockstep

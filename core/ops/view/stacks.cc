#include "core/ops/view/stacks.h"

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// self with dimensions of size 1 added up to `rank`, which is at most three.
Tensor at_least(const Tensor& self, int64_t rank) {
  if (self.dim() >= rank) return self;
  if (self.dim() == 0) return self.reshape(Dims(static_cast<size_t>(rank), 1));
  if (rank == 2) return self.unsqueeze(0);
  return self.dim() == 1 ? self.unsqueeze(0).unsqueeze(-1) : self.unsqueeze(-1);
}

std::vector<Tensor> all_at_least(TensorList tensors, int64_t rank) {
  std::vector<Tensor> results;
  for (const Tensor& tensor : tensors) results.push_back(at_least(tensor, rank));
  return results;
}

Tensor stacked(std::string_view op, TensorList tensors, int64_t rank, int64_t dim) {
  LS_CHECK(!tensors.empty(), ShapeError, "[{}] expected at least one tensor, got none.", op);
  const std::vector<Tensor> parts = all_at_least(tensors, rank);
  return cat(parts, rank == 1 && parts[0].dim() == 1 ? 0 : dim);
}

/// Vectors and numbers as columns, the others as they are.
Tensor columns(TensorList tensors) {
  LS_CHECK(!tensors.empty(), ShapeError, "[column_stack] expected at least one tensor, got none.");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    parts.push_back(tensor.dim() <= 1 ? tensor.reshape({tensor.numel(), 1}) : tensor);
  }
  return cat(parts, 1);
}

/// The dimension that hsplit (rank 1), vsplit (2) or dsplit (3) splits.
int64_t split_dim(std::string_view op, const Tensor& self, int64_t rank) {
  LS_CHECK(self.dim() >= rank, ShapeError, "[{}] expected at least {} dimension{}, got shape {}.",
           op, rank, rank == 1 ? "" : "s", self.shape());
  if (rank == 1) return self.dim() == 1 ? 0 : 1;
  return rank == 2 ? 0 : 2;
}

std::vector<Tensor> even_parts(std::string_view op, const Tensor& self, int64_t sections,
                               int64_t rank) {
  const int64_t dim = split_dim(op, self, rank);
  LS_CHECK(sections > 0 && self.size(dim) % sections == 0, ShapeError,
           "[{}] expected a number of sections that divides the size {} of dimension {}, got {}. "
           "tensor_split makes parts of unequal sizes.",
           op, self.size(dim), dim, sections);
  return tensor_split(self, sections, dim);
}

}  // namespace

LS_OP(atleast_1d, Tensor(const Tensor&), "atleast_1d(Tensor self) -> Tensor")
    .doc("A number as a vector of one element; others as they are.")
    .composite([](const Tensor& self) { return at_least(self, 1); });
Tensor atleast_1d(const Tensor& self) { return op_atleast_1d(self); }
LS_OP(atleast_1d_list, std::vector<Tensor>(TensorList),
      "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]")
    .doc("atleast_1d of each tensor.")
    .composite([](TensorList tensors) { return all_at_least(tensors, 1); });
LS_OP(atleast_2d, Tensor(const Tensor&), "atleast_2d(Tensor self) -> Tensor")
    .doc("A number or vector as a matrix of one row; others as they are.")
    .composite([](const Tensor& self) { return at_least(self, 2); });
Tensor atleast_2d(const Tensor& self) { return op_atleast_2d(self); }
LS_OP(atleast_2d_list, std::vector<Tensor>(TensorList),
      "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]")
    .doc("atleast_2d of each tensor.")
    .composite([](TensorList tensors) { return all_at_least(tensors, 2); });
LS_OP(atleast_3d, Tensor(const Tensor&), "atleast_3d(Tensor self) -> Tensor")
    .doc("A vector [n] as [1, n, 1], a matrix [n, m] as [n, m, 1]; others as they are.")
    .composite([](const Tensor& self) { return at_least(self, 3); });
Tensor atleast_3d(const Tensor& self) { return op_atleast_3d(self); }
LS_OP(atleast_3d_list, std::vector<Tensor>(TensorList),
      "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]")
    .doc("atleast_3d of each tensor.")
    .composite([](TensorList tensors) { return all_at_least(tensors, 3); });

LS_OP(hstack, Tensor(TensorList), "hstack(Tensor[] tensors) -> Tensor")
    .doc("Joins tensors side by side: along the second dimension, vectors along their only one.")
    .composite([](TensorList tensors) { return stacked("hstack", tensors, 1, 1); });
LS_OP(hstack_out, const Tensor&(TensorList, const Tensor&),
      "hstack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("hstack, written into out.")
    .composite([](TensorList tensors, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_hstack(tensors));
    });
LS_OP(vstack, Tensor(TensorList), "vstack(Tensor[] tensors) -> Tensor")
    .doc("Joins tensors along the first dimension; vectors are rows.")
    .composite([](TensorList tensors) { return stacked("vstack", tensors, 2, 0); });
LS_OP(vstack_out, const Tensor&(TensorList, const Tensor&),
      "vstack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("vstack, written into out.")
    .composite([](TensorList tensors, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_vstack(tensors));
    });
LS_OP(dstack, Tensor(TensorList), "dstack(Tensor[] tensors) -> Tensor")
    .doc("Joins tensors along the third dimension.")
    .composite([](TensorList tensors) { return stacked("dstack", tensors, 3, 2); });
LS_OP(dstack_out, const Tensor&(TensorList, const Tensor&),
      "dstack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("dstack, written into out.")
    .composite([](TensorList tensors, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_dstack(tensors));
    });
LS_OP(column_stack, Tensor(TensorList), "column_stack(Tensor[] tensors) -> Tensor")
    .doc("Joins tensors along the second dimension; vectors and numbers are columns.")
    .composite(columns);
Tensor column_stack(TensorList tensors) { return op_column_stack(tensors); }
LS_OP(column_stack_out, const Tensor&(TensorList, const Tensor&),
      "column_stack.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("column_stack, written into out.")
    .composite([](TensorList tensors, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_column_stack(tensors));
    });

LS_OP(hsplit, std::vector<Tensor>(const Tensor&, int64_t),
      "hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
    .doc("Splits the second dimension, of a vector the only one, into parts of equal size.")
    .composite([](const Tensor& self, int64_t sections) {
      return even_parts("hsplit", self, sections, 1);
    });
LS_OP(hsplit_indices, std::vector<Tensor>(const Tensor&, IntList),
      "hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
    .doc("Splits the second dimension, of a vector the only one, at indices.")
    .composite([](const Tensor& self, IntList indices) {
      return tensor_split(self, indices, split_dim("hsplit", self, 1));
    });
LS_OP(vsplit, std::vector<Tensor>(const Tensor&, int64_t),
      "vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
    .doc("Splits the first dimension into parts of equal size.")
    .composite([](const Tensor& self, int64_t sections) {
      return even_parts("vsplit", self, sections, 2);
    });
LS_OP(vsplit_indices, std::vector<Tensor>(const Tensor&, IntList),
      "vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
    .doc("Splits the first dimension at indices.")
    .composite([](const Tensor& self, IntList indices) {
      return tensor_split(self, indices, split_dim("vsplit", self, 2));
    });
LS_OP(dsplit, std::vector<Tensor>(const Tensor&, int64_t),
      "dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
    .doc("Splits the third dimension into parts of equal size.")
    .composite([](const Tensor& self, int64_t sections) {
      return even_parts("dsplit", self, sections, 3);
    });
LS_OP(dsplit_indices, std::vector<Tensor>(const Tensor&, IntList),
      "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
    .doc("Splits the third dimension at indices.")
    .composite([](const Tensor& self, IntList indices) {
      return tensor_split(self, indices, split_dim("dsplit", self, 3));
    });

}  // namespace lockstep

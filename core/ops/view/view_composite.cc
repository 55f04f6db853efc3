// Views composed of other views, and the derivatives of views, which allocate memory.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// Expands a gradient to the shape of the part that it is written to.
Tensor widened(const Tensor& grad, const Tensor& part) {
  return same(grad.sizes(), part.sizes()) ? grad : grad.expand(part.sizes());
}

}  // namespace

LS_OP(reshape, Tensor(const Tensor&, IntList),
      "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
    .doc("The same elements in another shape: a view where one exists, else a copy.")
    .composite([](const Tensor& self, IntList shape) {
      const Dims sizes = infer_size("reshape", shape, self.numel());
      Dims strides;
      const bool viewable = view_strides(self.sizes(), self.strides(), sizes, strides);
      return viewable ? self.view(sizes) : self.contiguous().view(sizes);
    });
Tensor reshape(const Tensor& self, IntList sizes) { return op_reshape(self, sizes); }

LS_OP(flatten, Tensor(const Tensor&, int64_t, int64_t),
      "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
    .doc("Joins the dimensions from start_dim to end_dim into one.")
    .composite([](const Tensor& self, int64_t start_dim, int64_t end_dim) {
      const int64_t first = wrap_dim("flatten", start_dim, self.dim());
      const int64_t last = wrap_dim("flatten", end_dim, self.dim());
      LS_CHECK(first <= last, ShapeError, "[flatten] start_dim {} comes after end_dim {}.",
               start_dim, end_dim);
      if (self.dim() == 0) return self.reshape({1});
      if (first == last) return self;
      Dims sizes;
      int64_t joined = 1;
      for (int64_t i = 0; i < self.dim(); ++i) {
        if (i >= first && i <= last) joined *= self.size(i);
        if (i == last) sizes.push_back(joined);
        if (i < first || i > last) sizes.push_back(self.size(i));
      }
      return self.reshape(sizes);
    });
Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  return op_flatten(self, start_dim, end_dim);
}

LS_OP(unflatten, Tensor(const Tensor&, int64_t, IntList),
      "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
    .doc("Splits one dimension into several of the given sizes; one of them may be -1.")
    .composite([](const Tensor& self, int64_t dim, IntList sizes) {
      LS_CHECK(self.dim() > 0, IndexError,
               "[unflatten] a 0-d tensor has no dimension to take apart.");
      LS_CHECK(!sizes.empty(), ShapeError, "[unflatten] expected at least one size, got none.");
      const int64_t d = wrap_dim("unflatten", dim, self.dim());
      const Dims parts = infer_size("unflatten", sizes, self.size(d));
      Dims shape = to_dims(self.sizes());
      shape.erase(d);
      for (size_t i = 0; i < parts.size(); ++i) {
        shape.insert(d + static_cast<int64_t>(i), parts[i]);
      }
      return self.view(shape);
    });
Tensor unflatten(const Tensor& self, int64_t dim, IntList sizes) {
  return op_unflatten(self, dim, sizes);
}

LS_OP(broadcast_to, Tensor(const Tensor&, IntList),
      "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
    .doc("expand by another name.")
    .composite([](const Tensor& self, IntList size) { return self.expand(size); });
Tensor broadcast_to(const Tensor& self, IntList sizes) { return op_broadcast_to(self, sizes); }

LS_OP(expand_as, Tensor(const Tensor&, const Tensor&),
      "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)")
    .doc("self expanded to other's shape.")
    .composite([](const Tensor& self, const Tensor& other) { return self.expand(other.sizes()); });
Tensor expand_as(const Tensor& self, const Tensor& other) { return op_expand_as(self, other); }

LS_OP(view_as, Tensor(const Tensor&, const Tensor&),
      "view_as(Tensor(a) self, Tensor other) -> Tensor(a)")
    .doc("self viewed in other's shape.")
    .composite([](const Tensor& self, const Tensor& other) { return self.view(other.sizes()); });
Tensor view_as(const Tensor& self, const Tensor& other) { return op_view_as(self, other); }

LS_OP(slice_backward, Tensor(const Tensor&, IntList, int64_t, int64_t, int64_t, int64_t),
      "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, "
      "SymInt step) -> Tensor")
    .doc("Zeros of input_sizes with grad_output in the slice: the derivative of slice.")
    .composite([](const Tensor& grad, IntList sizes, int64_t dim, int64_t start, int64_t end,
                  int64_t step) {
      const Tensor zero = zeros(sizes, grad.options());
      return slice_scatter(zero, widened(grad, zero.slice(dim, start, end, step)), dim, start, end,
                           step);
    });
Tensor slice_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step) {
  return op_slice_backward(grad, sizes, dim, start, end, step);
}

LS_OP(slice_backward_out,
      const Tensor&(const Tensor&, IntList, int64_t, int64_t, int64_t, int64_t, const Tensor&),
      "slice_backward.out(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt "
      "end, SymInt step, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("slice_backward, written into out.")
    .composite([](const Tensor& grad, IntList sizes, int64_t dim, int64_t start, int64_t end,
                  int64_t step, const Tensor& out) -> const Tensor& {
      return clone_out(out, slice_backward(grad, sizes, dim, start, end, step));
    });

LS_OP(select_backward, Tensor(const Tensor&, IntList, int64_t, int64_t),
      "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor")
    .doc("Zeros of input_sizes with grad_output at index: the derivative of select.")
    .composite([](const Tensor& grad, IntList sizes, int64_t dim, int64_t index) {
      const Tensor zero = zeros(sizes, grad.options());
      return select_scatter(zero, widened(grad, zero.select(dim, index)), dim, index);
    });
Tensor select_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t index) {
  return op_select_backward(grad, sizes, dim, index);
}

LS_OP(select_backward_out, const Tensor&(const Tensor&, IntList, int64_t, int64_t, const Tensor&),
      "select_backward.out(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index, *, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("select_backward, written into out.")
    .composite([](const Tensor& grad, IntList sizes, int64_t dim, int64_t index,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, select_backward(grad, sizes, dim, index));
    });

LS_OP(diagonal_backward, Tensor(const Tensor&, IntList, int64_t, int64_t, int64_t),
      "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) "
      "-> Tensor")
    .doc("Zeros of input_sizes with grad_output on the diagonal: the derivative of diagonal.")
    .composite([](const Tensor& grad, IntList sizes, int64_t offset, int64_t dim1, int64_t dim2) {
      const Tensor zero = zeros(sizes, grad.options());
      const Tensor source = widened(grad, diagonal(zero, offset, dim1, dim2));
      return diagonal_scatter(zero, source, offset, dim1, dim2);
    });
Tensor diagonal_backward(const Tensor& grad, IntList sizes, int64_t offset, int64_t dim1,
                         int64_t dim2) {
  return op_diagonal_backward(grad, sizes, offset, dim1, dim2);
}

LS_OP(diagonal_backward_out,
      const Tensor&(const Tensor&, IntList, int64_t, int64_t, int64_t, const Tensor&),
      "diagonal_backward.out(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int "
      "dim2, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("diagonal_backward, written into out.")
    .composite([](const Tensor& grad, IntList sizes, int64_t offset, int64_t dim1, int64_t dim2,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, diagonal_backward(grad, sizes, offset, dim1, dim2));
    });

LS_OP(unfold_backward, Tensor(const Tensor&, IntList, int64_t, int64_t, int64_t),
      "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> "
      "Tensor")
    .doc(
        "Zeros of input_sizes to which the windows' gradients are added: the derivative of unfold.")
    .composite([](const Tensor& grad, IntList sizes, int64_t dim, int64_t size, int64_t step) {
      const int64_t rank = static_cast<int64_t>(sizes.size());
      const Tensor zero = zeros(sizes, grad.options());
      if (grad.numel() == 0) return zero;
      if (rank == 0) return grad.reshape({});
      const int64_t d = wrap_dim("unfold", dim, rank);
      Dims order;  // moves the elements of a window right after the windows' dimension
      for (int64_t i = 0; i < rank; ++i) {
        order.push_back(i);
        if (i == d) order.push_back(rank);
      }
      const TensorOptions options{DType::kI64, grad.device()};
      const Tensor starts = arange(Scalar(grad.size(d)), options) * Scalar(step);
      const Tensor places = starts.unsqueeze(-1) + arange(Scalar(size), options);
      return index_add(zero, d, places.flatten(), grad.permute(order).flatten(d, d + 1));
    });
Tensor unfold_backward(const Tensor& grad, IntList sizes, int64_t dim, int64_t size, int64_t step) {
  return op_unfold_backward(grad, sizes, dim, size, step);
}

LS_OP(unfold_backward_out,
      const Tensor&(const Tensor&, IntList, int64_t, int64_t, int64_t, const Tensor&),
      "unfold_backward.out(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step, *, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("unfold_backward, written into out.")
    .composite([](const Tensor& grad, IntList sizes, int64_t dim, int64_t size, int64_t step,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, unfold_backward(grad, sizes, dim, size, step));
    });

}  // namespace lockstep

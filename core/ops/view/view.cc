#include "core/ops/view/view.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/batching_views.h"
#include "core/ops/view/own_geometry.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/storage_bounds.h"

namespace lockstep {

namespace {

ViewSpec as_strided_geometry(const Tensor& self, IntList sizes, IntList strides,
                             std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  check_in_storage("as_strided", sizes, strides, offset,
                   static_cast<int64_t>(self.storage()->bytes() / size_of(self.dtype())));
  return {to_dims(sizes), to_dims(strides), offset, {}};
}

ViewSpec expand_geometry(const Tensor& self, IntList sizes, bool) {
  const int64_t lead = static_cast<int64_t>(sizes.size()) - self.dim();
  LS_CHECK(lead >= 0, ShapeError,
           "[expand] a shape of {} dimensions cannot be expanded to {}: expected at least as many.",
           self.dim(), to_string(sizes));
  ViewSpec spec{to_dims(sizes), Dims(sizes.size(), 0), self.storage_offset(), {}};
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    const int64_t have = i < lead ? 1 : self.sizes()[i - lead];
    if (sizes[i] == -1 && i >= lead) spec.sizes[i] = have;
    LS_CHECK(spec.sizes[i] == have || (have == 1 && spec.sizes[i] >= 0), ShapeError,
             "[expand] shape {} does not expand to {}: dimension {} is {}, and only 1 stretches.",
             self.shape(), to_string(sizes), i, have);
    if (i >= lead && spec.sizes[i] == have) spec.strides[i] = self.strides()[i - lead];
  }
  count_elements(spec.sizes);  // throws if the count does not fit 64 bits
  return spec;
}

ViewSpec permute_geometry(const Tensor& self, IntList dims) {
  LS_CHECK(static_cast<int64_t>(dims.size()) == self.dim(), ShapeError,
           "[permute] expected one number for each of {} dimensions, got {}.", self.dim(),
           to_string(dims));
  if (!dims.empty()) dim_mask("permute", dims, self.dim());
  ViewSpec spec = same_as(self);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t from = wrap_dim("permute", dims[i], self.dim());
    spec.sizes[i] = self.sizes()[from];
    spec.strides[i] = self.strides()[from];
  }
  return spec;
}

ViewSpec squeeze_geometry(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim("squeeze", dim, self.dim());
  ViewSpec spec = same_as(self);
  if (self.dim() > 0 && self.sizes()[d] == 1) {
    spec.sizes.erase(d);
    spec.strides.erase(d);
  }
  return spec;
}

ViewSpec squeeze_dims_geometry(const Tensor& self, IntList dims) {
  const uint64_t chosen = dims.empty() ? 0 : dim_mask("squeeze", dims, self.dim());
  ViewSpec spec{{}, {}, self.storage_offset(), {}};
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (((chosen >> i) & 1) != 0 && self.sizes()[i] == 1) continue;
    spec.sizes.push_back(self.sizes()[i]);
    spec.strides.push_back(self.strides()[i]);
  }
  return spec;
}

ViewSpec squeeze_all_geometry(const Tensor& self) {
  ViewSpec spec{{}, {}, self.storage_offset(), {}};
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (self.sizes()[i] == 1) continue;
    spec.sizes.push_back(self.sizes()[i]);
    spec.strides.push_back(self.strides()[i]);
  }
  return spec;
}

ViewSpec transpose_geometry(const Tensor& self, int64_t dim0, int64_t dim1) {
  ViewSpec spec = same_as(self);
  const int64_t a = wrap_dim("transpose", dim0, self.dim());
  const int64_t b = wrap_dim("transpose", dim1, self.dim());
  if (self.dim() > 0) {
    std::swap(spec.sizes[a], spec.sizes[b]);
    std::swap(spec.strides[a], spec.strides[b]);
  }
  return spec;
}

ViewSpec t_geometry(const Tensor& self) {
  LS_CHECK(self.dim() <= 2, ShapeError,
           "[t] expected at most two dimensions, got {}. Use transpose(dim0, dim1).", self.shape());
  return self.dim() == 2 ? transpose_geometry(self, 0, 1) : same_as(self);
}

ViewSpec unsqueeze_geometry(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim("unsqueeze", dim, self.dim() + 1);
  ViewSpec spec = same_as(self);
  const int64_t stride = d < self.dim() ? self.sizes()[d] * self.strides()[d] : 1;
  spec.sizes.insert(d, 1);
  spec.strides.insert(d, stride);
  return spec;
}

ViewSpec view_geometry(const Tensor& self, IntList sizes) {
  ViewSpec spec;
  spec.sizes = infer_size("view", sizes, self.numel());
  spec.offset = self.storage_offset();
  if (self.is_contiguous()) {
    spec.strides = contiguous_strides(spec.sizes);
    return spec;
  }
  LS_CHECK(view_strides(self.sizes(), self.strides(), spec.sizes, spec.strides), ShapeError,
           "[view] shape {} with strides {} cannot be seen as {} without a copy. Use reshape(...) "
           "or contiguous() first.",
           self.shape(), to_string(self.strides()), to_string(sizes));
  return spec;
}

ViewSpec view_dtype_geometry(const Tensor& self, DType dtype) {
  const int64_t from = static_cast<int64_t>(size_of(self.dtype()));
  const int64_t to = static_cast<int64_t>(size_of(dtype));
  ViewSpec spec = same_as(self);
  spec.dtype = dtype;
  if (from == to) return spec;
  LS_CHECK(self.dim() > 0 && self.strides().back() == 1, ShapeError,
           "[view] {} can only be read as {}, of another size, when its last dimension is "
           "contiguous. Use contiguous() first.",
           to_string(self), to_string(dtype));
  // Sizes, strides and the offset are converted to the new element size; all must stay integers.
  const auto rescale = [&](int64_t& value, std::string_view what) {
    LS_CHECK(value * from % to == 0, ShapeError,
             "[view] {} cannot be read as {}: its {} ({} elements) is not a multiple of {} bytes.",
             to_string(self), to_string(dtype), what, value, to);
    value = value * from / to;
  };
  rescale(spec.sizes.back(), "last dimension");
  rescale(spec.offset, "offset");
  for (size_t i = 0; i + 1 < spec.strides.size(); ++i) rescale(spec.strides[i], "stride");
  return spec;
}

}  // namespace

LS_OP(alias, Tensor(const Tensor&), "alias(Tensor(a) self) -> Tensor(a)")
    .doc("A view of all elements with the same shape.")
    .view(same_as)
    .batching(batching::elementwise)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad; });
    });
Tensor alias(const Tensor& self) { return op_alias(self); }

LS_OP(lift_fresh, Tensor(const Tensor&), "lift_fresh(Tensor(a) self) -> Tensor(a)")
    .doc("alias under ATen's name for tensors just made from numbers.")
    .view(same_as)
    .batching(batching::elementwise)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad; });
    });

LS_OP(detach, Tensor(const Tensor&), "detach(Tensor(a) self) -> Tensor(a)")
    .doc("A view with the same elements and version counter that autograd does not track.")
    .view(same_as)
    .in_place_view()
    .batching(batching::elementwise)
    .not_differentiable("it exists to cut the graph");
Tensor detach(const Tensor& self) { return op_detach(self); }

LS_OP(as_strided, Tensor(const Tensor&, IntList, IntList, std::optional<int64_t>),
      "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
      "Tensor(a)")
    .doc("The storage read with the given sizes, strides and offset.")
    .view(as_strided_geometry)
    .in_place_view()
    .batching(batching::as_strided)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        return as_strided_backward(grad, ctx.sizes(0), ctx.input(0).strides(),
                                   ctx.input(0).offset(), ctx.argument<IntList>(1),
                                   ctx.argument<IntList>(2),
                                   ctx.argument<std::optional<int64_t>>(3));
      });
    });
Tensor as_strided(const Tensor& self, IntList sizes, IntList strides,
                  std::optional<int64_t> storage_offset) {
  return op_as_strided(self, sizes, strides, storage_offset);
}

LS_OP(expand, Tensor(const Tensor&, IntList, bool),
      "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)")
    .doc("Expands dimensions of size 1 and adds leading ones; -1 keeps a size.")
    .view(expand_geometry)
    .batching(batching::expand)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return ctx.unbroadcast(grad, 0); });
    });
Tensor expand(const Tensor& self, IntList sizes) { return op_expand(self, sizes, false); }

LS_OP(permute, Tensor(const Tensor&, IntList), "permute(Tensor(a) self, int[] dims) -> Tensor(a)")
    .doc("Reorders the dimensions: dimension i of the result is dims[i] of self.")
    .view(permute_geometry)
    .batching(batching::permute)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        const IntList dims = ctx.argument<IntList>(1);
        Dims inverse(dims.size(), 0);
        for (size_t i = 0; i < dims.size(); ++i) {
          inverse[wrap_dim("permute", dims[i], grad.dim())] = static_cast<int64_t>(i);
        }
        return grad.permute(inverse);
      });
    });
Tensor permute(const Tensor& self, IntList dims) { return op_permute(self, dims); }

LS_OP(squeeze, Tensor(const Tensor&, int64_t), "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
    .doc("Drops a dimension of size 1; any other is kept.")
    .view(squeeze_geometry)
    .in_place_view()
    .batching(batching::view_dims)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad.reshape(ctx.sizes(0)); });
    });
Tensor squeeze(const Tensor& self, int64_t dim) { return op_squeeze(self, dim); }

LS_OP(squeeze_dims, Tensor(const Tensor&, IntList),
      "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)")
    .doc("Drops those of the dimensions that have size 1.")
    .view(squeeze_dims_geometry)
    .in_place_view()
    .batching(batching::view_dims)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad.reshape(ctx.sizes(0)); });
    });
Tensor squeeze(const Tensor& self, IntList dims) { return op_squeeze_dims(self, dims); }

LS_OP(squeeze_all, Tensor(const Tensor&), "squeeze(Tensor(a) self) -> Tensor(a)")
    .doc("Drops all dimensions of size 1.")
    .view(squeeze_all_geometry)
    .in_place_view()
    .batching(batching::squeeze_all)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad.reshape(ctx.sizes(0)); });
    });

LS_OP(t, Tensor(const Tensor&), "t(Tensor(a) self) -> Tensor(a)")
    .doc("The transpose of a matrix; tensors of fewer dimensions are returned as they are.")
    .view(t_geometry)
    .in_place_view()
    .batching(batching::t)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad.t(); });
    });
Tensor t(const Tensor& self) { return op_t(self); }

LS_OP(transpose, Tensor(const Tensor&, int64_t, int64_t),
      "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
    .doc("Swaps two dimensions.")
    .view(transpose_geometry)
    .in_place_view("")
    .batching(batching::view_dims)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients(
          [&] { return grad.transpose(ctx.argument<int64_t>(1), ctx.argument<int64_t>(2)); });
    });
Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return op_transpose(self, dim0, dim1);
}

LS_OP(unsqueeze, Tensor(const Tensor&, int64_t), "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
    .doc("Inserts a dimension of size 1 before `dim`.")
    .view(unsqueeze_geometry)
    .in_place_view()
    .batching(batching::unsqueeze)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad.squeeze(ctx.argument<int64_t>(1)); });
    });
Tensor unsqueeze(const Tensor& self, int64_t dim) { return op_unsqueeze(self, dim); }

LS_OP(view, Tensor(const Tensor&, IntList), "view(Tensor(a) self, SymInt[] size) -> Tensor(a)")
    .doc("The same elements in another shape, without a copy; one size may be -1.")
    .view(view_geometry)
    .batching(batching::view)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return grad.reshape(ctx.sizes(0)); });
    });
Tensor view(const Tensor& self, IntList sizes) { return op_view(self, sizes); }

LS_OP(view_dtype, Tensor(const Tensor&, DType),
      "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)")
    .doc("The same bytes read as another dtype.")
    .view(view_dtype_geometry)
    .batching(batching::view_dtype)
    .not_differentiable("bytes read as another dtype have no derivative");
Tensor view(const Tensor& self, DType dtype) { return op_view_dtype(self, dtype); }

}  // namespace lockstep

// Rearrangements composed of views and of the operators in rearrange.cc.

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/shape_rules.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

Dims arranged(int64_t rank) {
  Dims dims;
  for (int64_t i = 0; i < rank; ++i) dims.push_back(i);
  return dims;
}

Tensor moved(const Tensor& self, IntList source, IntList destination) {
  LS_CHECK(source.size() == destination.size(), ShapeError,
           "[movedim] expected a destination for each dimension, got {} and {}.", to_string(source),
           to_string(destination));
  if (self.dim() == 0) {
    for (const int64_t d : source) wrap_dim("movedim", d, 0);
    for (const int64_t d : destination) wrap_dim("movedim", d, 0);
    return self.permute(Dims());
  }
  if (source.empty()) return self.permute(arranged(self.dim()));
  const uint64_t taken = dim_mask("movedim", source, self.dim());
  dim_mask("movedim", destination, self.dim());
  Dims order(static_cast<size_t>(self.dim()), -1);
  for (size_t i = 0; i < source.size(); ++i) {
    order[wrap_dim("movedim", destination[i], self.dim())] =
        wrap_dim("movedim", source[i], self.dim());
  }
  int64_t next = 0;  // next of the dimensions that keep their order
  for (int64_t& from : order) {
    if (from >= 0) continue;
    while (((taken >> next) & 1) != 0) ++next;
    from = next++;
  }
  return self.permute(order);
}

Tensor rotated(const Tensor& self, int64_t k, IntList dims) {
  LS_CHECK(dims.size() == 2 && self.dim() >= 2, ShapeError,
           "[rot90] expected two dimensions to rotate and a tensor that has them, got dims {} and "
           "shape {}.",
           to_string(dims), self.shape());
  dim_mask("rot90", dims, self.dim());  // throws if a dimension is given twice
  switch (((k % 4) + 4) % 4) {
    case 1:
      return flip(self, {dims[1]}).transpose(dims[0], dims[1]);
    case 2:
      return flip(self, dims);
    case 3:
      return flip(self, {dims[0]}).transpose(dims[0], dims[1]);
    default:
      return self.clone();
  }
}

Tensor diag_of(const Tensor& self, int64_t diagonal) {
  LS_CHECK(self.dim() == 1 || self.dim() == 2, ShapeError,
           "[diag] expected a vector or a matrix, got shape {}.", self.shape());
  if (self.dim() == 1) return diag_embed(self, diagonal);
  return clone(lockstep::diagonal(self, diagonal), MemoryFormat::kContiguous);
}

std::vector<Tensor> grids(TensorList tensors, std::string_view indexing) {
  LS_CHECK(!tensors.empty(), ShapeError, "[meshgrid] expected at least one tensor, got none.");
  LS_CHECK(indexing == "ij" || indexing == "xy", Error,
           "[meshgrid] expected indexing \"ij\" or \"xy\", got \"{}\".", indexing);
  // Indexing "xy" exchanges the first two dimensions.
  const bool exchange = indexing == "xy" && tensors.size() >= 2;
  const auto dimension = [exchange](size_t i) { return exchange && i < 2 ? 1 - i : i; };
  Dims sizes(tensors.size(), 1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    LS_CHECK(tensors[i].dim() <= 1, ShapeError,
             "[meshgrid] expected vectors or numbers, got shape {}.", tensors[i].shape());
    LS_CHECK(tensors[i].dtype() == tensors[0].dtype(), DTypeError,
             "[meshgrid] dtypes differ: expected {}, got {}.", to_string(tensors[0].dtype()),
             to_string(tensors[i].dtype()));
    sizes[dimension(i)] = tensors[i].numel();
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Dims own(sizes.size(), 1);
    own[dimension(i)] = tensors[i].numel();
    results.push_back(tensors[i].reshape(own).expand(sizes));
  }
  return results;
}

}  // namespace

LS_OP(movedim_list, Tensor(const Tensor&, IntList, IntList),
      "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
    .doc("Dimensions moved to other positions; the rest keep their order.")
    .composite(moved);
LS_OP(movedim, Tensor(const Tensor&, int64_t, int64_t),
      "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)")
    .doc("A dimension moved to another position; the rest keep their order.")
    .composite([](const Tensor& self, int64_t source, int64_t destination) {
      return moved(self, {source}, {destination});
    });

LS_OP(reshape_as, Tensor(const Tensor&, const Tensor&),
      "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)")
    .doc("self reshaped to other's shape.")
    .composite([](const Tensor& self, const Tensor& other) { return self.reshape(other.sizes()); });

LS_OP(unsafe_view, Tensor(const Tensor&, IntList),
      "_unsafe_view(Tensor self, SymInt[] size) -> Tensor")
    .doc("view of a temporary tensor, which has no other views.")
    .composite([](const Tensor& self, IntList size) { return self.view(size); });

LS_OP(rot90, Tensor(const Tensor&, int64_t, IntList),
      "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
    .doc("Rotates k times by 90 degrees, from the first dimension towards the second.")
    .composite(rotated);
LS_OP(rot90_out, const Tensor&(const Tensor&, int64_t, IntList, const Tensor&),
      "rot90.out(Tensor self, int k=1, int[] dims=[0, 1], *, Tensor(a!) out) -> Tensor(a!)")
    .doc("rot90, written into out.")
    .composite([](const Tensor& self, int64_t k, IntList dims, const Tensor& out) -> const Tensor& {
      return clone_out(out, rotated(self, k, dims));
    });

LS_OP(fliplr, Tensor(const Tensor&), "fliplr(Tensor self) -> Tensor")
    .doc("The columns in the opposite order.")
    .composite([](const Tensor& self) {
      LS_CHECK(self.dim() >= 2, ShapeError, "[fliplr] expected at least two dimensions, got {}.",
               self.shape());
      return flip(self, {1});
    });
LS_OP(flipud, Tensor(const Tensor&), "flipud(Tensor self) -> Tensor")
    .doc("The rows in the opposite order.")
    .composite([](const Tensor& self) {
      LS_CHECK(self.dim() >= 1, ShapeError, "[flipud] expected at least one dimension, got none.");
      return flip(self, {0});
    });

LS_OP(diag, Tensor(const Tensor&, int64_t), "diag(Tensor self, int diagonal=0) -> Tensor")
    .doc("A matrix with the vector self on a diagonal, or the diagonal of the matrix self.")
    .composite(diag_of);
LS_OP(diag_out, const Tensor&(const Tensor&, int64_t, const Tensor&),
      "diag.out(Tensor self, int diagonal=0, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("diag, written into out.")
    .composite([](const Tensor& self, int64_t diagonal, const Tensor& out) -> const Tensor& {
      return clone_out(out, diag_of(self, diagonal));
    });

LS_OP(meshgrid, std::vector<Tensor>(TensorList), "meshgrid(Tensor[] tensors) -> Tensor[]")
    .doc(
        "Grids of coordinates: result i holds vector i along dimension i, expanded along the "
        "others.")
    .composite([](TensorList tensors) { return grids(tensors, "ij"); });
LS_OP(meshgrid_indexing, std::vector<Tensor>(TensorList, std::string_view),
      "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]")
    .doc("meshgrid; with indexing \"xy\" the first two dimensions are exchanged.")
    .composite(grids);

LS_OP(tensor_split, std::vector<Tensor>(const Tensor&, int64_t, int64_t),
      "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
    .doc("Splits a dimension into parts whose sizes differ by at most one.")
    .composite([](const Tensor& self, int64_t sections, int64_t dim) {
      LS_CHECK(self.dim() > 0, IndexError, "[tensor_split] a 0-d tensor cannot be cut.");
      LS_CHECK(sections > 0, ShapeError, "[tensor_split] sections must be positive, got {}.",
               sections);
      rules::check_part_count("tensor_split", sections);
      const int64_t size = self.size(dim);
      std::vector<Tensor> parts;
      int64_t first = 0;
      for (int64_t i = 0; i < sections; ++i) {
        const int64_t length = size / sections + (i < size % sections ? 1 : 0);
        parts.push_back(self.slice(dim, first, first + length));
        first += length;
      }
      return parts;
    });
std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  return op_tensor_split(self, sections, dim);
}

LS_OP(tensor_split_indices, std::vector<Tensor>(const Tensor&, IntList, int64_t),
      "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
    .doc("Splits a dimension at indices, which are interpreted as in slices.")
    .composite([](const Tensor& self, IntList indices, int64_t dim) {
      LS_CHECK(self.dim() > 0, IndexError, "[tensor_split] a 0-d tensor cannot be cut.");
      std::vector<Tensor> parts;
      int64_t first = 0;
      for (const int64_t index : indices) {
        parts.push_back(self.slice(dim, first, index));
        first = index;
      }
      parts.push_back(self.slice(dim, first, std::nullopt));
      return parts;
    });
std::vector<Tensor> tensor_split(const Tensor& self, IntList indices, int64_t dim) {
  return op_tensor_split_indices(self, indices, dim);
}

LS_OP(channel_shuffle, Tensor(const Tensor&, int64_t),
      "channel_shuffle(Tensor self, SymInt groups) -> Tensor")
    .doc("The channels of `groups` groups interleaved.")
    .composite([](const Tensor& self, int64_t groups) {
      LS_CHECK(self.dim() > 2, ShapeError,
               "[channel_shuffle] expected [batch, channels, ...] with more than two dimensions, "
               "got shape {}.",
               self.shape());
      LS_CHECK(groups > 0 && self.size(1) % groups == 0, ShapeError,
               "[channel_shuffle] expected a number of groups that divides the {} channels, got "
               "{}.",
               self.size(1), groups);
      return unflatten(self, 1, {groups, self.size(1) / groups})
          .transpose(1, 2)
          .reshape(self.sizes());
    });
Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  return op_channel_shuffle(self, groups);
}

}  // namespace lockstep

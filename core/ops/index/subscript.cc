#include "core/ops/index/subscript.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/advanced_index.h"
#include "core/ops/view/view.h"

namespace lockstep {
namespace {

using Kind = TensorIndex::Kind;

bool is_mask(const Tensor& tensor) {
  return tensor.dtype() == DType::kBool || tensor.dtype() == DType::kU8;
}

/// Dimensions of the subscripted tensor that an index is about.
int64_t covered(const TensorIndex& index) {
  switch (index.kind()) {
    case Kind::kSlice:
    case Kind::kNumber:
      return 1;
    case Kind::kTensor:
      return is_mask(index.tensor()) ? index.tensor().dim() : 1;
    default:
      return 0;
  }
}

void check_count(const Tensor& self, std::span<const TensorIndex> indices, int64_t count) {
  LS_CHECK(count <= self.dim(), IndexError,
           "[index] too many indices: expected at most {} for shape {}, got {}.", self.dim(),
           self.shape(), count);
  const auto ellipses = std::ranges::count(indices, Kind::kEllipsis, &TensorIndex::kind);
  LS_CHECK(ellipses <= 1, IndexError,
           "[index] an index can only have one Ellipsis, got {}. Write Slice() for a whole "
           "dimension.",
           ellipses);
}

/// A tensor after numbers, slices and None were applied, and the indices that are left to gather
/// with: none, or one for each dimension up to the last that is indexed.
struct Subscripted {
  Tensor view;
  std::vector<Tensor> indices;
};

class Walk {
 public:
  explicit Walk(const Tensor& self) : view_(self) {}

  void pass(int64_t dims) { dim_ += dims; }
  void take(int64_t index) { view_ = select(view_, dim_, index); }
  void cut(const Slice& at) { view_ = slice(view_, dim_++, at.start, at.stop, at.step); }
  void insert() { view_ = unsqueeze(view_, dim_++); }
  /// `index` for as many dimensions as it covers.
  void gather(const Tensor& index, int64_t dims) {
    for (; covered_ < dim_; ++covered_) indices_.emplace_back();
    indices_.push_back(index);
    covered_ += dims;
    dim_ += dims;
  }
  /// A new dimension, whose only row is kept or not.
  void keep(bool row) {
    view_ = unsqueeze(view_, dim_);
    gather(zeros({row ? 1 : 0}, {DType::kI64, view_.device()}), 1);
  }
  Subscripted end() && { return {std::move(view_), std::move(indices_)}; }

 private:
  Tensor view_;
  std::vector<Tensor> indices_;
  int64_t dim_ = 0;      ///< of view_, which the next index is about
  int64_t covered_ = 0;  ///< dimensions of view_ that indices_ are about
};

Subscripted subscripted(const Tensor& self, std::span<const TensorIndex> indices) {
  int64_t count = 0;
  for (const TensorIndex& index : indices) count += covered(index);
  check_count(self, indices, count);
  Walk walk(self);
  for (const TensorIndex& index : indices) {
    const Tensor& tensor = index.tensor();
    switch (index.kind()) {
      case Kind::kNone:
        walk.insert();
        break;
      case Kind::kEllipsis:
        walk.pass(self.dim() - count);
        break;
      case Kind::kSlice:
        walk.cut(index.slice());
        break;
      case Kind::kNumber:
        walk.take(index.number());
        break;
      case Kind::kBool:
        walk.keep(index.number() != 0);
        break;
      case Kind::kTensor:
        if (tensor.dim() > 0) {
          walk.gather(tensor, covered(index));
        } else if (is_mask(tensor)) {
          walk.keep(tensor.item<bool>());
        } else {
          walk.take(tensor.item<int64_t>());
        }
    }
  }
  return std::move(walk).end();
}

/// `values` without dimensions of size 1 at the front that `to` does not have.
Tensor without_leading_ones(Tensor values, int64_t dims) {
  while (values.dim() > dims && values.size(0) == 1) values = select(values, 0, 0);
  return values;
}

}  // namespace

Tensor Tensor::operator[](int64_t index) const { return lockstep::select(*this, 0, index); }
Tensor Tensor::operator[](const Tensor& index) const { return this->index({index}); }

Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(std::span(indices.begin(), indices.size()));
}
Tensor Tensor::index(std::span<const TensorIndex> indices) const {
  const Subscripted at = subscripted(*this, indices);
  return at.indices.empty() ? at.view : lockstep::index(at.view, at.indices);
}

const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices,
                                 const Tensor& values) const {
  return index_put_(std::span(indices.begin(), indices.size()), values);
}
const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices,
                                 const Scalar& value) const {
  return index_put_(indices, full({}, value, options()));
}
const Tensor& Tensor::index_put_(std::span<const TensorIndex> indices, const Tensor& values) const {
  const Subscripted at = subscripted(*this, indices);
  if (at.indices.empty()) {
    at.view.copy_(without_leading_ones(values, at.view.dim()));
  } else {
    lockstep::index_put_(at.view, at.indices, values.to(options()));
  }
  return *this;
}

RowIterator begin(const Tensor& tensor) {
  LS_CHECK(tensor.dim() > 0, ShapeError,
           "[iteration] a 0-d tensor has no rows. Its element is read by item<T>().");
  return {tensor, 0};
}
RowIterator end(const Tensor& tensor) { return {tensor, tensor.size(0)}; }

}  // namespace lockstep

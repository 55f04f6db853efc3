#pragma once

#include <initializer_list>

#include "core/tensor/shape.h"

namespace lockstep::nn {

/// One number for each spatial dimension, or one for all of them: `3` or `{3, 5}`.
class SpatialSize {
 public:
  SpatialSize(int64_t all) : sizes_{all} {}
  SpatialSize(std::initializer_list<int64_t> each) : sizes_(each) {}

  operator IntList() const { return sizes_; }
  /// The number of dimension `dim`.
  int64_t operator[](size_t dim) const { return sizes_.size() == 1 ? sizes_[0] : sizes_[dim]; }
  size_t count() const { return sizes_.size(); }

 private:
  Dims sizes_;
};

}  // namespace lockstep::nn

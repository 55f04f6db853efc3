#pragma once

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Views of row-major tensors [..., 2 n] as the matrices of the first and of the second n columns,
/// and of tensors [..., n] as matrices of as many rows.
class RowHalves {
 public:
  explicit RowHalves(const TensorArg& whole)
      : sizes_{0, whole.size(-1) / 2}, whole_strides_{whole.size(-1), 1}, strides_{sizes_[1], 1} {
    if (whole.size(-1) > 0) sizes_[0] = whole.numel / whole.size(-1);
  }
  RowHalves(const RowHalves&) = delete;
  RowHalves& operator=(const RowHalves&) = delete;

  template <class Argument>
  Argument first(const Argument& whole) const {
    return view(whole, whole_strides_, 0);
  }
  template <class Argument>
  Argument second(const Argument& whole) const {
    return view(whole, whole_strides_, sizes_[1]);
  }
  template <class Argument>
  Argument rows(const Argument& narrow) const {
    return view(narrow, strides_, 0);
  }

 private:
  template <class Argument>
  Argument view(const Argument& of, const int64_t* strides, int64_t first) const {
    Argument view = of;
    const int64_t offset = of.numel == 0 ? 0 : first * static_cast<int64_t>(size_of(of.dtype));
    view.address = static_cast<std::byte*>(of.address) + offset;
    view.size_data = sizes_;
    view.stride_data = strides;
    view.rank = 2;
    view.numel = sizes_[0] * sizes_[1];
    view.contiguous = strides == strides_ || sizes_[0] <= 1;
    return view;
  }

  int64_t sizes_[2];
  int64_t whole_strides_[2];
  int64_t strides_[2];
};

}  // namespace lockstep

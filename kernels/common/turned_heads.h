#pragma once

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Views of the parts of a joint projection [B, T, (heads + 2 key_heads) D], row-major: the query
/// and key heads [B, heads + key_heads, T, D], which rotary positions turn, and the columns of the
/// value heads [B, T, key_heads D].
class TurnedHeads {
 public:
  TurnedHeads(const TensorArg& qkv, int64_t heads, int64_t key_heads)
      : row_(qkv.size(2)), width_(row_ / (heads + 2 * key_heads)) {
    const int64_t batch = qkv.size(0), positions = qkv.size(1), turned = heads + key_heads;
    set(head_sizes_, {batch, turned, positions, width_});
    set(head_strides_, {positions * row_, width_, row_, 1});
    set(value_sizes_, {batch, positions, key_heads * width_});
    set(value_strides_, {positions * row_, row_, 1});
  }
  TurnedHeads(const TurnedHeads&) = delete;
  TurnedHeads& operator=(const TurnedHeads&) = delete;

  template <class Argument>
  Argument heads(const Argument& qkv) const {
    return view(qkv, head_sizes_, head_strides_, 4, 0);
  }
  template <class Argument>
  Argument values(const Argument& qkv) const {
    return view(qkv, value_sizes_, value_strides_, 3, head_sizes_[1] * width_);
  }

 private:
  static void set(int64_t* to, std::initializer_list<int64_t> from) {
    for (const int64_t each : from) *to++ = each;
  }
  template <class Argument>
  static Argument view(const Argument& qkv, const int64_t* sizes, const int64_t* strides, int rank,
                       int64_t first) {
    Argument view = qkv;
    view.address =
        static_cast<std::byte*>(qkv.address) + first * static_cast<int64_t>(size_of(qkv.dtype));
    view.size_data = sizes;
    view.stride_data = strides;
    view.rank = rank;
    view.numel = 1;
    for (int i = 0; i < rank; ++i) view.numel *= sizes[i];
    view.contiguous = false;
    return view;
  }

  int64_t row_;
  int64_t width_;
  int64_t head_sizes_[4], head_strides_[4];
  int64_t value_sizes_[3], value_strides_[3];
};

}  // namespace lockstep

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// Some heads of a tensor [B, T, n D] as an argument [B, heads, T, D] of a kernel.
class HeadsOf {
 public:
  /// The heads [first, first + heads), `width` elements each.
  HeadsOf(const TensorArg& rows, int64_t first, int64_t heads, int64_t width)
      : address_(static_cast<std::byte*>(rows.address) +
                 first * width * rows.stride(2) * static_cast<int64_t>(size_of(rows.dtype))),
        dtype_(rows.dtype),
        sizes_{rows.size(0), heads, rows.size(1), width},
        strides_{rows.stride(0), width * rows.stride(2), rows.stride(1), rows.stride(2)} {}

  /// Valid as long as this object.
  In in() const { return argument<In>(); }
  Out out() const { return argument<Out>(); }

 private:
  template <class Argument>
  Argument argument() const {
    Argument argument;
    argument.address = address_;
    argument.size_data = sizes_.data();
    argument.stride_data = strides_.data();
    argument.numel = sizes_[0] * sizes_[1] * sizes_[2] * sizes_[3];
    argument.rank = 4;
    argument.dtype = dtype_;
    return argument;
  }

  std::byte* address_;
  DType dtype_;
  std::array<int64_t, 4> sizes_;
  std::array<int64_t, 4> strides_;
};

/// The heads in the rows of a joint projection [B, T, (heads + 2 key_heads) D].
struct QkvHeads {
  int64_t width;
  HeadsOf query, key, value;

  QkvHeads(const TensorArg& qkv, int64_t heads, int64_t key_heads)
      : width(qkv.size(2) / (heads + 2 * key_heads)),
        query(qkv, 0, heads, width),
        key(qkv, heads, key_heads, width),
        value(qkv, heads + key_heads, key_heads, width) {}
};

/// The kernel of _flash_attention_of_qkv, which calls `kForward`, the one of
/// _scaled_dot_product_flash_attention_for_cpu, with heads inside the projection.
template <auto kForward>
void forward_of_qkv(const Out& output, const Out& logsumexp, const In& qkv, int64_t heads,
                    int64_t key_heads, bool is_causal, std::optional<double> scale) {
  const QkvHeads at(qkv, heads, key_heads);
  const HeadsOf out(output, 0, heads, at.width);
  kForward(out.out(), logsumexp, at.query.in(), at.key.in(), at.value.in(), 0.0, is_causal, In(),
           scale);
}

/// The kernel of _flash_attention_of_qkv_backward: calls `kBackward` likewise.
template <auto kBackward>
void backward_of_qkv(const Out& grad_qkv, const In& grad_out, const In& qkv, const In& out,
                     const In& logsumexp, int64_t heads, int64_t key_heads, bool is_causal,
                     std::optional<double> scale) {
  const QkvHeads at(qkv, heads, key_heads), to(grad_qkv, heads, key_heads);
  const HeadsOf result(out, 0, heads, at.width), grad_result(grad_out, 0, heads, at.width);
  kBackward(to.query.out(), to.key.out(), to.value.out(), grad_result.in(), at.query.in(),
            at.key.in(), at.value.in(), result.in(), logsumexp, 0.0, is_causal, In(), scale);
}

}  // namespace lockstep

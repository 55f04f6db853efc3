#pragma once

#include <vector>

#include "core/device/copies.h"
#include "core/tensor/kernel_arguments.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// Makes copies of a kernel's tensors with the strides that the kernel needs, when theirs differ.
/// The copies are counted as hidden copies, like those the operator wrapper makes for kernels that
/// declare their strides, and live as long as this object.
class Restrided {
 public:
  /// The backend's copy function.
  using Copy = void (*)(const Out& out, const In& src);
  /// Returns the wanted strides for a tensor of the given sizes.
  using WantedStrides = Dims (*)(IntList sizes);

  Restrided(const char* op, Device device, Copy copy, WantedStrides wanted)
      : op_(op), device_(device), copy_(copy), wanted_(wanted) {}

  /// True if the tensor has the wanted strides; the strides of dimensions of size 1 do not matter.
  bool is_fit(const TensorArg& tensor) const {
    if (!tensor.defined() || tensor.numel == 0) return true;
    if (tensor.contiguous && wanted_ == &contiguous_strides) return true;
    const Dims strides = wanted_(tensor.sizes());
    for (size_t d = 0; d < strides.size(); ++d) {
      if (tensor.size_data[d] != 1 && tensor.stride_data[d] != strides[d]) return false;
    }
    return true;
  }
  /// Returns `in` itself if its strides fit or it is undefined, else a copy. A second call with the
  /// same tensor returns the same copy.
  In read(const In& in) {
    if (is_fit(in)) return in;
    for (const Pair& pair : read_) {
      const bool same = pair.given.address == in.address && pair.given.size_data == in.size_data;
      if (same) return pair.stand_in.as_in();
    }
    Out copy;
    copy.refer_to(*stand_in(in).impl());
    copy_(copy, in);
    Out given;
    static_cast<TensorArg&>(given) = in;
    read_.push_back({given, copy});
    return copy.as_in();
  }
  /// Returns the tensor to write instead of `out`; `finish` copies it into `out`.
  Out write(const Out& out) {
    if (is_fit(out)) return out;
    Out written;
    written.refer_to(*stand_in(out).impl());
    written_.push_back({out, written});
    return written;
  }
  void finish() const {
    for (const Pair& pair : written_) copy_(pair.given, pair.stand_in.as_in());
  }

 private:
  const Tensor& stand_in(const TensorArg& like) {
    copies_.push_back(
        empty_strided_tensor(like.sizes(), wanted_(like.sizes()), like.dtype, device_));
    count_hidden_copy(op_, copies_.back(), "the kernel wants other strides");
    return copies_.back();
  }

  struct Pair {
    Out given;
    Out stand_in;
  };

  const char* op_;
  Device device_;
  Copy copy_;
  WantedStrides wanted_;
  std::vector<Tensor> copies_;
  std::vector<Pair> read_;
  std::vector<Pair> written_;
};

}  // namespace lockstep

#pragma once

#include <algorithm>

#include "core/dispatch/parameters.h"

namespace lockstep::structured {

/// Whether a destination is also read.
enum class ReadBack : uint8_t {
  kNo,
  kSafe,    ///< yes, and the kernel reads an element before it writes the same one
  kHazard,  ///< yes, and the kernel may read after it wrote elsewhere: it needs a temporary
};

/// The tensor into which a kernel writes one result: the destination itself, or a temporary that
/// `finish` copies into it because dtype or strides do not suit the kernel.
class Target {
 public:
  /// For a functional form: allocates.
  Target(const Preparation& preparation, const OutputSpec& spec, Device device);
  /// For in-place and out= forms: checks sizes, dtype and overlap; `resizable` for out=.
  Target(const Preparation& preparation, const OutputSpec& spec, const Tensor& destination,
         bool resizable, ReadBack read_back);

  const Out& out() const { return out_; }
  Tensor take() { return std::move(result_); }
  void finish(const Preparation& preparation);

 private:
  void choose_place(const Preparation& preparation, DType dtype, ReadBack read_back);

  Tensor result_;
  Tensor temporary_;
  Out out_;
  bool shares_places_ = false;  ///< elements of the destination may lie in the same place
};

/// Whether each element along some dimension is the same one, as in an expanded tensor: such a
/// tensor is no destination. Others whose elements meet are, as in ATen; which of the results that
/// meet is kept is not specified.
bool repeats_elements(const TensorImpl& impl);

/// What a destination has in common with an input.
enum class Sharing : uint8_t {
  kNone,
  kAll,   ///< all elements, each with the one of the same index
  kSome,  ///< some bytes, or there are too many strides to tell
};
/// The rule is ATen's: two tensors without gaps whose memory is shared in part are a ShapeError.
/// Where one has gaps it is up to the caller, who gets what distinct memory would have given.
Sharing check_overlap(const Operator& op, const Tensor& destination, const Tensor& input);
/// What it means for a kernel that reads an input, `safe` when it reads each element of it before
/// it writes the one of the same index.
constexpr ReadBack read_back(Sharing sharing, bool safe) {
  if (sharing == Sharing::kNone) return ReadBack::kNo;
  return sharing == Sharing::kAll && safe ? ReadBack::kSafe : ReadBack::kHazard;
}

/// Checks the destination against all arguments. Kernels of operators with an in-place form may
/// be given their first argument as destination; element-wise ones any argument.
template <class... A>
ReadBack read_back(const Preparation& preparation, const Tensor& destination,
                   const A&... arguments) {
  const bool in_place = preparation.op.has_in_place();
  const bool elementwise = in_place && preparation.strides != Strides::kMatrix;
  ReadBack worst = ReadBack::kNo;
  size_t index = 0;
  (..., [&](const auto& argument) {
    const bool safe = elementwise || (in_place && index == 0);
    ++index;
    each_tensor(argument, [&](const Tensor& input) {
      worst = std::max(worst, read_back(check_overlap(preparation.op, destination, input), safe));
    });
  }(arguments));
  return worst;
}

}  // namespace lockstep::structured

#include <cstring>

#include "core/dispatch/kernel.h"
#include "kernels/common/side_by_side.h"
#include "kernels/cpu/matmul/gemm.h"

namespace lockstep::cpu {

namespace {

/// The weights as one matrix: in place, or copied.
class JoinedWeights {
 public:
  explicit JoinedWeights(InList parts) : joined_(parts) {
    if (JoinedRows::lie_side_by_side(parts)) return;
    copy_ = empty_tensor(joined_.matrix().sizes(), parts[0].dtype);
    auto* to = static_cast<std::byte*>(copy_.data());
    for (const In& part : parts) {
      if (part.numel > 0) std::memcpy(to, part.address, JoinedRows::bytes_of(part));
      to += JoinedRows::bytes_of(part);
    }
    joined_.move_to(copy_.data());
  }
  const In& get() const { return joined_.matrix(); }

 private:
  JoinedRows joined_;
  Tensor copy_;
};

void linear_of_parts(const Out& out, const In& input, InList weights) {
  const JoinedWeights joined(weights);
  gemm(linear_product(out, input, joined.get(), In()));
}

void linear_of_parts_backward(const Out& out, const In& grad, InList weights) {
  const JoinedWeights joined(weights);
  gemm(linear_input_product(out, grad, joined.get()));
}

}  // namespace

LS_KERNEL(CPU, "linear_of_parts", linear_of_parts, Strides::kContiguous);
LS_KERNEL(CPU, "linear_of_parts_backward", linear_of_parts_backward, Strides::kContiguous);

}  // namespace lockstep::cpu

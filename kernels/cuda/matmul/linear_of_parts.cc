#include <optional>

#include "core/dispatch/kernel.h"
#include "kernels/common/side_by_side.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

/// The weights as one matrix: in place, or copied.
class JoinedWeights {
 public:
  explicit JoinedWeights(InList parts) : joined_(parts) {
    if (JoinedRows::lie_side_by_side(parts)) return;
    copy_.emplace(JoinedRows::bytes_of(joined_.matrix()));
    auto* to = copy_->data<std::byte>();
    for (const In& part : parts) {
      Out place;
      static_cast<TensorArg&>(place) = part;
      place.address = to;
      if (part.numel > 0) copy_elements(place, part);
      to += JoinedRows::bytes_of(part);
    }
    joined_.move_to(copy_->data());
  }
  const In& get() const { return joined_.matrix(); }

 private:
  JoinedRows joined_;
  std::optional<Workspace> copy_;
};

void linear_of_parts(const Out& out, const In& input, InList weights) {
  if (out.numel == 0) return;
  const JoinedWeights joined(weights);
  gemm(linear_product(out, input, joined.get(), In()));
}

void linear_of_parts_backward(const Out& out, const In& grad, InList weights) {
  if (out.numel == 0) return;
  const JoinedWeights joined(weights);
  gemm(linear_input_product(out, grad, joined.get()));
}

}  // namespace

LS_KERNEL(CUDA, "linear_of_parts", linear_of_parts, Strides::kContiguous);
LS_KERNEL(CUDA, "linear_of_parts_backward", linear_of_parts_backward, Strides::kContiguous);

}  // namespace lockstep::cuda

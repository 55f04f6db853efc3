#pragma once

#include <array>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/cuda/kernel.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/common/error_flag.h"
#include "kernels/common/functor_type.h"
#include "kernels/common/lanes.h"
#include "kernels/common/number_operand.h"
#include "kernels/cuda/launch.h"

namespace lockstep::cuda {

/// The kernels of one functor for one choice of lanes. `strided` takes operands of any strides and
/// dtypes. If `has_dense`, the others take operands that are all dense in f32, bf16 or f16.
/// `mixed`, which only sums, differences and products have, takes contiguous operands of several of
/// these.
struct PointwiseKernel {
  Kernel strided;
  Kernel dense_f32;
  Kernel dense_bf16;
  Kernel dense_f16;
  Kernel mixed;
  bool has_dense;
  std::array<ComputeLane, 4> lanes;  ///< of the result, then of the inputs
  /// The functor's C++ type; empty if it refers to something of its call.
  std::string_view functor;
};

/// Returns the kernels named "pointwise_FUNCTOR_LANES", such as "pointwise_Add_fff". LANES has one
/// letter per lane, the result's first: f, d, i and b for f32, f64, i64 and bytes.
PointwiseKernel pointwise_kernel(std::string_view functor, std::span<const ComputeLane> lanes,
                                 std::string_view type);

/// An input of a pointwise kernel: a tensor in device memory, or a number in the cpu's memory.
struct PointwiseInput {
  const In* tensor;
  bool is_number;
  PointwiseInput(const In& in) : tensor(&in), is_number(false) {}
  PointwiseInput(const NumberOperand& number) : tensor(&number.in()), is_number(true) {}
};

/// Queues out = functor(inputs...); the inputs broadcast to out's shape. `functor` are the
/// functor's bytes, none if it has no state. Gives the call to a LoopCapture of this thread
/// instead.
void pointwise(const PointwiseKernel& kernel, const Out& out,
               std::span<const PointwiseInput> inputs, std::span<const unsigned char> functor);

namespace detail {
/// The kernels of F in lanes R for the result and A... for the inputs, constructed at program
/// start.
template <functors::Named F, class R, class... A>
struct KernelOfFunctor {
  static inline const PointwiseKernel kernel = pointwise_kernel(
      F::kName.view(), std::array{lane_of<R>, lane_of<A>...},
      functors::RefersOutside<F> ? std::string_view() : kernel_text::functor_type<F>());
};
}  // namespace detail

/// Queues out = functor(inputs...), computed in lane R for the result and A... for the inputs. A
/// file kernels/pointwise/*.cu must instantiate the functor's kernel for these lanes.
template <class R, class... A, functors::Named F, class... I>
void elementwise(const Out& out, const F& functor, const I&... inputs) {
  static_assert(sizeof...(A) == sizeof...(I) && std::is_trivially_copyable_v<F>);
  const std::array<PointwiseInput, sizeof...(I)> list{PointwiseInput(inputs)...};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&functor);
  pointwise(detail::KernelOfFunctor<F, R, A...>::kernel, out, list,
            {bytes, std::is_empty_v<F> ? 0 : sizeof(F)});
}

/// Kind of the fault that a kernel reports when it divides an integer by zero.
struct ZeroDivision : FaultKind {
  explicit ZeroDivision(const char* op)
      : FaultKind(op, "integer division by zero. Cast to a floating dtype for inf or NaN") {}
};
/// Fault word in which the kernels of one call flag an integer division by zero. The next
/// synchronisation with the device throws the error. Has the interface of cpu::ZeroDivisor.
class ZeroDivisor {
 public:
  ZeroDivisor(const ZeroDivision& kind, const Out&, const In&, const In&)
      : fault_(fault_place(kind)) {}
  functors::ErrorFlag flag() const { return {&fault_->hit}; }
  void check() const {}

 private:
  Fault* fault_;
};

}  // namespace lockstep::cuda

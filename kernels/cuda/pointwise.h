#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/cuda/kernel.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/common/integer_division.h"
#include "kernels/common/lanes.h"
#include "kernels/common/number_operand.h"
#include "kernels/cuda/launch.h"

namespace lockstep::cuda {

/// Kernels of one functor in one choice of lanes. There is one for operands of any strides and
/// dtypes, and where `has_dense` one each for operands that are all dense in f32, bf16 or f16.
struct PointwiseKernel {
  Kernel strided;
  Kernel dense_f32;
  Kernel dense_bf16;
  Kernel dense_f16;
  bool has_dense;
  std::array<Lane, 4> lanes;
};

/// "WithNumber_Add" of "lockstep::functors::WithNumber<lockstep::functors::Add, float>": the names
/// of a functor's templates without those of namespaces and lanes, as the .cu files have them.
std::string functor_name(std::string_view type);
/// The kernels' names: "pointwise_Add_fff", with f32, f64, i64 and byte lanes as f, d, i and b, the
/// result's first.
PointwiseKernel pointwise_kernel(const std::string& functor, std::span<const Lane> lanes);

/// An operand: a tensor of the device, or a number in the cpu's memory.
struct PointwiseInput {
  const In* tensor;
  bool is_number;
  PointwiseInput(const In& in) : tensor(&in), is_number(false) {}
  PointwiseInput(const NumberOperand& number) : tensor(&number.in()), is_number(true) {}
};

/// out = functor(inputs...); the inputs broadcast to out's shape.
void pointwise(const PointwiseKernel& kernel, const Out& out,
               std::span<const PointwiseInput> inputs, std::span<const unsigned char> functor);

namespace detail {
template <class F>
constexpr std::string_view type_text() {
  const std::string_view text = __PRETTY_FUNCTION__;  // "... [with F = lockstep::X; std::..."
  const size_t first = text.find("F = ") + 4;
  return text.substr(first, text.find_first_of(";]", first) - first);
}
/// Made when the program starts.
template <class F, class R, class... A>
struct NamedKernel {
  static inline const PointwiseKernel kernel =
      pointwise_kernel(functor_name(type_text<F>()), std::array{lane_of<R>, lane_of<A>...});
};
}  // namespace detail

/// The same for a functor that has kernels in lanes R for the output and A... for the inputs.
template <class R, class... A, class F, class... I>
void elementwise(const Out& out, const F& functor, const I&... inputs) {
  static_assert(sizeof...(A) == sizeof...(I) && std::is_trivially_copyable_v<F>);
  const std::array<PointwiseInput, sizeof...(I)> list{PointwiseInput(inputs)...};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&functor);
  pointwise(detail::NamedKernel<F, R, A...>::kernel, out, list,
            {bytes, std::is_empty_v<F> ? 0 : sizeof(F)});
}

/// The fault of dividing integers by zero.
struct ZeroDivision : FaultKind {
  explicit ZeroDivision(const char* op)
      : FaultKind(op, "integer division by zero. Cast to a floating dtype for inf or NaN") {}
};
/// Where kernels of one call note an integer division by zero; the next synchronisation throws.
class ZeroDivisor {
 public:
  ZeroDivisor(const ZeroDivision& kind, const Out&, const In&, const In&)
      : fault_(fault_place(kind)) {}
  functors::Note note() const { return {&fault_->hit}; }
  void check() const {}

 private:
  Fault* fault_;
};

}  // namespace lockstep::cuda

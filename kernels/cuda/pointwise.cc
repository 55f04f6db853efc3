#include "kernels/cuda/pointwise.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/check.h"
#include "kernels/cuda/pointwise_images.h"
#include "kernels/cuda/pointwise_params.h"
#include "kernels/strided_plan.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostElements = int64_t{1} << 31;  ///< that a kernel counts in 32 bits

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

char letter(Lane lane) {
  switch (lane) {
    case Lane::kF32:
      return 'f';
    case Lane::kF64:
      return 'd';
    case Lane::kI64:
      return 'i';
    default:
      return 'b';
  }
}

PointwiseOperands operands_of(const StridedPlan& plan, const Out& out,
                              std::span<const PointwiseInput> inputs,
                              std::span<const unsigned char> functor) {
  PointwiseOperands operands{};
  std::copy_n(plan.address, plan.operands, operands.address);
  operands.dtype[0] = out.dtype;
  for (size_t i = 0; i < inputs.size(); ++i) {
    operands.dtype[i + 1] = inputs[i].tensor->dtype;
    operands.is_number[i + 1] = inputs[i].is_number;
    if (!inputs[i].is_number) continue;
    std::memcpy(operands.number, inputs[i].tensor->address, size_of(inputs[i].tensor->dtype));
  }
  std::ranges::copy(functor, operands.functor);
  return operands;
}

/// Which of the dense kernels takes the plan: that of f32, that of bf16, or none.
Kernel dense_kernel(const PointwiseKernel& kernel, const StridedPlan& plan,
                    const PointwiseOperands& operands) {
  if (!kernel.has_dense || plan.rank != 1) return {};
  std::optional<DType> element;
  for (int o = 0; o < plan.operands; ++o) {
    const DType dtype = operands.dtype[o];
    const int64_t stride = plan.strides[o][0];
    if (o > 0 && stride == 0) continue;  // one element, converted once
    if (stride != static_cast<int64_t>(size_of(dtype))) return {};
    if (reinterpret_cast<uintptr_t>(plan.address[o]) % 16 != 0) return {};
    if (kernel.lanes[static_cast<size_t>(o)] == Lane::kByte) {
      if (!is_stored_as(dtype, Lane::kByte)) return {};
    } else if (element.value_or(dtype) != dtype) {
      return {};
    } else {
      element = dtype;
    }
  }
  if (element == DType::kF32) return kernel.dense_f32;
  return element == DType::kBF16 ? kernel.dense_bf16 : Kernel();
}

void launch_dense(Kernel kernel, const StridedPlan& plan, const PointwiseOperands& operands) {
  DensePointwise params{operands, plan.numel, {}};
  for (int o = 1; o < plan.operands; ++o) params.is_single[o] = plan.strides[o][0] == 0;
  constexpr int64_t kPerThread = 8;
  launch(kernel,
         {.blocks = {blocks_for(plan.numel, kThreads * kPerThread), 1, 1}, .threads = kThreads},
         params);
}

void launch_strided(Kernel kernel, const StridedPlan& plan, const PointwiseOperands& operands) {
  LS_CHECK(plan.rank <= StridedPointwise::kMaxRank, ShapeError,
           "[kernel] too many dimensions that are not neighbours in memory: expected at most {} on "
           "cuda, got {}. Call contiguous() first.",
           StridedPointwise::kMaxRank, plan.rank);
  StridedPointwise params{};
  params.operands = operands;
  std::copy_n(plan.address, plan.operands, params.operands.address);
  params.numel = static_cast<uint32_t>(plan.numel);
  params.rank = plan.rank;
  for (int i = 0; i < plan.rank; ++i) {
    params.sizes[i] = Divider(static_cast<uint32_t>(plan.sizes[i]));
    for (int o = 0; o < plan.operands; ++o) params.strides[o][i] = plan.strides[o][i];
  }
  constexpr int64_t kPerThread = 4;
  launch(kernel,
         {.blocks = {blocks_for(plan.numel, kThreads * kPerThread), 1, 1}, .threads = kThreads},
         params);
}

/// Halves the outermost dimension until all elements can be counted.
void launch_parts(Kernel kernel, StridedPlan plan, const PointwiseOperands& operands) {
  if (plan.numel < kMostElements) return launch_strided(kernel, plan, operands);
  const int last = plan.rank - 1;
  const int64_t whole = plan.sizes[last];
  const int64_t others = plan.numel / whole;
  plan.sizes[last] = whole / 2;
  plan.numel = others * plan.sizes[last];
  launch_parts(kernel, plan, operands);
  for (int o = 0; o < plan.operands; ++o) {
    plan.address[o] += plan.strides[o][last] * plan.sizes[last];
  }
  plan.sizes[last] = whole - plan.sizes[last];
  plan.numel = others * plan.sizes[last];
  launch_parts(kernel, plan, operands);
}

}  // namespace

std::string functor_name(std::string_view type) {
  std::string name;
  for (size_t i = 0; i < type.size();) {
    size_t end = i;
    while (end < type.size() && is_name(type[end])) ++end;
    const std::string_view word = type.substr(i, end - i);
    const bool names_space = type.substr(end, 2) == "::";
    const bool is_lane = word == "float" || word == "double" || word == "long" || word == "int" ||
                         word == "unsigned" || word == "char";
    if (!word.empty() && !names_space && !is_lane) {
      name += name.empty() ? "" : "_";
      name += word;
    }
    i = std::max(end, i + 1);
  }
  return name;
}

PointwiseKernel pointwise_kernel(const std::string& functor, std::span<const Lane> lanes) {
  PointwiseKernel kernel{};
  std::string name = "pointwise_" + functor + "_";
  kernel.has_dense = true;
  bool any_f32 = false;
  for (size_t i = 0; i < lanes.size(); ++i) {
    name += letter(lanes[i]);
    kernel.lanes[i] = lanes[i];
    any_f32 = any_f32 || lanes[i] == Lane::kF32;
    kernel.has_dense = kernel.has_dense && (lanes[i] == Lane::kF32 || lanes[i] == Lane::kByte);
  }
  kernel.strided = Kernel(pointwise_images(), name);
  kernel.has_dense = kernel.has_dense && any_f32;
  if (kernel.has_dense) {
    kernel.dense_f32 = Kernel(pointwise_images(), name + "_f32");
    kernel.dense_bf16 = Kernel(pointwise_images(), name + "_bf16");
  }
  return kernel;
}

void pointwise(const PointwiseKernel& kernel, const Out& out,
               std::span<const PointwiseInput> inputs, std::span<const unsigned char> functor) {
  if (out.numel == 0) return;
  std::array<const In*, PointwiseOperands::kMost - 1> tensors{};
  std::ranges::transform(inputs, tensors.begin(), &PointwiseInput::tensor);
  StridedPlan plan;
  make_plan(plan, out, std::span(tensors.data(), inputs.size()));
  const PointwiseOperands operands = operands_of(plan, out, inputs, functor);
  if (const Kernel dense = dense_kernel(kernel, plan, operands); dense.number() != 0) {
    launch_dense(dense, plan, operands);
  } else {
    launch_parts(kernel.strided, plan, operands);
  }
}

}  // namespace lockstep::cuda

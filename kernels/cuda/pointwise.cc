#include "kernels/cuda/pointwise.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/base/check.h"
#include "kernels/common/strided_plan.h"
#include "kernels/cuda/kept_loop.h"
#include "kernels/cuda/pointwise_images.h"
#include "kernels/cuda/pointwise_mixed.h"
#include "kernels/cuda/pointwise_params.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostElements = int64_t{1} << 31;  ///< kernels count elements in 32 bits

/// Letter of a lane in kernel names.
char letter(ComputeLane lane) {
  switch (lane) {
    case ComputeLane::kF32:
      return 'f';
    case ComputeLane::kF64:
      return 'd';
    case ComputeLane::kI64:
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

/// Returns the dtype that all operands in a floating lane share, not counting single elements.
/// Returns nothing if their dtypes differ, or if an operand in a byte lane is not stored as bytes.
std::optional<DType> dense_dtype(const PointwiseKernel& kernel, const PointwiseOperands& operands,
                                 const bool* is_single, int count) {
  std::optional<DType> element;
  for (int o = 0; o < count; ++o) {
    const DType dtype = operands.dtype[o];
    if (is_single[o]) continue;  // each thread converts it once
    if (kernel.lanes[static_cast<size_t>(o)] == ComputeLane::kByte) {
      if (!is_stored_as(dtype, ComputeLane::kByte)) return std::nullopt;
    } else if (element.value_or(dtype) != dtype) {
      return std::nullopt;
    } else {
      element = dtype;
    }
  }
  return element;
}

/// Returns true if operand `o` can be read along dimension 0 in packs of `bytes`, a power of two:
/// its elements are contiguous there, and every row begins at a multiple of `bytes`.
bool lies_in_packs(const StridedPlan& plan, int o, int64_t element, int64_t bytes) {
  if (plan.strides[o][0] != element) return false;
  auto bits = static_cast<int64_t>(reinterpret_cast<uintptr_t>(plan.address[o]));
  for (int d = 1; d < plan.rank; ++d) bits |= plan.strides[o][d];
  return (bits & (bytes - 1)) == 0;
}

/// Fills in which operands have one element for all, and which have one for each row.
void describe_operands(const StridedPlan& plan, DensePointwise& params) {
  params.numel = plan.numel;
  for (int o = 0; o < plan.operands; ++o) {
    int64_t bits = o == 0 ? 1 : 0;
    for (int d = 0; d < plan.rank; ++d) bits |= plan.strides[o][d];
    params.is_single[o] = bits == 0;
    params.repeats[o] = plan.strides[o][0] == 0;
  }
}

/// Fills `params` for a dense kernel and returns that kernel, or no kernel if the dense kernels do
/// not support the plan. Sets `per_block` to the elements that a block computes at a time.
Kernel plan_dense(const PointwiseKernel& kernel, const StridedPlan& plan, DensePointwise& params,
                  int64_t& per_block) {
  if (!kernel.has_dense) return {};
  const PointwiseOperands& operands = params.operands;
  describe_operands(plan, params);
  const std::optional<DType> dtype = dense_dtype(kernel, operands, params.is_single, plan.operands);
  const Kernel chosen = dtype == DType::kF32    ? kernel.dense_f32
                        : dtype == DType::kBF16 ? kernel.dense_bf16
                        : dtype == DType::kF16  ? kernel.dense_f16
                                                : Kernel();
  if (chosen.number() == 0) return {};
  const int64_t count = *dtype == DType::kF32 ? 4 : 8;  // elements in a pack of 16 bytes
  for (int o = 0; o < plan.operands; ++o) {
    const auto element = static_cast<int64_t>(size_of(operands.dtype[o]));
    const bool packs = !params.is_single[o] && !params.repeats[o];
    if (packs && !lies_in_packs(plan, o, element, element * count)) return {};
  }
  if (params.repeats[0]) return {};
  per_block = kThreads * dense_elements_of_thread(*dtype);
  params.rank = plan.rank - 1;
  if (params.rank == 0) return chosen;
  const bool in_packs = plan.sizes[0] % count == 0 && plan.numel / count < kMostElements;
  if (params.rank > DensePointwise::kMaxRank || !in_packs) return {};
  params.row = Divider(static_cast<uint32_t>(plan.sizes[0] / count));
  for (int d = 0; d < params.rank; ++d) {
    params.sizes[d] = Divider(static_cast<uint32_t>(plan.sizes[d + 1]));
    for (int o = 0; o < plan.operands; ++o) params.strides[o][d] = plan.strides[o][d + 1];
  }
  return chosen;
}

/// As `plan_dense`, for operands of f32, bf16 and f16 together.
Kernel plan_mixed(const PointwiseKernel& kernel, const StridedPlan& plan, DensePointwise& params,
                  int64_t& per_block) {
  if (kernel.mixed.number() == 0 || plan.rank > 1) return {};
  describe_operands(plan, params);
  params.rank = 0;
  for (int o = 0; o < plan.operands; ++o) {
    if (params.is_single[o]) continue;
    const DType dtype = params.operands.dtype[o];
    const auto element = static_cast<int64_t>(size_of(dtype));
    const bool floats = dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
    if (!floats || !lies_in_packs(plan, o, element, kMixedPack * element)) return {};
  }
  per_block = kThreads * kMixedPack * kMixedPacks;
  return kernel.mixed;
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

/// Launches the strided kernel, several times if needed: the outermost dimension is halved until a
/// kernel can count the elements of each part.
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

/// Whether a functor has a kernel for operands of several dtypes: those by which a residual stream
/// meets tensors of a lower precision (LS_POINTWISE_MIXED).
bool has_mixed(std::string_view functor) {
  return functor == "Add" || functor == "Subtract" || functor == "Multiply";
}

}  // namespace

PointwiseKernel pointwise_kernel(std::string_view functor, std::span<const ComputeLane> lanes,
                                 std::string_view type) {
  PointwiseKernel kernel{};
  kernel.functor = type;
  std::string name = std::string("pointwise_").append(functor).append("_");
  kernel.has_dense = true;
  bool any_f32 = false;
  for (size_t i = 0; i < lanes.size(); ++i) {
    name += letter(lanes[i]);
    kernel.lanes[i] = lanes[i];
    any_f32 = any_f32 || lanes[i] == ComputeLane::kF32;
    kernel.has_dense =
        kernel.has_dense && (lanes[i] == ComputeLane::kF32 || lanes[i] == ComputeLane::kByte);
  }
  kernel.strided = Kernel(pointwise_images(), name);
  kernel.has_dense = kernel.has_dense && any_f32;
  if (kernel.has_dense) {
    kernel.dense_f32 = Kernel(pointwise_images(), name + "_f32");
    kernel.dense_bf16 = Kernel(pointwise_images(), name + "_bf16");
    kernel.dense_f16 = Kernel(pointwise_images(), name + "_f16");
  }
  if (has_mixed(functor) && name.ends_with("_fff")) {
    kernel.mixed = Kernel(pointwise_images(), name + "_mixed");
  }
  return kernel;
}

void pointwise(const PointwiseKernel& kernel, const Out& out,
               std::span<const PointwiseInput> inputs, std::span<const unsigned char> functor) {
  if (LoopCapture* const capture = LoopCapture::active()) [[unlikely]] {
    return capture_loop(*capture, kernel, out, inputs, functor);
  }
  if (out.numel == 0) return;
  std::array<const In*, PointwiseOperands::kMost - 1> tensors{};
  std::ranges::transform(inputs, tensors.begin(), &PointwiseInput::tensor);
  StridedPlan plan;
  make_plan(plan, out, std::span(tensors.data(), inputs.size()));
  DensePointwise params;
  params.operands = operands_of(plan, out, inputs, functor);
  int64_t per_block = 0;
  Kernel dense = plan_dense(kernel, plan, params, per_block);
  if (dense.number() == 0) dense = plan_mixed(kernel, plan, params, per_block);
  if (dense.number() != 0) {
    launch(dense, {.blocks = {blocks_for(plan.numel, per_block), 1, 1}, .threads = kThreads},
           params);
  } else {
    launch_parts(kernel.strided, plan, params.operands);
  }
}

}  // namespace lockstep::cuda

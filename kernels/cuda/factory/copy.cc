#include "kernels/cuda/factory/copy.h"

#include <cmath>

#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "kernels/common/functors.h"
#include "kernels/common/strided_plan.h"
#include "kernels/cuda/factory/copy_tiles.h"
#include "kernels/cuda/factory/copy_units.h"
#include "kernels/cuda/factory/fill.h"
#include "kernels/cuda/kept_loop.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/pointwise.h"

// Each header defines a kImage, so each is included in a namespace of its own.
namespace lockstep::cuda::units {
#include "kernels/cuda/factory/copy_units.fatbin.h"
}
namespace lockstep::cuda::tiles {
#include "kernels/cuda/factory/copy_tiles.fatbin.h"
}

namespace lockstep::cuda {

namespace {

using namespace functors;

constexpr unsigned kThreads = 256;

const UnitKernels kUnits(units::kImage, "copy_units", 16);
const UnitKernels kTiles(tiles::kImage, "copy_tiles", 16);
const UnitKernels kWideTiles(tiles::kImage, "copy_tiles_wide", 4);
const Kernel kF32ToBF16(units::kImage, "copy_f32_to_bf16");
const Kernel kF32ToF16(units::kImage, "copy_f32_to_f16");
const Kernel kBF16ToF32(units::kImage, "copy_bf16_to_f32");
const Kernel kF16ToF32(units::kImage, "copy_f16_to_f32");

/// True if the rows of a plan can be copied in units of `unit` bytes.
bool moves_in(const StridedPlan& plan, int64_t element, int64_t unit) {
  if (plan.sizes[0] * element % unit != 0) return false;
  for (int o = 0; o < 2; ++o) {
    if (plan.strides[o][0] != element) return false;
    if (reinterpret_cast<uintptr_t>(plan.address[o]) % static_cast<size_t>(unit) != 0) return false;
    for (int d = 1; d < plan.rank; ++d) {
      if (plan.strides[o][d] % unit != 0) return false;
    }
  }
  return true;
}

/// Drops the innermost dimension of a plan with more than one; else does nothing.
void drop_innermost(StridedPlan& plan) {
  if (plan.rank == 1) return;
  --plan.rank;
  for (int d = 0; d < plan.rank; ++d) {
    plan.sizes[d] = plan.sizes[d + 1];
    for (int o = 0; o < plan.operands; ++o) plan.strides[o][d] = plan.strides[o][d + 1];
  }
}

/// Copies without conversion; elements that are adjacent in both tensors move in larger units.
void move_elements(const Out& out, const In& src) {
  const In* const inputs[] = {&src};
  StridedPlan plan;
  make_plan(plan, out, inputs);
  const int64_t element = static_cast<int64_t>(size_of(out.dtype));
  int64_t unit = 16;
  while (unit > element && !moves_in(plan, element, unit)) unit /= 2;
  if (unit > element) {
    plan.sizes[0] = plan.sizes[0] * element / unit;
    plan.strides[0][0] = plan.strides[1][0] = unit;
  }
  if (plan.sizes[0] == 1) drop_innermost(plan);
  if (const std::optional<CopyTiles> tiles = plan_tiles(plan, unit)) {
    launch((tiles->width > 1 ? kWideTiles : kTiles)[static_cast<size_t>(unit)],
           {.blocks = {blocks_for(tiles->tiles, 1), 1, 1}, .threads = kThreads}, *tiles);
    return;
  }
  CopyUnits copy{.from = plan.address[1],
                 .to = plan.address[0],
                 .count = plan.numel * element / unit,
                 .walk = {}};
  LS_CHECK(plan.rank <= Walk<2>::kMaxRank, ShapeError,
           "[copy] too many dimensions that are not neighbours in memory: expected at most {} on "
           "cuda, got {}. Reshape the tensors to fewer.",
           Walk<2>::kMaxRank, plan.rank);
  copy.walk.rank = plan.rank;
  for (int d = 0; d < plan.rank; ++d) {
    copy.walk.sizes[d] = AnyDivider(plan.sizes[d], copy.count);
    for (int o = 0; o < 2; ++o) copy.walk.strides[o][d] = plan.strides[o][d];
  }
  launch(kUnits[static_cast<size_t>(unit)],
         {.blocks = {blocks_for(copy.count, kThreads * 4), 1, 1}, .threads = kThreads}, copy);
}

/// Returns the kernel for one of the conversions that autocast makes, or an empty one.
Kernel conversion(DType from, DType to) {
  if (from == DType::kF32 && to == DType::kBF16) return kF32ToBF16;
  if (from == DType::kF32 && to == DType::kF16) return kF32ToF16;
  if (from == DType::kBF16 && to == DType::kF32) return kBF16ToF32;
  if (from == DType::kF16 && to == DType::kF32) return kF16ToF32;
  return {};
}

/// Converts elements that are contiguous and in the same order in both tensors. Returns false if
/// they are not, or if there is no kernel for the two dtypes.
bool convert_dense(const Out& out, const In& src) {
  const Kernel kernel = conversion(src.dtype, out.dtype);
  if (kernel.number() == 0) return false;
  const In* const inputs[] = {&src};
  StridedPlan plan;
  make_plan(plan, out, inputs);
  constexpr int64_t kWidth = 4;
  const auto is_dense = [&](int operand, DType dtype) {
    const size_t element = size_of(dtype);
    return plan.strides[operand][0] == static_cast<int64_t>(element) &&
           reinterpret_cast<uintptr_t>(plan.address[operand]) % (element * kWidth) == 0;
  };
  if (plan.rank != 1 || !is_dense(0, out.dtype) || !is_dense(1, src.dtype)) return false;
  launch(kernel,
         {.blocks = {blocks_for(plan.numel, kThreads * kWidth * 2), 1, 1}, .threads = kThreads},
         ConvertElements{src.address, out.address, plan.numel});
  return true;
}

}  // namespace

void copy_elements(const Out& out, const In& src) {
  if (LoopCapture* const capture = LoopCapture::active()) [[unlikely]] {
    return capture_cast(*capture, out, src);
  }
  if (out.numel == 0 || (out.address == src.address && out.dtype == src.dtype)) return;
  if (out.dtype == src.dtype && out.contiguous && src.contiguous && out.numel == src.numel) {
    const Stream stream = kernel_stream();
    require_runtime(stream.device)
        .copy(stream, out.address, src.address, static_cast<size_t>(out.numel) * size_of(out.dtype),
              Transfer::kWithin);
  } else if (out.dtype == src.dtype) {
    move_elements(out, src);
  } else if (!convert_dense(out, src)) {
    with_lane(src.dtype, [&]<class T>() { elementwise<T, T>(out, Identity(), src); });
  }
}

void fill_elements(const Out& out, const Scalar& value) {
  const double number = value.to_double();
  if (out.contiguous && number == 0 && !std::signbit(number)) {
    zero_bytes(out.address, out.numel * static_cast<int64_t>(size_of(out.dtype)));
  } else if (value.is_floating()) {
    elementwise<double>(out, Constant<double>{value.to_double()});
  } else {
    elementwise<int64_t>(out, Constant<int64_t>{value.to_int()});
  }
}

}  // namespace lockstep::cuda

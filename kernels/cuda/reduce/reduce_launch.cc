#include "kernels/cuda/reduce/reduce_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "kernels/cuda/kept_rows.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_steps.h"
#include "kernels/cuda/step_text.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

/// Elements of a row that are never split into parts.
constexpr int64_t kLongestFold = 8192;

/// Converts `axes`, which have the outermost first.
WalkAxes walk_of(const Axes& axes) {
  WalkAxes walk{};
  LS_CHECK(axes.size() <= WalkAxes::kMaxRank, ShapeError,
           "[reduce] too many dimensions that are not neighbours in memory: expected at most {} on "
           "cuda, got {}. Call contiguous() first.",
           WalkAxes::kMaxRank, axes.size());
  walk.rank = static_cast<int32_t>(axes.size());
  int64_t numel = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[axes.size() - 1 - i];
    walk.sizes[i] = axis.size;
    walk.strides[i] = axis.stride;
    numel *= axis.size;
  }
  walk.narrow = numel > 0 && numel < (int64_t{1} << 31);
  for (int i = 0; walk.narrow && i < walk.rank; ++i) {
    walk.dividers[i] = Divider(static_cast<uint32_t>(walk.sizes[i]));
  }
  return walk;
}

ReductionResult result_of(const Out& out) {
  Axes axes;
  if (out.contiguous) {
    axes.push_back({out.numel, 1});
  } else {
    for (int i = 0; i < out.rank; ++i) {
      if (out.size(i) != 1) axes.push_back({out.size(i), out.stride(i)});
    }
  }
  return {out.address, out.dtype, walk_of(axes)};
}

bool has_columns(const ReducePlan& plan) {
  const Axis& inner = plan.reduced.back();
  return !plan.kept.empty() && plan.kept.back().stride == 1 && plan.kept.back().size >= 8 &&
         (inner.stride != 1 || inner.size == 1);
}

/// True if every run of `pack` adjacent columns is aligned to 16 bytes.
bool packs(const In& self, const ReducePlan& plan, int64_t pack) {
  const auto in_packs = [pack](const Axes& axes) {
    return std::ranges::all_of(axes, [pack](const Axis& axis) { return axis.stride % pack == 0; });
  };
  Axes outer = plan.kept;
  outer.pop_back();
  return pack > 1 && reinterpret_cast<uintptr_t>(self.address) % 16 == 0 &&
         plan.kept.back().size % pack == 0 && in_packs(outer) && in_packs(plan.reduced);
}

void set_parts(Reduction& params, int64_t chunk) {
  params.chunk = chunk;
  params.chunks = std::max<int64_t>(1, (params.count + chunk - 1) / chunk);
}

}  // namespace

ReductionKernels::ReductionKernels(const void* image, const std::string& name, size_t bytes,
                                   int64_t columns, std::string fold_name)
    : parts(image, name + "_parts"), state_bytes(bytes), pack(columns), fold(std::move(fold_name)) {
  for (int i = 0; i < kReduceStrategies; ++i) {
    strategies[static_cast<size_t>(i)] =
        Kernel(image, name + "_" + cuda::name(static_cast<ReduceStrategy>(i)));
  }
  if (pack > 1) packed_columns = Kernel(image, name + "_columns_packed");
}

ReductionFamily::ReductionFamily(const void* image, const std::string& name,
                                 const std::string& join, bool packs) {
  kernels_.fill(ReductionKernels(image, name + "_int", sizeof(int64_t), 1,
                                 "SimpleFold<lockstep::" + join + "<int64_t>>, AnyDType"));
  for (const DType dtype : kFloatingDTypes) {
    const bool wide = dtype == DType::kF64;
    kernels_[static_cast<size_t>(dtype)] =
        ReductionKernels(image, name + "_" + std::string(dtype_suffix(dtype)), wide ? 8 : 4,
                         packs && !wide ? 16 / static_cast<int64_t>(size_of(dtype)) : 1,
                         fmt::format("SimpleFold<lockstep::{}<{}>>, {}", join,
                                     wide ? "double" : "float", stored_type(dtype)));
  }
}

void reduce(const ReductionKernels& kernels, const In& self, const ReducePlan& plan, const Out& out,
            const Out* second, const FoldOptions& options) {
  if (plan.outputs == 0) return;
  Reduction params{};
  params.in = self.address;
  params.dtype = self.dtype;
  params.outputs = plan.outputs;
  params.count = plan.count;
  params.result = result_of(out);
  if (second != nullptr) params.second = result_of(*second);
  params.number = options.number;
  params.variant = options.variant;
  params.reduced = walk_of(plan.reduced);
  params.chunks = 1;
  const bool columns = has_columns(plan);
  const ReduceStrategy strategy = reduce_strategy(plan.outputs, plan.count, columns);
  if (RowCapture* const capture = RowCapture::active(); capture != nullptr) [[unlikely]] {
    const bool is_along_rows =
        plan.reduced.size() == 1 && plan.reduced[0].stride == 1 &&
        (strategy == ReduceStrategy::kWarp || strategy == ReduceStrategy::kBlock) &&
        plan.count <= kLongestFold;
    if (is_along_rows && !kernels.fold.empty() && second == nullptr) {
      const bool of_blocks = strategy == ReduceStrategy::kBlock;
      return capture_rows(
          *capture,
          fmt::format("fold_step<{}, {}>", kernels.fold, of_blocks ? "BlockRows" : "WarpRows"),
          of_blocks, "FoldStep", FoldStep{options.number, self.dtype, out.dtype}, {out.address},
          {self.address});
    }
  }
  Kernel kernel = kernels.strategies[static_cast<size_t>(strategy)];
  Axes kept = plan.kept;
  int64_t tasks = plan.outputs;
  int64_t per_block = 1;
  switch (strategy) {
    case ReduceStrategy::kThread:
      per_block = kReduceThreads;
      break;
    case ReduceStrategy::kWarp:
      per_block = kReduceThreads / 32;
      break;
    case ReduceStrategy::kBlock:
      set_parts(params, reduce_chunk(plan.outputs, plan.count, kLongestFold));
      tasks = plan.outputs * params.chunks;
      break;
    case ReduceStrategy::kColumns: {
      const int64_t pack = packs(self, plan, kernels.pack) ? kernels.pack : 1;
      if (pack > 1) kernel = kernels.packed_columns;
      params.width = kept.back().size;
      kept.pop_back();
      const int64_t tiles =
          plan.outputs / params.width * ((params.width + 32 * pack - 1) / (32 * pack));
      set_parts(params, reduce_chunk(tiles, plan.count, 64));
      tasks = tiles * params.chunks;
      break;
    }
  }
  params.kept = walk_of(kept);
  std::optional<Workspace> states;
  if (params.chunks > 1) {
    states.emplace(static_cast<size_t>(plan.outputs * params.chunks) * kernels.state_bytes);
    params.states = states->data();
  }
  launch(kernel, {.blocks = {blocks_for(tasks, per_block), 1, 1}, .threads = kReduceThreads},
         params);
  if (params.chunks == 1) return;
  launch(
      kernels.parts,
      {.blocks = {blocks_for(plan.outputs, kReduceThreads / 32), 1, 1}, .threads = kReduceThreads},
      params);
}

}  // namespace lockstep::cuda

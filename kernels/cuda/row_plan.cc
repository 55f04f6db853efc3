#include "kernels/cuda/row_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/device/kernel_scope.h"
#include "kernels/cuda/kept_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/loop_elements.h"
#include "kernels/cuda/loop_params.h"
#include "kernels/cuda/loop_source.h"
#include "kernels/cuda/row_layout.h"
#include "kernels/cuda/row_source.h"
#include "kernels/cuda/row_steps.h"

namespace lockstep::cuda {

namespace {

using Place = RowProgram::Place;

/// Shared memory of a block that rows and numbers may take; each GPU has it without being asked,
/// and steps have some of their own.
constexpr int64_t kSharedBytes = 46 * 1024;

/// Whether each step computes a row, as all others do, with a warp or with a block.
bool agree(const RowProgram& program) {
  bool has_blocks = false, has_warps = false;
  for (const RowProgram::Step& step : program.steps) {
    if (step.row) (rows_of(step).is_of_blocks ? has_blocks : has_warps) = true;
  }
  return has_blocks != has_warps;
}

/// Whether the rows of all tensors begin at the units that kernels take them to begin at.
bool are_aligned(const RowProgram& program, std::span<void* const> memory) {
  for (size_t slot = 0; slot < memory.size(); ++slot) {
    const Place place = program.slots[slot].place;
    if (place != Place::kRow && place != Place::kShared) continue;
    if (reinterpret_cast<uintptr_t>(memory[slot]) % kRowUnit != 0) return false;
  }
  return true;
}

/// As many rows at a time in a block as it has warps, and shared memory.
LaunchShape shape_of(const RowProgram& program, const RowLayout& layout) {
  const int64_t bytes = layout.bytes(program);
  const int64_t fitting = kSharedBytes / std::max<int64_t>(1, bytes);
  const int64_t at_once =
      layout.is_of_blocks ? 1 : std::clamp<int64_t>(fitting, 1, kRowThreads / 32);
  return {.blocks = {blocks_for(program.rows, at_once), 1, 1},
          .threads = static_cast<unsigned>(layout.is_of_blocks ? kRowThreads : at_once * 32),
          .shared_bytes = static_cast<unsigned>(at_once * bytes)};
}

class CudaRowPlan final : public RowPlan {
 public:
  CudaRowPlan(RowProgram program, RowLayout layout)
      : program_(std::move(program)),
        layout_(std::move(layout)),
        shape_(shape_of(program_, layout_)),
        params_(RowParamsShape(program_).bytes()) {
    put(program_.rows);
    put(program_.length);
    put(RowLayout::row_bytes(program_));
    put(int64_t{program_.length % kLoopPack == 0 ? 1 : 0});
    end_ += RowParamsShape(program_).addresses * sizeof(char*);
    for (const RowLayout::Level& level : layout_.levels) {
      for (const size_t i : level.elements) put_loop(program_.steps[i]);
      for (const size_t i : level.numbers) put_loop(program_.steps[i]);
      for (const size_t i : level.rows) {
        const KeptRows& rows = rows_of(program_.steps[i]);
        put_bytes(rows.bytes.data(), rows.count);
      }
    }
  }

  LoopSource source() const override {
    return {row_source(program_, layout_), loop_compiler().flags()};
  }

  bool run(std::span<void* const> memory, LoopKernel kernel) const override {
    if (!are_aligned(program_, memory)) return false;
    std::vector<std::byte> params = params_;
    std::byte* next = params.data() + RowParamsShape::kAt;
    for (size_t slot = 0; slot < memory.size(); ++slot) {
      if (!has_memory(program_.slots[slot])) continue;
      std::memcpy(next, &memory[slot], sizeof(char*));
      next += sizeof(char*);
    }
    launch(kernel_stream(), kernel, "lockstep_row_kernel", shape_, params);
    return true;
  }

 private:
  void put_loop(const RowProgram::Step& step) {
    const auto& loop = loop_of(step);
    put_bytes(loop.functor.data(), loop.functor_bytes);
    for (size_t i = 0; i < loop.count; ++i) {
      if (loop.operands[i].is_number) put(loop.operands[i].number);
    }
  }
  template <class T>
  void put(const T& value) {
    put_bytes(&value, sizeof(T));
  }
  void put_bytes(const void* from, size_t bytes) {
    if (bytes != 0) std::memcpy(params_.data() + end_, from, bytes);
    end_ += in_words(bytes);
  }

  RowProgram program_;
  RowLayout layout_;
  LaunchShape shape_;
  std::vector<std::byte> params_;  ///< of the kernel, without addresses
  size_t end_ = 0;
};

}  // namespace

std::unique_ptr<const RowPlan> plan_rows(RowProgram program) {
  if (!agree(program) || RowParamsShape(program).bytes() > RowParamsShape::kMost) return nullptr;
  RowLayout layout(program);
  if (layout.bytes(program) > kSharedBytes) return nullptr;
  return std::make_unique<CudaRowPlan>(std::move(program), std::move(layout));
}

}  // namespace lockstep::cuda

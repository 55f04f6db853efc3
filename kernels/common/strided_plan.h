#pragma once

#include <span>

#include "core/tensor/kernel_arguments.h"

namespace lockstep {

/// A loop nest over the elements of `out` and of the inputs broadcast to its shape. Dimensions of
/// size 1 are dropped, the others are sorted by the output's strides, and neighbours that every
/// operand walks with one stride are merged. Operand 0 is the output.
struct StridedPlan {
  static constexpr int kMaxRank = 64;
  static constexpr int kMaxOperands = 4;

  int rank = 0;  ///< at least 1
  int operands = 0;
  int64_t numel = 0;
  char* address[kMaxOperands];
  int64_t sizes[kMaxRank];                  ///< [0] is the innermost
  int64_t strides[kMaxOperands][kMaxRank];  ///< in bytes

  int64_t inner() const { return sizes[0]; }
  int64_t rows() const { return numel / sizes[0]; }
};

/// Fills in the plan. The inputs must broadcast to out's shape, as checked by the shape rules.
void make_plan(StridedPlan& plan, const Out& out, std::span<const In* const> inputs);

/// Makes the longest dimension the innermost one.
void lengthen_rows(StridedPlan& plan);

/// Iterates over the rows of a plan in order and gives each operand's start address.
class RowWalker {
 public:
  RowWalker(const StridedPlan& plan, int64_t row);
  char* address(int operand) const { return address_[operand]; }
  char* const* addresses() const { return address_; }
  void next();

 private:
  const StridedPlan& plan_;
  char* address_[StridedPlan::kMaxOperands];
  int64_t index_[StridedPlan::kMaxRank];
};

}  // namespace lockstep

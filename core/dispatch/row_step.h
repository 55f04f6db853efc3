#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/dispatch/element_loop.h"
#include "core/tensor/dtype.h"

namespace lockstep {

/// A kernel along the last dimension without the tensors of a call: computes a row of each result
/// from the same row of each operand. Only the backend that made it knows what it holds.
class RowStep {
 public:
  virtual ~RowStep() = default;

 protected:
  RowStep() = default;
  RowStep(const RowStep&) = default;
  RowStep& operator=(const RowStep&) = default;
};

/// While alive, kernels along rows that this thread calls give themselves away instead of running:
/// what they would write is left as it was. Those that cannot run apart run. Not nested.
class RowCapture {
 public:
  /// A kernel with the addresses of the tensors that it was called for; null where it takes a
  /// tensor and got none.
  struct Taken {
    std::shared_ptr<const RowStep> step;
    std::vector<const void*> results;
    std::vector<const void*> operands;
  };

  RowCapture();
  ~RowCapture();
  RowCapture(const RowCapture&) = delete;
  RowCapture& operator=(const RowCapture&) = delete;

  /// The capture of this thread, or null. For kernels.
  static RowCapture* active() noexcept;
  /// For kernels: instead of running.
  void take(Taken taken);

  /// The kernel, if there was just one.
  std::optional<Taken> taken() const;

 private:
  std::optional<Taken> taken_;
  int calls_ = 0;
};

/// Operators on `rows` rows of `length` elements, in an order in which they can run: what a row of
/// a result is depends on the same row of the operands alone.
struct RowProgram {
  enum class Place : uint8_t {
    kRow,     ///< a row of `length` elements for each row
    kNumber,  ///< one element for each row
    kShared,  ///< one row, which every row reads
    kOne,     ///< one element, which every row reads
  };
  enum class Use : uint8_t {
    kOperand,
    kScratch,  ///< computed and read by steps alone
    kResult,   ///< computed by a step
  };
  struct Slot {
    Place place = Place::kRow;
    Use use = Use::kScratch;
    DType dtype = DType::kF32;
  };
  /// Has one of both.
  struct Step {
    std::shared_ptr<const ElementLoop> loop;  ///< on the elements of its result
    std::shared_ptr<const RowStep> row;
    std::vector<int32_t> results;   ///< slots
    std::vector<int32_t> operands;  ///< slots; -1 for a tensor that is not given
  };

  int64_t rows = 0;
  int64_t length = 0;
  std::vector<Slot> slots;
  std::vector<Step> steps;

  /// Whether the step computes an element for each row, from others of the row.
  bool is_of_numbers(const Step& step) const {
    return step.loop && slots[static_cast<size_t>(step.results[0])].place == Place::kNumber;
  }
};

/// A program as one kernel (LoopBackend::plan_rows). Callers are in a KernelScope of the device.
class RowPlan {
 public:
  virtual ~RowPlan() = default;

  /// The source of the kernel, `extern "C" lockstep_row_kernel`, which serves other programs with
  /// the same functors and slots, too.
  virtual LoopSource source() const = 0;
  /// Runs the program with a kernel of its source. `memory` has the address of each slot, null for
  /// kScratch; results share no memory with anything else. Returns false, having done nothing, if
  /// the tensors do not lie as the kernel needs them.
  virtual bool run(std::span<void* const> memory, LoopKernel kernel) const = 0;

 protected:
  RowPlan() = default;
  RowPlan(const RowPlan&) = default;
  RowPlan& operator=(const RowPlan&) = default;
};

}  // namespace lockstep

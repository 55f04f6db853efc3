// Runs LoopPrograms of calls that were captured (kept_loop.h).

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "core/cuda/launch.h"
#include "core/device/active_capture.h"
#include "core/device/device_runtime.h"
#include "core/device/kernel_scope.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/index/grouping.h"
#include "kernels/cuda/index/indexed_tensor.h"
#include "kernels/cuda/loop_elements.h"
#include "kernels/cuda/loop_params.h"
#include "kernels/cuda/loop_source.h"
#include "kernels/cuda/random/random_words.h"
#include "kernels/cuda/row_plan.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

using Place = LoopProgram::Place;

constexpr unsigned kLoopThreads = 256;
constexpr int64_t kMostLoopElements = int64_t{1} << 31;  ///< kernels count them in 32 bits
constexpr size_t kWidest = 8;                            ///< bytes of an element

/// Sizes and strides of a step's operands and result, in which rows repeat and columns stand still.
class StepShape {
 public:
  StepShape(const LoopProgram& program, const LoopProgram::Step& step, int64_t count) {
    std::vector<int64_t> periods;
    for (const int32_t operand : step.operands) {
      const LoopProgram::Slot& slot = program.slots[static_cast<size_t>(operand)];
      if (has_period(slot) && slot.place != Place::kGathered) periods.push_back(slot.period);
    }
    std::ranges::sort(periods);
    int64_t inner = 1;
    for (const int64_t period : periods) {
      if (period == inner) continue;
      sizes_.insert(sizes_.begin(), period / inner);
      inner = period;
    }
    sizes_.insert(sizes_.begin(), count / inner);
  }

  /// Strides through the slot's memory.
  std::vector<int64_t> strides(const LoopProgram::Slot& slot) const {
    std::vector<int64_t> strides(sizes_.size());
    int64_t inner = 1;  // elements of the result from one to the next
    for (size_t d = sizes_.size(); d-- > 0;) {
      const bool is_within = inner < slot.period;
      switch (slot.place) {
        case Place::kNumber:
          break;
        case Place::kRow:
          strides[d] = is_within ? inner : 0;
          break;
        case Place::kColumn:
          strides[d] = is_within ? 0 : inner / slot.period;
          break;
        case Place::kRows:
          strides[d] = is_within ? inner : inner / slot.period * slot.stride;
          break;
        default:
          strides[d] = inner;
      }
      inner *= sizes_[d];
    }
    return strides;
  }
  const std::vector<int64_t>& sizes() const { return sizes_; }

 private:
  std::vector<int64_t> sizes_;
};

/// Bytes that hold elements of any dtype.
size_t room_of(int64_t count) { return (static_cast<size_t>(count) * kWidest + 511) / 512 * 512; }

RandomTruths truths_of(const LoopProgram::Slot& slot, const RandomKey& key) {
  return {random_words(key), KeptWords(*slot.drawn)};
}

/// The numbers in a slot of kRowNumbers.
IndexList list_of(const LoopProgram& program, int32_t number, std::span<void* const> memory,
                  int64_t count) {
  const LoopProgram::Slot& slot = program.slots[static_cast<size_t>(number)];
  In numbers;
  numbers.address = memory[static_cast<size_t>(number)];
  numbers.dtype = slot.dtype;
  numbers.numel = count;
  return list_of_rows(slot.check.op, numbers, slot.check.count, slot.check.wraps);
}

/// Runs the steps one after the other, each on all elements, with the kernels of their operators.
class StepRun {
 public:
  StepRun(const LoopProgram& program, int64_t count, std::span<void* const> memory,
          std::span<const RandomKey> draws)
      : program_(program),
        count_(count),
        memory_(memory.begin(), memory.end()),
        room_(rooms_of(program) * room_of(count)) {
    const size_t bytes = room_of(count);
    char* next = room_.data<char>() + static_cast<size_t>(program.buffers) * bytes;
    size_t draw = 0;
    for (size_t i = 0; i < program.slots.size(); ++i) {
      const LoopProgram::Slot& slot = program.slots[i];
      if (is_filled(slot)) {
        memory_[i] = std::exchange(next, next + bytes);
      } else if (slot.place == Place::kScratch) {
        memory_[i] = room_.data<char>() + static_cast<size_t>(slot.buffer) * bytes;
      }
      if (slot.drawn) draw_truths(memory_[i], count, truths_of(slot, draws[draw++]));
      if (slot.place == Place::kGathered) gather(slot, memory[i], memory_[i]);
    }
  }

  void run(const LoopProgram::Step& step) const {
    const KeptLoop& loop = loop_of(step);
    const StepShape shape(program_, step, count_);
    Operand<Out> result;
    set(result, shape, step.result);
    std::array<Operand<In>, PointwiseOperands::kMost - 1> operands;
    size_t next = 0;
    for (size_t i = 0; i < loop.count; ++i) {
      if (loop.operands[i].is_number) {
        set_number(operands[i], loop.operands[i]);
      } else {
        set(operands[i], shape, step.operands[next++]);
      }
    }
    if (loop.kernel == nullptr) return copy_elements(result.tensor, operands[0].tensor);
    std::vector<PointwiseInput> inputs;
    for (size_t i = 0; i < loop.count; ++i) {
      inputs.emplace_back(operands[i].tensor);
      inputs.back().is_number = loop.operands[i].is_number;
    }
    pointwise(*loop.kernel, result.tensor, inputs,
              std::span(loop.functor.data(), loop.functor_bytes));
  }

 private:
  template <class Tensor>
  struct Operand {
    Tensor tensor;
    std::vector<int64_t> sizes, strides;
  };

  /// Whether the slot is computed before the steps, into memory of the run.
  static bool is_filled(const LoopProgram::Slot& slot) {
    return slot.place == Place::kGathered || (slot.drawn && slot.place == Place::kScratch);
  }
  static size_t rooms_of(const LoopProgram& program) {
    const auto filled = std::ranges::count_if(program.slots, &is_filled);
    return std::max<size_t>(1, static_cast<size_t>(program.buffers + filled));
  }

  void gather(const LoopProgram::Slot& slot, void* table, void* to) const {
    const int64_t rows = program_.slots[static_cast<size_t>(slot.rows)].check.count;
    Operand<Out> result{.tensor = {}, .sizes = {count_ / slot.period, slot.period}, .strides = {}};
    Operand<In> from{.tensor = {}, .sizes = {rows, slot.period}, .strides = {}};
    result.strides = from.strides = {slot.period, 1};
    fill(result, to, slot.dtype, count_);
    fill(from, table, slot.dtype, rows * slot.period);
    read_indexed(result.tensor, from.tensor, indexed_along(from.tensor, 0, result.sizes[0]),
                 list_of(program_, slot.rows, memory_, result.sizes[0]));
  }

  template <class Tensor>
  void set(Operand<Tensor>& operand, const StepShape& shape, int32_t number) const {
    const LoopProgram::Slot& slot = program_.slots[static_cast<size_t>(number)];
    operand.sizes = shape.sizes();
    operand.strides = shape.strides(slot);
    fill(operand, memory_[static_cast<size_t>(number)], slot.dtype, count_);
    operand.tensor.contiguous =
        is_filled(slot) || (!has_period(slot) && slot.place != Place::kNumber);
  }
  static void set_number(Operand<In>& operand, const KeptLoop::Operand& number) {
    fill(operand, const_cast<std::byte*>(number.number.data()), number.dtype, 1);
    operand.tensor.contiguous = true;
  }
  template <class Tensor>
  static void fill(Operand<Tensor>& operand, void* address, DType dtype, int64_t count) {
    Tensor& tensor = operand.tensor;
    tensor.address = address;
    tensor.dtype = dtype;
    tensor.numel = count;
    tensor.size_data = operand.sizes.data();
    tensor.stride_data = operand.strides.data();
    tensor.rank = static_cast<int32_t>(operand.sizes.size());
  }

  const LoopProgram& program_;
  int64_t count_;
  std::vector<void*> memory_;
  Workspace room_;
};

/// The bytes of LoopParams.
class LoopParamsBytes {
 public:
  LoopParamsBytes(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                  std::span<const RandomKey> draws)
      : size_(LoopParamsShape(program).bytes()) {
    put(static_cast<uint32_t>(count));
    put(static_cast<uint32_t>(are_packed(program, memory) ? 1 : 0));
    for (size_t i = 0; i < memory.size(); ++i) {
      if (has_memory(program.slots[i])) put(memory[i]);
    }
    for (const LoopProgram::Slot& slot : program.slots) {
      if (has_period(slot)) put(Divider(static_cast<uint32_t>(slot.period)));
    }
    end_ = in_words(end_);
    size_t draw = 0;
    for (size_t i = 0; i < memory.size(); ++i) {
      const LoopProgram::Slot& slot = program.slots[i];
      if (slot.place == Place::kRows) put(slot.stride);
      if (slot.drawn) put(truths_of(slot, draws[draw++]));
      if (slot.place == Place::kRowNumbers) {
        put(list_of(program, static_cast<int32_t>(i), memory, 0));
      }
      end_ = in_words(end_);
    }
    for (const LoopProgram::Step& step : program.steps) {
      const KeptLoop& loop = loop_of(step);
      put_bytes(loop.functor.data(), loop.functor_bytes);
      end_ = in_words(end_);
      for (size_t i = 0; i < loop.count; ++i) {
        if (loop.operands[i].is_number) put(loop.operands[i].number);
      }
    }
  }
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  static bool are_packed(const LoopProgram& program, std::span<void* const> memory) {
    for (size_t i = 0; i < memory.size(); ++i) {
      const LoopProgram::Slot& slot = program.slots[i];
      if (slot.place != Place::kArray && slot.place != Place::kResult) continue;
      if (reinterpret_cast<uintptr_t>(memory[i]) % (kLoopPack * size_of(slot.dtype)) != 0) {
        return false;
      }
    }
    return true;
  }
  template <class T>
  void put(const T& value) {
    put_bytes(&value, sizeof(T));
  }
  void put_bytes(const void* from, size_t bytes) {
    if (bytes != 0) std::memcpy(bytes_.data() + end_, from, bytes);
    end_ += bytes;
  }

  alignas(8) std::array<std::byte, LoopParamsShape::kMost> bytes_ = {};
  size_t size_;
  size_t end_ = 0;
};

void run_steps(const LoopProgram& program, int64_t count, std::span<void* const> memory,
               std::span<const RandomKey> draws) {
  const StepRun run(program, count, memory, draws);
  for (const LoopProgram::Step& step : program.steps) run.run(step);
}

void run_program(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                 std::span<const RandomKey> draws, LoopKernel kernel) {
  if (kernel == nullptr || count >= kMostLoopElements) {
    return run_steps(program, count, memory, draws);
  }
  const LoopParamsBytes params(program, count, memory, draws);
  const unsigned blocks = blocks_for(count, int64_t{kLoopThreads} * kLoopPack);
  launch(kernel_stream(), kernel, "lockstep_loop_kernel",
         {.blocks = {blocks, 1, 1}, .threads = kLoopThreads}, params.bytes());
}

/// A program's results on its first elements, in the cpu's memory.
std::vector<std::vector<std::byte>> results_of(const LoopProgram& program, int64_t count,
                                               std::span<void* const> memory,
                                               std::span<const RandomKey> draws,
                                               LoopKernel kernel) {
  const Stream stream = kernel_stream();
  DeviceRuntime& runtime = require_runtime(stream.device);
  const size_t room = room_of(count);
  const Workspace own(room * program.slots.size());
  std::vector<void*> places(memory.begin(), memory.end());
  for (size_t i = 0; i < places.size(); ++i) {
    if (program.slots[i].place == Place::kResult) places[i] = own.data<char>() + i * room;
  }
  run_program(program, count, places, draws, kernel);
  std::vector<std::vector<std::byte>> results;
  for (size_t i = 0; i < places.size(); ++i) {
    const LoopProgram::Slot& slot = program.slots[i];
    if (slot.place != Place::kResult) continue;
    results.emplace_back(static_cast<size_t>(count) * size_of(slot.dtype));
    runtime.copy(stream, results.back().data(), places[i], results.back().size(), Transfer::kToCpu);
  }
  runtime.synchronize(stream);
  return results;
}

/// One pass over memory takes less than several, so that time need not be compared.
KernelTrial try_kernel(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                       std::span<const RandomKey> draws, LoopKernel kernel) {
  if (active_capture() != nullptr) return KernelTrial::kNone;  // a capture cannot be waited for
  constexpr int64_t kTried = 16384;
  int64_t rows = 1;  // whole rows alone have the shape that steps have
  for (const LoopProgram::Slot& slot : program.slots) {
    if (has_period(slot)) rows = std::lcm(rows, slot.period);
  }
  const int64_t tried = std::min(count, std::max(rows, kTried / rows * rows));
  const auto loops = results_of(program, tried, memory, draws, nullptr);
  return loops == results_of(program, tried, memory, draws, kernel) ? KernelTrial::kFaster
                                                                    : KernelTrial::kOtherBits;
}

[[maybe_unused]] const bool kRegistered = [] {
  register_loop_backend(DeviceType::kCUDA, {.run = &run_program,
                                            .source = &loop_source,
                                            .try_kernel = &try_kernel,
                                            .compiler = &loop_compiler(),
                                            .checks_rows = true,
                                            .plan_rows = &plan_rows});
  return true;
}();

}  // namespace

}  // namespace lockstep::cuda

#include "kernels/cpu/captured_loop.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/base/parallel.h"
#include "kernels/cpu/streaming.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu {

namespace {

/// Elements of a block: a few of them in each dtype lie in a core's first cache, and a call of a
/// loop costs little beside it.
constexpr int64_t kBlock = 1024;
constexpr int64_t kWidest = 8;  // bytes of an element
constexpr size_t kOperands = 3;

struct Loop final : ElementLoop {
  struct Operand {
    DType dtype = DType::kF32;
    ComputeLane lane = ComputeLane::kF32;
    LoadFunction load = nullptr;  ///< null if the elements are stored in the lane
    /// One element of dtype, if it is a number of the call.
    std::array<std::byte, kWidest> number{};
    bool is_number = false;
  };

  InnerLoop loop = nullptr;  ///< null for a cast
  alignas(16) std::array<std::byte, kMostFunctorBytes> functor{};
  bool heavy = false;
  size_t count = 0;  ///< of operands
  std::array<Operand, kOperands> operands;
  ComputeLane lane = ComputeLane::kF32;  ///< of the result
  StoreFunction store = nullptr;         ///< null if the result is stored in the lane
};

void add_operand(Loop& loop, const In& in, ComputeLane lane) {
  Loop::Operand& operand = loop.operands[loop.count++];
  operand.dtype = in.dtype;
  operand.lane = lane;
  if (!is_stored_as(in.dtype, lane)) operand.load = load_function(lane, in.dtype);
}

void set_result(Loop& loop, const Out& out, ComputeLane lane) {
  loop.lane = lane;
  if (!is_stored_as(out.dtype, lane)) loop.store = store_function(out.dtype, lane);
}

int64_t bytes_of(DType dtype) { return static_cast<int64_t>(lockstep::size_of(dtype)); }

/// Runs a program on parts of its elements, each on one thread.
class ProgramRun {
 public:
  ProgramRun(const LoopProgram& program, int64_t count, std::span<void* const> memory)
      : program_(program), count_(count), memory_(memory) {
    int64_t bytes = 0;
    for (const LoopProgram::Slot& slot : program.slots) {
      const bool whole = slot.place == Place::kArray || slot.place == Place::kResult;
      if (whole) bytes += count * bytes_of(slot.dtype);
      if (repeats(slot)) row_bytes_ += room_of((kBlock + slot.period) * bytes_of(slot.dtype));
    }
    streamed_ = worth_streaming(bytes);
    for (const LoopProgram::Step& step : program.steps) {
      const Loop& loop = loop_of(step);
      heavy_ = heavy_ || loop.heavy;
      each_number(step, [&](size_t, const Loop::Operand&, const void*) { ++numbers_; });
    }
  }

  int64_t grain() const {
    const int64_t work = heavy_ ? 8192 : 32768;
    return std::max(kBlock, work / static_cast<int64_t>(program_.steps.size()));
  }

  void part(int64_t first, int64_t last) const {
    constexpr int64_t kRoom = kBlock * kWidest;
    const auto buffers = static_cast<int64_t>(program_.buffers);
    auto* const room = static_cast<std::byte*>(
        thread_workspace(WorkspaceUse::kLoopProgram)
            .room(static_cast<size_t>((buffers + numbers_ + 4) * kRoom + row_bytes_)));
    Rooms rooms{.at = std::vector<std::byte*>(program_.slots.size()),
                .buffers = room,
                .lanes = room + buffers * kRoom,
                .numbers = room + (buffers + 4) * kRoom,
                .rows = room + (buffers + 4 + numbers_) * kRoom};
    fill_numbers(rooms.numbers);
    fill_rows(rooms.rows);
    while (first < last) {
      const int64_t length = block_length(first, last);
      block(first, length, rooms);
      first += length;
    }
    if (streamed_) finish_streaming();
  }

 private:
  using Place = LoopProgram::Place;
  struct Rooms {
    std::vector<std::byte*> at;  ///< where each slot's block begins
    std::byte* buffers;
    std::byte* lanes;    ///< of an operand or result that is not stored in its lane
    std::byte* numbers;  ///< each as a block of equal elements, in the order of the steps
    std::byte* rows;     ///< each repeated, in the order of the slots
  };

  static const Loop& loop_of(const LoopProgram::Step& step) {
    return static_cast<const Loop&>(*step.loop);
  }
  static int64_t room_of(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Whether a row is so short that a block reads a repeated copy.
  static bool repeats(const LoopProgram::Slot& slot) {
    return slot.place == Place::kRow && slot.period <= kBlock;
  }
  const LoopProgram::Slot& slot(int32_t number) const {
    return program_.slots[static_cast<size_t>(number)];
  }
  void* memory(int32_t number) const { return memory_[static_cast<size_t>(number)]; }

  /// Calls visit(operand's place, operand, address) for operands of the step that are one number.
  template <class Visit>
  void each_number(const LoopProgram::Step& step, const Visit& visit) const {
    const Loop& loop = loop_of(step);
    size_t next = 0;
    for (size_t i = 0; i < loop.count; ++i) {
      const Loop::Operand& operand = loop.operands[i];
      if (operand.is_number) {
        visit(i, operand, operand.number.data());
      } else {
        const int32_t number = step.operands[next++];
        if (slot(number).place == Place::kNumber) visit(i, operand, memory(number));
      }
    }
  }

  void fill_numbers(std::byte* to) const {
    for (const LoopProgram::Step& step : program_.steps) {
      each_number(step, [&](size_t, const Loop::Operand& operand, const void* from) {
        load_function(operand.lane, operand.dtype)(kBlock, to, from, 0);
        to += kBlock * kWidest;
      });
    }
  }
  void fill_rows(std::byte* to) const {
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      const LoopProgram::Slot& slot = program_.slots[i];
      if (!repeats(slot)) continue;
      const int64_t bytes = bytes_of(slot.dtype), all = (kBlock + slot.period) * bytes;
      std::memcpy(to, memory_[i], static_cast<size_t>(slot.period * bytes));
      for (int64_t at = slot.period * bytes; at < all; ++at) to[at] = to[at - slot.period * bytes];
      to += room_of(all);
    }
  }

  /// A block ends where a long row does.
  int64_t block_length(int64_t first, int64_t last) const {
    int64_t length = std::min(kBlock, last - first);
    for (const LoopProgram::Slot& slot : program_.slots) {
      if (slot.place != Place::kRow || repeats(slot)) continue;
      length = std::min(length, slot.period - first % slot.period);
    }
    return length;
  }

  void block(int64_t first, int64_t length, Rooms& rooms) const {
    std::vector<std::byte*>& at = rooms.at;
    const std::byte* row = rooms.rows;
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      const LoopProgram::Slot& slot = program_.slots[i];
      const int64_t bytes = bytes_of(slot.dtype);
      auto* const base = static_cast<std::byte*>(memory_[i]);
      if (repeats(slot)) {
        at[i] = const_cast<std::byte*>(row) + first % slot.period * bytes;
        row += room_of((kBlock + slot.period) * bytes);
      } else if (slot.place == Place::kRow) {
        at[i] = base + first % slot.period * bytes;
      } else if (slot.place == Place::kArray) {
        at[i] = base + first * bytes;
        if (streamed_) {
          fetch_ahead(reinterpret_cast<const char*>(at[i]) + 2 * kBlock * bytes, kBlock * bytes);
        }
      } else if (slot.place == Place::kResult && !streamed_) {
        at[i] = base + first * bytes;
      } else if (slot.place != Place::kNumber) {
        at[i] = rooms.buffers + slot.buffer * kBlock * kWidest;
      }
    }
    const std::byte* number = rooms.numbers;
    for (const LoopProgram::Step& step : program_.steps) {
      compute(step, length, at, number, rooms.lanes);
      const LoopProgram::Slot& result = slot(step.result);
      if (!streamed_ || result.place != Place::kResult) continue;
      const int64_t bytes = bytes_of(result.dtype);
      stream(static_cast<std::byte*>(memory(step.result)) + first * bytes,
             at[static_cast<size_t>(step.result)], length * bytes);
    }
  }

  void compute(const LoopProgram::Step& step, int64_t length, const std::vector<std::byte*>& at,
               const std::byte*& number, std::byte* lanes) const {
    const Loop& loop = loop_of(step);
    std::array<const void*, kOperands> in{};
    size_t next = 0;
    for (size_t i = 0; i < loop.count; ++i) {
      const Loop::Operand& operand = loop.operands[i];
      const int32_t from = operand.is_number ? -1 : step.operands[next++];
      if (operand.is_number || slot(from).place == Place::kNumber) {
        in[i] = number;
        number += kBlock * kWidest;
        continue;
      }
      in[i] = at[static_cast<size_t>(from)];
      if (operand.load == nullptr) continue;
      void* const loaded = lanes + static_cast<int64_t>(i) * kBlock * kWidest;
      operand.load(length, loaded, in[i], bytes_of(operand.dtype));
      in[i] = loaded;
    }
    std::byte* const to = at[static_cast<size_t>(step.result)];
    const int64_t bytes = bytes_of(slot(step.result).dtype);
    if (loop.loop == nullptr) {
      if (loop.store != nullptr) return loop.store(length, to, bytes, in[0]);
      std::memcpy(to, in[0], static_cast<size_t>(length * bytes));
    } else if (loop.store == nullptr) {
      loop.loop(length, to, in.data(), loop.functor.data());
    } else {
      std::byte* const computed = lanes + 3 * kBlock * kWidest;
      loop.loop(length, computed, in.data(), loop.functor.data());
      loop.store(length, to, bytes, computed);
    }
  }

  const LoopProgram& program_;
  int64_t count_;
  std::span<void* const> memory_;
  bool streamed_ = false;
  bool heavy_ = false;
  int64_t numbers_ = 0;
  int64_t row_bytes_ = 0;
};

void run_program(const LoopProgram& program, int64_t count, std::span<void* const> memory) {
  const ProgramRun run(program, count, memory);
  if (count <= run.grain()) return run.part(0, count);
  parallel_for(0, count, run.grain(), [&](int64_t first, int64_t last) { run.part(first, last); });
}

[[maybe_unused]] const bool kRegistered = [] {
  register_loop_runner(DeviceType::kCPU, &run_program);
  return true;
}();

}  // namespace

void capture_loop(LoopCapture& capture, const Out& out, std::span<const In* const> inputs,
                  const LoopSpec& spec) {
  LoopCapture::Taken taken{
      .loop = nullptr, .result = out.address, .count = out.numel, .operands = {}};
  const bool is_simple = out.contiguous && std::ranges::all_of(inputs, [&](const In* in) {
                           return in->contiguous && (in->numel == out.numel || in->numel == 1);
                         });
  if (spec.functor_bytes == 0 || !is_simple) return capture.take(std::move(taken));
  auto loop = std::make_shared<Loop>();
  const bool narrow =
      spec.bf16_loop != nullptr && out.dtype == DType::kBF16 &&
      std::ranges::all_of(inputs, [](const In* in) { return in->dtype == DType::kBF16; });
  const auto lane = [&](size_t i) { return narrow ? ComputeLane::kBF16 : spec.lanes[i]; };
  loop->loop = narrow ? spec.bf16_loop : spec.loop;
  loop->heavy = spec.heavy;
  std::memcpy(loop->functor.data(), spec.functor, spec.functor_bytes);
  set_result(*loop, out, lane(0));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const In& in = *inputs[i];
    add_operand(*loop, in, lane(i + 1));
    if ((spec.numbers >> i & 1) != 0) {
      loop->operands[i].is_number = true;
      std::memcpy(loop->operands[i].number.data(), in.address, lockstep::size_of(in.dtype));
    } else {
      taken.operands.push_back(in.address);
    }
  }
  taken.loop = std::move(loop);
  capture.take(std::move(taken));
}

void capture_cast(LoopCapture& capture, const Out& out, const In& src) {
  auto loop = std::make_shared<Loop>();
  // As copy_elements does it.
  const ComputeLane natural = natural_lane(out.dtype);
  const ComputeLane lane = is_stored_as(out.dtype, natural) ? natural : natural_lane(src.dtype);
  set_result(*loop, out, lane);
  add_operand(*loop, src, lane);
  if (out.dtype == src.dtype) {
    loop->store = nullptr;
    loop->operands[0].load = nullptr;
  }
  const bool is_simple = out.contiguous && src.contiguous && src.numel == out.numel;
  capture.take({.loop = is_simple ? std::move(loop) : nullptr,
                .result = out.address,
                .count = out.numel,
                .operands = {src.address}});
}

}  // namespace lockstep::cpu

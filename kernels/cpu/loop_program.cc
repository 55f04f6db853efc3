// Runs LoopPrograms of loops that were captured (captured_loop.h).

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/parallel.h"
#include "kernels/cpu/kept_loop.h"
#include "kernels/cpu/loop_source.h"
#include "kernels/cpu/random/random_blocks.h"
#include "kernels/cpu/streaming.h"
#include "kernels/cpu/workspace.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kBlock = kProgramBlock;
/// Bytes that a block takes in any dtype.
constexpr int64_t kRoom = kBlock * kWidestElement;

int64_t bytes_of(DType dtype) { return static_cast<int64_t>(lockstep::size_of(dtype)); }

/// Writes `count` copies of an element of so many bytes.
void fill_block(std::byte* to, const std::byte* element, int64_t count, int64_t bytes) {
  const auto fill = [&]<class T>(T value) {
    std::memcpy(&value, element, sizeof(T));
    std::fill_n(reinterpret_cast<T*>(to), count, value);
  };
  switch (bytes) {
    case 1:
      return fill(uint8_t{});
    case 2:
      return fill(uint16_t{});
    case 4:
      return fill(uint32_t{});
    default:
      return fill(uint64_t{});
  }
}

/// Whether a kernel of the program computes for about as long as its memory takes: plain stores are
/// then written meanwhile, and a block that is streamed behind the kernel is not.
bool computes_long(const LoopProgram& program) {
  constexpr size_t kManySteps = 16;
  const auto is_heavy = [](const LoopProgram::Step& step) { return loop_of(step).heavy; };
  return program.steps.size() >= kManySteps || std::ranges::any_of(program.steps, is_heavy);
}

/// Runs a program on parts of its elements, each on one thread.
class ProgramRun {
 public:
  ProgramRun(const LoopProgram& program, int64_t count, std::span<void* const> memory,
             std::span<const RandomKey> draws, LoopKernel kernel)
      : program_(program),
        memory_(memory),
        draws_(draws),
        kernel_(reinterpret_cast<LoopFunction>(const_cast<void*>(kernel))) {
    int64_t bytes = 0;
    for (const LoopProgram::Slot& slot : program.slots) {
      const bool whole = slot.place == Place::kArray || slot.place == Place::kResult;
      if (whole) bytes += count * bytes_of(slot.dtype);
      if (slot.place == Place::kResult) ++results_;
      if (repeats(slot)) row_bytes_ += room_of((kBlock + slot.period) * bytes_of(slot.dtype));
      if (slot.place == Place::kColumn || is_apart(slot) || slot.drawn) ++filled_;
      heavy_ = heavy_ || slot.drawn;
    }
    streamed_ = worth_streaming(bytes) && (kernel == nullptr || !computes_long(program));
    for (size_t i = 0; i < program.slots.size(); ++i) {
      const LoopProgram::Slot& slot = program.slots[i];
      if (!stays(slot)) moving_.push_back(i);
      const bool waits = kernel != nullptr || slot.drawn;
      if (is_streamed(slot) && waits) streamed_last_.push_back(static_cast<int32_t>(i));
    }
    for (const LoopProgram::Step& step : program.steps) {
      const KeptLoop& loop = loop_of(step);
      heavy_ = heavy_ || loop.heavy;
      each_number(step, [&](const KeptLoop::Operand&, const void*) { ++numbers_; });
      if (kernel != nullptr) constants_.push_back(loop.constants);
    }
  }

  int64_t grain() const {
    const int64_t work = heavy_ ? 8192 : 32768;
    return std::max(kBlock, work / static_cast<int64_t>(program_.steps.size()));
  }

  void part(int64_t first, int64_t last) const {
    Rooms rooms = make_rooms();
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
    std::byte* lanes;            ///< of an operand or result that is not stored in its lane
    std::byte* numbers;          ///< each as a block of equal elements, in the order of the steps
    std::byte* filled;           ///< what a block reads of columns, gathered rows and drawn slots
    std::byte* rows;             ///< each repeated, in the order of the slots
  };

  Rooms make_rooms() const {
    const int64_t buffers = std::max(static_cast<int64_t>(program_.buffers), results_);
    auto* const room = static_cast<std::byte*>(
        thread_workspace(WorkspaceUse::kLoopProgram)
            .room(static_cast<size_t>((buffers + numbers_ + filled_ + 4) * kRoom + row_bytes_)));
    Rooms rooms{.at = std::vector<std::byte*>(program_.slots.size()),
                .lanes = room + buffers * kRoom,
                .numbers = room + (buffers + 4) * kRoom,
                .filled = room + (buffers + 4 + numbers_) * kRoom,
                .rows = room + (buffers + 4 + numbers_ + filled_) * kRoom};
    place_those_that_stay(rooms.at, room);
    if (kernel_ == nullptr) fill_numbers(rooms.numbers);
    fill_rows(rooms.rows);
    return rooms;
  }
  void place_those_that_stay(std::vector<std::byte*>& at, std::byte* buffers) const {
    int32_t result = 0;
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      const LoopProgram::Slot& slot = program_.slots[i];
      if (!stays(slot)) continue;
      if (slot.place == Place::kNumber || slot.place == Place::kRowNumbers) {
        at[i] = static_cast<std::byte*>(memory_[i]);
      } else if (slot.place == Place::kResult && kernel_ != nullptr) {
        at[i] = buffers + result++ * kRoom;  // a kernel writes all of them at once
      } else {
        at[i] = buffers + slot.buffer * kRoom;
      }
    }
  }

  /// Whether the slot's blocks are written to memory from a buffer.
  bool is_streamed(const LoopProgram::Slot& slot) const {
    return streamed_ && slot.place == Place::kResult;
  }
  /// Whether all blocks of the slot begin at the same address.
  bool stays(const LoopProgram::Slot& slot) const {
    const bool is_buffer = slot.place == Place::kScratch || is_streamed(slot);
    const bool is_there = slot.place == Place::kNumber || slot.place == Place::kRowNumbers;
    return (is_buffer || is_there) && !slot.drawn;
  }
  static int64_t room_of(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Whether a block reads a repeated copy of a row.
  static bool repeats(const LoopProgram::Slot& slot) {
    return slot.place == Place::kRow && !has_long_rows(slot);
  }
  const LoopProgram::Slot& slot(int32_t number) const {
    return program_.slots[static_cast<size_t>(number)];
  }
  void* memory(int32_t number) const { return memory_[static_cast<size_t>(number)]; }

  /// Calls visit(operand, address) for operands of the step that are one number.
  template <class Visit>
  void each_number(const LoopProgram::Step& step, const Visit& visit) const {
    const KeptLoop& loop = loop_of(step);
    size_t next = 0;
    for (size_t i = 0; i < loop.count; ++i) {
      const KeptLoop::Operand& operand = loop.operands[i];
      if (operand.is_number) {
        visit(operand, loop.constants.numbers[i].data());
      } else {
        const int32_t number = step.operands[next++];
        if (slot(number).place == Place::kNumber) visit(operand, memory(number));
      }
    }
  }

  void fill_numbers(std::byte* to) const {
    for (const LoopProgram::Step& step : program_.steps) {
      each_number(step, [&](const KeptLoop::Operand& operand, const void* from) {
        load_function(operand.lane, operand.dtype)(kBlock, to, from, 0);
        to += kRoom;
      });
    }
  }
  void fill_rows(std::byte* to) const {
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      const LoopProgram::Slot& slot = program_.slots[i];
      if (!repeats(slot)) continue;
      const int64_t bytes = bytes_of(slot.dtype), all = (kBlock + slot.period) * bytes;
      std::memcpy(to, memory_[i], static_cast<size_t>(slot.period * bytes));
      for (int64_t done = slot.period * bytes; done < all; done *= 2) {
        std::memcpy(to + done, to, static_cast<size_t>(std::min(done, all - done)));
      }
      to += room_of(all);
    }
  }

  /// Writes what elements [first, first + length) read of a column.
  static void expand_column(std::byte* to, const LoopProgram::Slot& slot, const void* memory,
                            int64_t first, int64_t length) {
    const auto* from =
        static_cast<const std::byte*>(memory) + first / slot.period * bytes_of(slot.dtype);
    for (int64_t done = 0, run = slot.period - first % slot.period; done < length;
         run = slot.period) {
      const int64_t count = std::min(run, length - done);
      fill_block(to + done * bytes_of(slot.dtype), from, count, bytes_of(slot.dtype));
      from += bytes_of(slot.dtype);
      done += count;
    }
  }

  /// Whether the slot's rows do not lie one behind the other.
  static bool is_apart(const LoopProgram::Slot& slot) {
    return slot.place == Place::kGathered || slot.place == Place::kRows;
  }
  /// The element of the slot's memory that element `at` is.
  const std::byte* gathered(const LoopProgram::Slot& slot, const void* table, int64_t at) const {
    const int64_t row = at / slot.period;
    const int64_t begin = slot.place == Place::kRows
                              ? row * slot.stride
                              : static_cast<const int64_t*>(memory(slot.rows))[row] * slot.period;
    return static_cast<const std::byte*>(table) + (begin + at % slot.period) * bytes_of(slot.dtype);
  }
  /// Writes elements [first, first + length) of a slot whose rows are apart.
  void gather(std::byte* to, const LoopProgram::Slot& slot, const void* table, int64_t first,
              int64_t length) const {
    for (int64_t at = first; at < first + length;) {
      const int64_t count = std::min(slot.period - at % slot.period, first + length - at);
      const int64_t bytes = count * bytes_of(slot.dtype);
      std::memcpy(to, gathered(slot, table, at), static_cast<size_t>(bytes));
      to += bytes;
      at += count;
    }
  }

  /// A block ends where a long row does.
  int64_t block_length(int64_t first, int64_t last) const {
    int64_t length = std::min(kBlock, last - first);
    for (const LoopProgram::Slot& slot : program_.slots) {
      if (has_long_rows(slot)) length = std::min(length, slot.period - first % slot.period);
    }
    return length;
  }

  void block(int64_t first, int64_t length, Rooms& rooms) const {
    std::vector<std::byte*>& at = rooms.at;
    const std::byte* row = rooms.rows;
    std::byte* filled = rooms.filled;
    size_t draw = 0;
    for (const size_t i : moving_) {
      const LoopProgram::Slot& slot = program_.slots[i];
      const int64_t bytes = bytes_of(slot.dtype);
      auto* const base = static_cast<std::byte*>(memory_[i]);
      if (slot.drawn) {
        const bool in_place = slot.place == Place::kResult && !streamed_;
        at[i] = in_place ? base + first * bytes : filled;
        if (!in_place) filled += kRoom;
        draw_mask(draws_[draw++], *slot.drawn, first, length, reinterpret_cast<uint8_t*>(at[i]));
      } else if (is_apart(slot) && has_long_rows(slot)) {
        at[i] = const_cast<std::byte*>(gathered(slot, base, first));
      } else if (is_apart(slot)) {
        at[i] = filled;
        gather(filled, slot, base, first, length);
        filled += kRoom;
      } else if (repeats(slot)) {
        at[i] = const_cast<std::byte*>(row) + first % slot.period * bytes;
        row += room_of((kBlock + slot.period) * bytes);
      } else if (slot.place == Place::kRow) {
        at[i] = base + first % slot.period * bytes;
      } else if (slot.place == Place::kColumn && kernel_ != nullptr && has_long_rows(slot)) {
        at[i] = base + first / slot.period * bytes;
      } else if (slot.place == Place::kColumn) {
        at[i] = filled;
        expand_column(filled, slot, base, first, length);
        filled += kRoom;
      } else {
        at[i] = base + first * bytes;
        if (streamed_) {
          fetch_ahead(reinterpret_cast<const char*>(at[i]) + 2 * kBlock * bytes, kBlock * bytes);
        }
      }
    }
    if (kernel_ != nullptr) {
      kernel_(length, reinterpret_cast<void* const*>(at.data()), constants_.data());
    } else {
      const std::byte* number = rooms.numbers;
      for (const LoopProgram::Step& step : program_.steps) {
        compute(step, length, at, number, rooms.lanes);
        // At once: the next step may take its buffer.
        if (is_streamed(slot(step.result))) stream_result(step.result, first, length, at);
      }
    }
    for (const int32_t result : streamed_last_) stream_result(result, first, length, at);
  }

  void stream_result(int32_t number, int64_t first, int64_t length,
                     const std::vector<std::byte*>& at) const {
    const int64_t bytes = bytes_of(slot(number).dtype);
    stream(static_cast<std::byte*>(memory(number)) + first * bytes, at[static_cast<size_t>(number)],
           length * bytes);
  }

  void compute(const LoopProgram::Step& step, int64_t length, const std::vector<std::byte*>& at,
               const std::byte*& number, std::byte* lanes) const {
    const KeptLoop& loop = loop_of(step);
    std::array<const void*, kMostOperands> in{};
    size_t next = 0;
    for (size_t i = 0; i < loop.count; ++i) {
      const KeptLoop::Operand& operand = loop.operands[i];
      const int32_t from = operand.is_number ? -1 : step.operands[next++];
      if (operand.is_number || slot(from).place == Place::kNumber) {
        in[i] = number;
        number += kRoom;
        continue;
      }
      in[i] = at[static_cast<size_t>(from)];
      if (operand.load == nullptr) continue;
      void* const loaded = lanes + static_cast<int64_t>(i) * kRoom;
      operand.load(length, loaded, in[i], bytes_of(operand.dtype));
      in[i] = loaded;
    }
    std::byte* const to = at[static_cast<size_t>(step.result)];
    const int64_t bytes = bytes_of(slot(step.result).dtype);
    if (loop.loop == nullptr) {
      if (loop.store != nullptr) return loop.store(length, to, bytes, in[0]);
      std::memcpy(to, in[0], static_cast<size_t>(length * bytes));
    } else if (loop.store == nullptr) {
      loop.loop(length, to, in.data(), loop.constants.functor.data());
    } else {
      std::byte* const computed = lanes + 3 * kRoom;
      loop.loop(length, computed, in.data(), loop.constants.functor.data());
      loop.store(length, to, bytes, computed);
    }
  }

  const LoopProgram& program_;
  std::span<void* const> memory_;
  std::span<const RandomKey> draws_;
  LoopFunction kernel_;
  std::vector<StepConstants> constants_;  ///< of the kernel
  bool streamed_ = false;
  bool heavy_ = false;
  int64_t numbers_ = 0;
  int64_t results_ = 0;
  int64_t filled_ = 0;
  int64_t row_bytes_ = 0;
  std::vector<size_t> moving_;          ///< slots whose address is another for each block
  std::vector<int32_t> streamed_last_;  ///< slots that are written behind all steps of a block
};

void run_program(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                 std::span<const RandomKey> draws, LoopKernel kernel) {
  const ProgramRun run(program, count, memory, draws, kernel);
  if (count <= run.grain()) return run.part(0, count);
  parallel_for(0, count, run.grain(), [&](int64_t first, int64_t last) { run.part(first, last); });
}

/// Results of a program's first elements, and how long they took.
class Trial {
 public:
  Trial(const LoopProgram& program, int64_t count, std::span<void* const> memory,
        std::span<const RandomKey> draws)
      : program_(program), count_(count), memory_(memory.begin(), memory.end()), draws_(draws) {
    for (size_t i = 0; i < program.slots.size(); ++i) {
      if (program.slots[i].place != LoopProgram::Place::kResult) continue;
      results_.emplace_back(static_cast<size_t>(count * bytes_of(program.slots[i].dtype)));
      memory_[i] = results_.back().data();
    }
  }

  void run(LoopKernel kernel) {
    const auto start = std::chrono::steady_clock::now();
    ProgramRun(program_, count_, memory_, draws_, kernel).part(0, count_);
    least_ = std::min(least_, std::chrono::steady_clock::now() - start);
  }
  const std::vector<std::vector<std::byte>>& results() const { return results_; }
  std::chrono::steady_clock::duration least() const { return least_; }

 private:
  const LoopProgram& program_;
  int64_t count_;
  std::vector<void*> memory_;
  std::span<const RandomKey> draws_;
  std::vector<std::vector<std::byte>> results_;
  std::chrono::steady_clock::duration least_ = std::chrono::steady_clock::duration::max();
};

KernelTrial try_kernel(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                       std::span<const RandomKey> draws, LoopKernel kernel) {
  constexpr int64_t kBlocks = 8;
  constexpr int kRounds = 5;
  const int64_t tried = std::min(count, kBlocks * kBlock);
  Trial loops(program, tried, memory, draws), generated(program, tried, memory, draws);
  for (int round = 0; round < kRounds; ++round) {
    loops.run(nullptr);
    generated.run(kernel);
  }
  if (loops.results() != generated.results()) return KernelTrial::kOtherBits;
  // What takes longer than the loops is not the one to run.
  return generated.least() <= loops.least() ? KernelTrial::kFaster : KernelTrial::kSlower;
}

[[maybe_unused]] const bool kRegistered = [] {
  register_loop_backend(
      DeviceType::kCPU,
      {.run = &run_program, .source = &loop_source, .try_kernel = &try_kernel, .has_cache = true});
  return true;
}();

}  // namespace

}  // namespace lockstep::cpu

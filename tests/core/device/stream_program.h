#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/device/stream_sanitizer.h"
#include "core/dispatch/dispatcher.h"

// Programs of streams, events and blocks for tests of the stream sanitizer. They only call its on_*
// functions: no kernel runs, and no address is dereferenced.

namespace lockstep::stream_program {

namespace sanitizer = stream_sanitizer;
inline constexpr Device kHost{DeviceType::kHost, 0};
inline constexpr size_t kArena = 256;
inline constexpr size_t kSlot = 32;
inline constexpr size_t kSlots = kArena / kSlot;
inline constexpr size_t kMostUses = 128;

using Bytes = std::bitset<kArena>;
using Uses = std::bitset<kMostUses>;

inline char* arena() { return reinterpret_cast<char*>(uintptr_t{0x7f00'1234'0000}); }

inline const char* op_name(size_t use) {
  static constexpr const char* kNames[] = {"exp", "relu", "neg", "tanh", "sqrt", "abs", "sin"};
  return kNames[use % std::size(kNames)];
}

/// `rows` rows of `columns` bytes, `stride` apart.
struct Access {
  size_t offset = 0;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t stride = 1;
  bool written = false;

  Bytes bytes() const {
    Bytes set;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        set.set(offset + static_cast<size_t>(row * stride + column));
      }
    }
    return set;
  }
};

class FakeKernel final : public QueuedKernel {
 public:
  FakeKernel(const char* op, std::vector<Access> accesses)
      : QueuedKernel(dispatcher().find(op)), accesses_(std::move(accesses)) {}
  void run() override {}
  void each_access(FunctionRef<void(const TensorArg&, bool)> visit) const override {
    for (const Access& access : accesses_) {
      const int64_t sizes[] = {access.rows, access.columns};
      const int64_t strides[] = {access.stride, 1};
      TensorArg tensor;
      tensor.address = arena() + access.offset;
      tensor.size_data = sizes;
      tensor.stride_data = strides;
      tensor.rank = 2;
      tensor.numel = access.rows * access.columns;
      tensor.dtype = DType::kU8;
      visit(tensor, access.written);
    }
    visit(TensorArg(), false);  // an absent optional tensor
  }

 private:
  std::vector<Access> accesses_;
};

struct Step {
  enum class Kind {
    kUse,
    kRecord,
    kWait,
    kEventDone,
    kStreamDone,
    kDeviceDone,
    kAllocate,
    kFree,
    kRecordStream,
  };
  Kind kind = Kind::kUse;
  int stream = 0;
  int event = 0;
  size_t use = 0;  ///< index of the use, for kUse
  std::vector<Access> accesses = {};
  size_t offset = 0;  ///< offset of the block in the arena, for kAllocate, kFree and kRecordStream
  size_t bytes = 0;
  int act = -1;  ///< all steps of an act are dropped together; -1: belongs to no act
};
using Program = std::vector<Step>;

inline Stream stream_of(int number) { return {kHost, number}; }

inline void play(const Step& step) {
  using Kind = Step::Kind;
  const void* const event = reinterpret_cast<const void*>(static_cast<intptr_t>(step.event) + 1);
  const Stream stream = stream_of(step.stream);
  switch (step.kind) {
    case Kind::kUse:
      return sanitizer::on_kernel(stream, FakeKernel(op_name(step.use), step.accesses));
    case Kind::kRecord:
      return sanitizer::on_record(event, stream);
    case Kind::kWait:
      return sanitizer::on_wait(stream, event);
    case Kind::kEventDone:
      return sanitizer::on_event_done(event);
    case Kind::kStreamDone:
      return sanitizer::on_stream_done(stream);
    case Kind::kDeviceDone:
      return sanitizer::on_device_done(kHost);
    case Kind::kAllocate:
      return sanitizer::on_allocate(stream, arena() + step.offset, step.bytes);
    case Kind::kFree:
      return sanitizer::on_free(stream, arena() + step.offset, step.bytes);
    case Kind::kRecordStream:
      return sanitizer::on_record_stream(arena() + step.offset, stream);
  }
}

/// Reference for happens-before, computed from its definition: for every use, the uses ordered
/// before it and the bytes it reads and writes.
class Oracle {
 public:
  /// Uses that happen before one queued on `stream` now.
  Uses before(int stream) const { return done_[static_cast<size_t>(stream)] | program_; }

  void follow(const Step& step) {
    using Kind = Step::Kind;
    switch (step.kind) {
      case Kind::kUse: {
        done_[static_cast<size_t>(step.stream)] |= program_;
        done_[static_cast<size_t>(step.stream)].set(step.use);
        Made made{step.stream, {}, {}, tenants_[step.accesses[0].offset]};
        for (const Access& access : step.accesses) {
          (access.written ? made.writes : made.reads) |= access.bytes();
        }
        made_[step.use] = made;
        return;
      }
      case Kind::kRecord:
        events_[step.event] = before(step.stream);
        return;
      case Kind::kWait:
        done_[static_cast<size_t>(step.stream)] |= events_[step.event];
        return;
      case Kind::kEventDone:
        program_ |= events_[step.event];
        return;
      case Kind::kStreamDone:
        program_ |= done_[static_cast<size_t>(step.stream)];
        return;
      case Kind::kDeviceDone:
        for (const Uses& uses : done_) program_ |= uses;
        return;
      case Kind::kAllocate:
        ++tenant_;
        owners_[tenant_] = {step.stream, before(step.stream)};
        for (size_t i = step.offset; i < step.offset + step.bytes; ++i) tenants_[i] = tenant_;
        return;
      case Kind::kFree:
      case Kind::kRecordStream:
        return;
    }
  }

  /// Uses that race with the kernel in `step` if it is queued now.
  std::vector<size_t> races(const Step& step) const {
    const Uses ordered = before(step.stream);
    Bytes writes;
    Bytes all;
    for (const Access& access : step.accesses) {
      all |= access.bytes();
      if (access.written) writes |= access.bytes();
    }
    std::vector<size_t> found;
    for (const auto& [use, made] : made_) {
      const bool conflict =
          (writes & (made.reads | made.writes)).any() || (all & made.writes).any();
      if (conflict && !ordered[use] && made.stream != step.stream) found.push_back(use);
    }
    return found;
  }

  /// The remedy that the report should name when `step` races with `use`.
  std::string remedy(const Step& step, size_t use) const {
    const Made& made = made_.at(use);
    const int now = tenants_.at(step.accesses[0].offset);
    const std::string me = to_string(stream_of(step.stream));
    const std::string other = to_string(stream_of(made.stream));
    if (now != made.tenant && owners_.at(now).before[use]) {
      return "record one on " + to_string(stream_of(owners_.at(now).stream)) +
             ", whose block it now is, and let " + me + " wait";
    }
    if (now == made.tenant || made.stream == owners_.at(made.tenant).stream) {
      return "record one on " + other + " after `" + op_name(use) + "` and let " + me + " wait";
    }
    return "The block was freed while " + other + " used it: call record_stream with " + other;
  }
  int stream(size_t use) const { return made_.at(use).stream; }

 private:
  struct Made {
    int stream;
    Bytes reads;
    Bytes writes;
    int tenant;
  };
  struct Owner {
    int stream;
    Uses before;
  };

  std::array<Uses, 8> done_;  ///< per stream: uses ordered before its next one
  Uses program_;
  std::map<int, Uses> events_;
  std::map<size_t, Made> made_;
  std::map<size_t, int> tenants_;  ///< block that each byte belongs to, by offset
  std::map<int, Owner> owners_;
  int tenant_ = 0;
};

/// Generates programs in which every two conflicting uses are ordered, each by acts that are needed
/// at the moment they are emitted.
class ProgramMaker {
 public:
  explicit ProgramMaker(uint32_t seed) : random_(seed), streams_(2 + below(3)) {}

  Program make(int length) {
    for (int i = 0; i < length && uses_ < kMostUses; ++i) {
      switch (blocks_.empty() ? 0 : below(6)) {
        case 0:
          allocate();
          break;
        case 1:
          free(static_cast<size_t>(below(static_cast<int>(blocks_.size()))));
          break;
        default:
          use();
      }
    }
    return std::move(program_);
  }

 private:
  struct Block {
    int owner;
    size_t slot;
    size_t slots;
    std::map<int, Uses> users;  ///< by stream
  };
  /// Events that the next tenant of a slot must wait for, and the acts that recorded them.
  struct Pending {
    int event;
    int act;
  };
  struct Slot {
    int owner = -1;  ///< -1: never used
    bool taken = false;
    std::vector<Pending> pending;
  };

  int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

  void emit(Step step) {
    oracle_.follow(step);
    program_.push_back(std::move(step));
  }

  void allocate() {
    const int owner = below(streams_);
    const size_t slots = static_cast<size_t>(1 + below(3));
    const size_t first = static_cast<size_t>(below(static_cast<int>(kSlots - slots)));
    for (size_t i = first; i < first + slots; ++i) {
      if (slots_[i].taken || (slots_[i].owner >= 0 && slots_[i].owner != owner)) return;
    }
    for (size_t i = first; i < first + slots; ++i) {
      // Like an allocator: makes the block's stream wait, or polls until the events are done.
      for (const Pending& pending : slots_[i].pending) {
        const auto kind = below(2) == 0 ? Step::Kind::kWait : Step::Kind::kEventDone;
        emit({.kind = kind, .stream = owner, .event = pending.event, .act = pending.act});
      }
      slots_[i] = {owner, true, {}};
    }
    emit({.kind = Step::Kind::kAllocate,
          .stream = owner,
          .offset = first * kSlot,
          .bytes = slots * kSlot});
    blocks_.push_back({owner, first, slots, {}});
  }

  void free(size_t index) {
    const Block block = blocks_[index];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index));
    for (const auto& [stream, uses] : block.users) {
      const bool needed = (uses & ~oracle_.before(block.owner)).any();
      if (stream == block.owner || (!needed && below(4) != 0)) continue;
      const Pending pending{next_event_++, next_act_++};
      emit({.kind = Step::Kind::kRecordStream,
            .stream = stream,
            .offset = block.slot * kSlot,
            .act = pending.act});
      emit({.kind = Step::Kind::kRecord,
            .stream = stream,
            .event = pending.event,
            .act = pending.act});
      for (size_t i = block.slot; i < block.slot + block.slots; ++i) {
        slots_[i].pending.push_back(pending);
      }
    }
    for (size_t i = block.slot; i < block.slot + block.slots; ++i) slots_[i].taken = false;
    emit({.kind = Step::Kind::kFree,
          .stream = block.owner,
          .offset = block.slot * kSlot,
          .bytes = block.slots * kSlot});
  }

  Access access(const Block& block) {
    const size_t bytes = block.slots * kSlot;
    Access access;
    access.written = below(2) == 0;
    access.offset = block.slot * kSlot;
    access.columns = static_cast<int64_t>(bytes);
    access.stride = access.columns;
    switch (below(3)) {
      case 0: {  // some columns of a matrix
        access.stride = 4 << below(2);
        access.columns = 1 + below(static_cast<int>(access.stride) - 1);
        const size_t shift =
            static_cast<size_t>(below(static_cast<int>(access.stride - access.columns + 1)));
        access.rows = static_cast<int64_t>(bytes) / access.stride;
        access.offset += shift;
        break;
      }
      case 1: {  // a contiguous part
        const size_t shift = static_cast<size_t>(below(static_cast<int>(bytes)));
        access.columns = 1 + below(static_cast<int>(bytes - shift));
        access.offset += shift;
        break;
      }
      default:
        break;
    }
    return access;
  }

  void use() {
    Step step{.kind = Step::Kind::kUse, .stream = below(streams_), .use = uses_};
    const size_t first = static_cast<size_t>(below(static_cast<int>(blocks_.size())));
    step.accesses.push_back(access(blocks_[first]));
    if (below(2) == 0) step.accesses.push_back(access(blocks_[first]));
    for (std::vector<size_t> races; !(races = oracle_.races(step)).empty();) {
      order(oracle_.stream(races[static_cast<size_t>(below(static_cast<int>(races.size())))]),
            step.stream);
    }
    blocks_[first].users[step.stream].set(uses_++);
    emit(std::move(step));
  }

  /// Orders the next work of `stream` after all work queued on `other`.
  void order(int other, int stream) {
    const int act = next_act_++;
    const int event = next_event_++;
    switch (below(6)) {
      case 0:
        return emit({.kind = Step::Kind::kStreamDone, .stream = other, .act = act});
      case 1:
        return emit({.kind = Step::Kind::kDeviceDone, .act = act});
      case 2:
        emit({.kind = Step::Kind::kRecord, .stream = other, .event = event, .act = act});
        return emit({.kind = Step::Kind::kEventDone, .event = event, .act = act});
      default:
        emit({.kind = Step::Kind::kRecord, .stream = other, .event = event, .act = act});
        return emit({.kind = Step::Kind::kWait, .stream = stream, .event = event, .act = act});
    }
  }

  std::mt19937 random_;
  int streams_;
  Program program_;
  Oracle oracle_;
  std::vector<Block> blocks_;
  std::array<Slot, kSlots> slots_;
  size_t uses_ = 0;
  int next_event_ = 0;
  int next_act_ = 0;
};

}  // namespace lockstep::stream_program

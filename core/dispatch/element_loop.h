#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/generator.h"

namespace lockstep {

/// The loop of an element-wise kernel without the tensors of a call: computes elements of a result
/// from as many elements of each operand. Only the backend that made it knows what it holds.
class ElementLoop {
 public:
  virtual ~ElementLoop() = default;

 protected:
  ElementLoop() = default;
  ElementLoop(const ElementLoop&) = default;
  ElementLoop& operator=(const ElementLoop&) = default;
};

class LoopCapture;

namespace detail {
inline thread_local constinit LoopCapture* loop_capture = nullptr;
}  // namespace detail

/// While alive, element-wise kernels that this thread calls give their loop away instead of running
/// it: what they would write is left as it was. Not nested.
class LoopCapture {
 public:
  /// A loop with the addresses of the tensors that it was called for.
  struct Taken {
    std::shared_ptr<const ElementLoop> loop;
    const void* result = nullptr;
    int64_t count = 0;                  ///< elements that it computes
    std::vector<const void*> operands;  ///< numbers that are no tensors are part of the loop
  };

  LoopCapture();
  ~LoopCapture();
  LoopCapture(const LoopCapture&) = delete;
  LoopCapture& operator=(const LoopCapture&) = delete;

  /// The capture of this thread, or null. For kernels.
  static LoopCapture* active() noexcept { return detail::loop_capture; }
  /// For kernels: instead of the loop. A null `loop` cannot run apart from its call.
  void take(Taken taken);

  /// The loop, if there was just one and it can run apart.
  std::optional<Taken> taken() const;

 private:
  std::optional<Taken> taken_;
  int calls_ = 0;
};

/// Element-wise loops that run one after the other on a few elements, then on the next few, with
/// what they compute in between in the cache.
struct LoopProgram {
  enum class Place : uint8_t {
    kArray,       ///< as many elements as the program computes
    kRow,         ///< `period` elements, which repeat
    kColumn,      ///< one element for `period` elements of the result in a row
    kNumber,      ///< one element
    kRows,        ///< rows of `period` elements, `stride` elements from one to the next
    kGathered,    ///< rows of `period` elements of a table, in the order of the slot `rows`
    kRowNumbers,  ///< a number for each row of slots of kGathered; no step reads it
    kScratch,     ///< computed and read by steps alone
    kResult,      ///< computed by a step, as many elements as the program computes
  };
  /// How numbers of rows are checked where the backend `checks_rows`.
  struct RowCheck {
    int64_t count = 0;         ///< of the table's rows
    bool wraps = false;        ///< negative numbers count from the end
    std::string_view op = {};  ///< named by the error
  };
  struct Slot {
    Place place = Place::kArray;
    DType dtype = DType::kF32;
    int64_t period = 0;
    int64_t stride = 0;
    int32_t buffer = -1;  ///< of kScratch and kResult: the one that holds its elements meanwhile
    int32_t rows = -1;    ///< of kGathered: the slot of kRowNumbers
    RowCheck check = {};  ///< of kRowNumbers
    /// A slot of kScratch or kResult may be drawn instead of computed: its elements are true with
    /// this probability, as `bernoulli` draws them.
    std::optional<double> drawn = {};
  };
  struct Step {
    std::shared_ptr<const ElementLoop> loop;
    std::vector<int32_t> operands;  ///< slots
    int32_t result = 0;
  };

  std::vector<Slot> slots;
  std::vector<Step> steps;
  int32_t buffers = 0;

  /// Sets the buffers: a slot shares one with slots that nothing reads any more.
  void assign_buffers();
};

/// All steps of a program as one loop, made of the backend's LoopSource: the address of a function
/// for the cpu, that of a module for a GPU. Only the backend knows what it takes.
using LoopKernel = const void*;

/// A text that defines `extern "C" lockstep_loop_kernel`, and the compiler's flags.
struct LoopSource {
  std::string text;  ///< empty: there is none
  std::vector<std::string> flags;
};

/// What makes modules of a kind of device. All may be called on any thread.
struct LoopCompiler {
  /// Returns the flags of sources for the device of this thread's KernelScope.
  std::vector<std::string> (*flags)() = nullptr;
  /// Name and version, which are part of what a kernel is known by. Throws Error if it is not
  /// there.
  std::string (*version)() = nullptr;
  /// The bytes of a module. Throws Error with what the compiler says.
  std::vector<std::byte> (*compile)(const LoopSource& source) = nullptr;
  /// Waits until nothing runs a kernel, whose bytes are freed behind that.
  void (*release)(LoopKernel kernel) noexcept = nullptr;
};

/// What became of a kernel that was tried.
enum class KernelTrial : uint8_t {
  kNone,       ///< it was not tried
  kFaster,     ///< it computes the loops' bits, and is the one to run
  kSlower,     ///< the loops' bits, in more time
  kOtherBits,  ///< a fault of the compiler, or of the source
};

class RowPlan;  // core/dispatch/row_step.h
struct RowProgram;

/// What a kind of device does with programs. In all of these `memory` has the address of each slot,
/// that of the table for kGathered, null for kScratch, and results share no memory with anything
/// else. `draws` has the random bits of each slot that is drawn, in the slots' order. Callers are
/// in a KernelScope of the device.
struct LoopBackend {
  /// Runs a program on `count` elements, with `kernel` in place of the steps' loops unless it is
  /// null.
  void (*run)(const LoopProgram& program, int64_t count, std::span<void* const> memory,
              std::span<const RandomKey> draws, LoopKernel kernel) = nullptr;
  /// The source of a kernel for this program and all others whose steps have the same functors and
  /// slots. Null if the backend writes none.
  LoopSource (*source)(const LoopProgram& program) = nullptr;
  /// Tries a kernel beside the steps' loops on the first elements. Writes nothing. kNone: it cannot
  /// be tried now.
  KernelTrial (*try_kernel)(const LoopProgram& program, int64_t count,
                            std::span<void* const> memory, std::span<const RandomKey> draws,
                            LoopKernel kernel) = nullptr;
  /// What compiles sources; null: this machine's C++ compiler makes a library of each.
  const LoopCompiler* compiler = nullptr;
  /// Whether slots of kRowNumbers may be of int32, and hold any number: what is out of range is the
  /// device's error. Else they are of int64, in range.
  bool checks_rows = false;
  /// How one kernel computes operators along rows; null if none can. Null if the backend makes
  /// none.
  std::unique_ptr<const RowPlan> (*plan_rows)(RowProgram program) = nullptr;
  /// Whether what is computed of a few rows at a time stays near: groups of rows save passes over
  /// memory then.
  bool has_cache = false;
  /// The device whose kernels its programs are made of; nothing: its own.
  std::optional<DeviceType> kernels_of = {};
  /// Whether slots may be gathered: numbers of rows can be read when a program is run, or the
  /// backend `checks_rows`.
  bool gathers = true;
};

/// Sets what runs programs on a kind of device, whose kernels then take part in captures.
void register_loop_backend(DeviceType type, const LoopBackend& backend);
/// Null if the device has none.
const LoopBackend* loop_backend(DeviceType type);

}  // namespace lockstep

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "compile/interpreter.h"
#include "core/device/queued_kernel.h"
#include "core/dispatch/queued_program.h"

namespace lockstep::compiler {

/// Runs a small graph of the cpu as the calls of its kernels, one after the other, without
/// operators: they are recorded once, as the host device queues them, and find the addresses of
/// each run's inputs and outputs in their places. What lies between stays where it is.
///
/// The record is tried beside the graph before it is used: results and random numbers must be
/// equal. Thread-safe; a run that finds another one under way is left to the caller.
class PreparedRun {
 public:
  /// Null for graphs that are not small, or of the cpu alone. `graph` must outlive it.
  static std::unique_ptr<PreparedRun> make(const Interpreter& graph);
  ~PreparedRun();
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;

  /// Returns the outputs for these inputs, or nothing if the caller is to run the graph.
  std::optional<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  /// Whether runs are recorded calls.
  bool is_ready() const { return is_ready_.load(std::memory_order_relaxed); }

 private:
  /// Graphs whose values take more memory have kernels beside which operators cost nothing.
  static constexpr int64_t kMostBytes = 256 << 10;

  enum class State : uint8_t { kNew, kSeen, kReady, kRefused };

  /// An address in a recorded call that is in the memory of an input, or of a root.
  struct Patch {
    void** address;
    size_t owner;
    int64_t offset;  ///< bytes
  };
  struct Output {
    enum class Kind : uint8_t { kAbsent, kInput, kViewOfInput, kRoot, kViewOfRoot };
    Kind kind = Kind::kAbsent;
    size_t of = 0;  ///< the input or root
    ValueType type;
    int64_t offset = 0;  ///< elements from the beginning of the input or root
  };
  /// A run of the graph on the host device.
  struct Recording;

  bool prepare(const std::vector<Tensor>& inputs);
  /// Finds what the outputs are made of; false for memory that cannot be made for each run.
  bool place_outputs(const Recording& recording);
  /// Finds the addresses in the recorded calls; false where one is no value's.
  bool find_addresses(const Recording& recording);
  std::vector<Tensor> try_beside(const std::vector<Tensor>& inputs);
  std::vector<Tensor> replay(const std::vector<Tensor>& inputs);
  explicit PreparedRun(const Interpreter& graph) : graph_(graph) {}

  const Interpreter& graph_;
  std::atomic_flag busy_;
  State state_ = State::kNew;  ///< of the run that set busy_
  std::atomic<bool> is_ready_ = false;
  std::vector<std::unique_ptr<QueuedKernel>> kernels_;
  std::vector<QueuedProgram*> programs_;  ///< by kernel; null where it is none
  std::vector<Tensor> kept_;  ///< a tensor of each memory: the roots', then what lies between
  std::vector<Patch> of_inputs_, of_roots_;
  std::vector<ValueType> roots_;  ///< memory that is made for each run: that of outputs
  std::vector<Output> outputs_;
};

}  // namespace lockstep::compiler

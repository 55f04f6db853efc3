#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compile/interpreter.h"
#include "core/base/mutex.h"
#include "core/cuda/graph.h"
#include "core/tensor/event.h"

namespace lockstep::compiler {

/// Runs a graph of one GPU as a CUDA graph, once it has run a few times without. A replay reads
/// inputs at the addresses of the capture: those of calls are copied there, others must stay where
/// they are. Results are copied from there, but for those that are kept for a derivative. Calls
/// that cannot be a replay or are on another stream, are left to the caller. Thread-safe.
class CapturedRun {
 public:
  /// Which inputs and outputs of the graph are copied.
  struct Copies {
    std::vector<bool> inputs;   ///< the others are weights and the like
    size_t outputs = 0;         ///< so many first ones; the others are kept
    bool may_be_views = false;  ///< outputs of inputs: the copy is as good
  };

  /// `graph` must outlive it.
  CapturedRun(const Interpreter& graph, Copies copies);
  /// Waits for the replays.
  ~CapturedRun();
  CapturedRun(const CapturedRun&) = delete;
  CapturedRun& operator=(const CapturedRun&) = delete;

  /// Returns the outputs for these inputs, or nothing if the caller is to run the graph: it was not
  /// captured yet, or what the last replay kept is still in use.
  std::optional<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);

  /// Why it is not captured; empty if it is, or may be.
  std::string refusal() const;

 private:
  /// How often what stands still may be found elsewhere before that is given up.
  static constexpr int kMostCaptures = 4;
  static constexpr int kWarmUps = 2;
  using Counts = std::pair<uint32_t, uint32_t>;  ///< of references to a tensor, and to its elements

  /// An output that is kept, in the graph's memory.
  struct Kept {
    size_t output;
    Counts alone;  ///< when nobody else holds it
  };

  static Counts counts_of(const Tensor& tensor);
  bool may_capture(const std::vector<const void*>& fixed) LS_REQUIRES(mutex_);
  void capture(const std::vector<Tensor>& inputs) LS_REQUIRES(mutex_);
  bool is_held() const LS_REQUIRES(mutex_);
  std::vector<Tensor> replay(const std::vector<Tensor>& inputs) LS_REQUIRES(mutex_);
  std::vector<const void*> fixed_places(const std::vector<Tensor>& inputs) const;
  void drop() LS_REQUIRES(mutex_);
  /// Waits for copies out of the graph's memory.
  void finish() noexcept LS_REQUIRES(mutex_);

  const Interpreter& graph_;
  const Copies copies_;
  Device device_;
  mutable Mutex mutex_;
  std::string refusal_ LS_GUARDED_BY(mutex_);
  int calls_ LS_GUARDED_BY(mutex_) = 0;
  int captures_ LS_GUARDED_BY(mutex_) = 0;
  std::vector<const void*> fixed_ LS_GUARDED_BY(mutex_);  ///< where inputs are that are not copied
  std::unique_ptr<CudaGraph> captured_ LS_GUARDED_BY(mutex_);
  std::vector<Tensor> inputs_ LS_GUARDED_BY(mutex_);  ///< undefined where they are not copied
  std::vector<Tensor> outputs_ LS_GUARDED_BY(mutex_);
  std::vector<Kept> kept_ LS_GUARDED_BY(mutex_);
  Stream stream_ LS_GUARDED_BY(mutex_);  ///< that calls are on
  Event replayed_ LS_GUARDED_BY(mutex_);
};

}  // namespace lockstep::compiler

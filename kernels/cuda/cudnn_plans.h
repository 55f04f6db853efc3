#pragma once

#include <string>
#include <string_view>

#include "core/base/mutex.h"
#include "core/base/shared_mutex.h"
#include "core/cuda/context.h"
#include "kernels/cuda/cudnn_graph.h"

#ifdef LS_HAS_CUDNN

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::cuda {

/// Memory addresses of a graph's tensors.
class CudnnMemory {
 public:
  /// Sets the address of a tensor; ignores -1, an absent tensor.
  void put(int64_t tensor, const void* address) {
    if (tensor < 0) return;
    uids_.push_back(tensor);
    addresses_.push_back(const_cast<void*>(address));
  }
  std::span<const int64_t> uids() const { return uids_; }
  std::span<void* const> addresses() const { return addresses_; }

 private:
  std::vector<int64_t> uids_;
  std::vector<void*> addresses_;
};

/// A graph's tensors, and either its plan or the reason why there is none.
template <class Tensors>
struct CudnnPlanned {
  Tensors tensors;
  std::shared_ptr<const CudnnPlan> plan;
  std::string refusal;
};

/// Cache of plans by problem. Cleared when it is full, since the library makes the same plans
/// again. Thread-safe.
template <class Problem, class Tensors>
class CudnnPlans {
 public:
  using Planned = std::shared_ptr<const CudnnPlanned<Tensors>>;
  /// Builds the graph of a problem.
  using Describe = Tensors (*)(CudnnGraph& graph, const Problem& problem);

  explicit CudnnPlans(Describe describe) : describe_(describe) {}

  /// Returns the plan for the device of `handle`.
  Planned find_or_make(CudnnLibrary& library, int device, cudnnHandle_t handle,
                       const Problem& problem, const CudnnRules& rules) {
    const Key key{&library, device, problem};
    {
      const SharedLock lock(mutex_);
      const auto found = plans_.find(key);
      if (found != plans_.end()) return found->second;
    }
    auto made = std::make_shared<CudnnPlanned<Tensors>>();
    try {
      CudnnGraph graph(library.loaded().functions);
      made->tensors = describe_(graph, problem);
      made->plan = graph.plan({.handle = handle}, rules);
    } catch (const CudnnRefusal& refusal) {
      made->refusal = refusal.what();
    }
    const MutexLock lock(mutex_);
    // A training step has a few dozen problems.
    constexpr size_t kMost = 1024;
    if (plans_.size() >= kMost) plans_.clear();
    plans_.insert_or_assign(key, made);
    return made;
  }

 private:
  struct Key {
    const CudnnLibrary* library;
    int device;
    Problem problem;
    auto operator<=>(const Key&) const = default;
  };

  Describe describe_;
  SharedMutex mutex_;
  std::map<Key, Planned> plans_ LS_GUARDED_BY(mutex_);
};

/// Device and stream of the running kernel's call. Throws DeviceError.
struct CudnnCall {
  Context& context;
  int device;
  int capability;       ///< major compute capability, 9 for Hopper
  cudaStream_t stream;  ///< the stream of the call

  CudnnCall();
};

/// True if cuDNN could be loaded; otherwise the reason is counted as by note_without_cudnn.
bool has_cudnn();

}  // namespace lockstep::cuda

#endif  // LS_HAS_CUDNN

namespace lockstep::cuda {

/// Counts a call of `what` that cuDNN does not compute (core/device/slow_paths.h), and why.
void note_without_cudnn(std::string_view what, const std::string& reason);

}  // namespace lockstep::cuda

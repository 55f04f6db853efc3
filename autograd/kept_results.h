#pragma once

#include <vector>

#include "autograd/saved_tensor.h"
#include "core/dispatch/mode.h"
#include "core/tensor/generator.h"

namespace lockstep {

/// Results of products, convolutions and attention (operators that declare floating-point
/// operations) that a checkpoint keeps from forward, so that recomputation need not compute them
/// again. They are packed by the saved tensor hooks outside the checkpoint.
class KeptResults {
 public:
  /// While it intercepts calls, keeps the results of forward.
  class Recording final : public DispatchMode {
   public:
    /// `drops_gelu`: as CheckpointOptions::recompute_gelu.
    Recording(KeptResults& into, bool drops_gelu)
        : into_(into), drops_gelu_(drops_gelu), hooks_outside_(detail::saved_tensor_hooks) {}
    void call(const Operator& op, KeySet keys, Stack& stack) override;

   private:
    KeptResults& into_;
    bool drops_gelu_;
    const SavedTensorHooksGuard* hooks_outside_;
  };

  /// While it intercepts calls, gives the kept results, in the order of forward, in place of such
  /// operators. Also moves the calling thread's generator to where forward had it after each.
  /// Throws AutogradError for calls that forward did not make, and where a kept result was changed
  /// in place.
  class Replay final : public DispatchMode {
   public:
    explicit Replay(const KeptResults& from) : from_(from) {}
    void call(const Operator& op, KeySet keys, Stack& stack) override;

   private:
    const KeptResults& from_;
    size_t next_ = 0;
  };

 private:
  struct Call {
    const Operator* op = nullptr;
    std::vector<SavedTensor> results;  ///< undefined where the operator gave none
    bool drops_gelu = false;           ///< the first result is the gelu of the second
    RandomKey random_after;
  };

  std::vector<Call> calls_;
};

}  // namespace lockstep

#include "autograd/checkpoint.h"

#include "autograd/autocast.h"
#include "autograd/batched_tensor.h"
#include "autograd/graph_run.h"
#include "autograd/hooks.h"
#include "autograd/kept_results.h"
#include "autograd/saved_tensor.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/scoped_value.h"
#include "core/dispatch/thread_state.h"
#include "core/tensor/random_state_guard.h"

namespace lockstep {

namespace {

thread_local constinit bool t_recomputing = false;

/// Thread state, besides the arguments, that the result of a computation depends on.
struct ForwardState {
  ThreadState thread = ThreadState::capture();
  AutocastState autocast = autocast_state();
  RandomKey random = default_generator().state();
  std::vector<VmapLevel> vmaps = vmap_levels();
};

constexpr KeySet kModeKeys = KeySet(Key::kFunctionMode) | Key::kDispatchMode | Key::kObserver;

/// Returns `state` with the modes, observers and phase of the calling thread, which runs backward.
ThreadState with_modes_of_now(ThreadState state) {
  const ThreadState now = ThreadState::capture();
  state.keys.included = (state.keys.included - kModeKeys) | (now.keys.included & kModeKeys);
  state.modes = now.modes;
  state.observer = now.observer;
  state.phase = now.phase;
  return state;
}

/// Disables the cache of casts: a cached cast would have a history that recomputation loses.
AutocastState without_cache(AutocastState state) {
  state.cache_enabled = false;
  return state;
}

/// While alive, the thread is recomputing in `state`.
class RecomputingGuard {
 public:
  RecomputingGuard(const ForwardState& state, bool with_random)
      : thread_(with_modes_of_now(state.thread)),
        autocast_(without_cache(state.autocast)),
        no_vmaps_(0),
        recomputing_(t_recomputing, true) {
    for (const VmapLevel& level : state.vmaps) {
      vmaps_.push_back(std::make_unique<VmapLevelGuard>(level.batch, level.randomness));
    }
    if (with_random) default_generator().set_state(state.random);
  }
  ~RecomputingGuard() {
    while (!vmaps_.empty()) vmaps_.pop_back();
  }
  RecomputingGuard(const RecomputingGuard&) = delete;
  RecomputingGuard& operator=(const RecomputingGuard&) = delete;

 private:
  ThreadStateGuard thread_;
  AutocastStateGuard autocast_;
  OuterVmapsGuard no_vmaps_;
  std::vector<std::unique_ptr<VmapLevelGuard>> vmaps_;
  RandomStateGuard random_;
  ScopedValue<bool> recomputing_;
};

/// Thrown through the function to stop it once no more of its tensors are needed.
struct EarlyStop {};

/// Another tensor over the same elements, without a history.
Tensor detached(const Tensor& tensor) {
  return alias_tensor(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset(),
                      tensor.dtype(), false);
}

/// An input of a checkpoint: the unbatched tensor that autograd tracks, and its vmap levels.
class KeptTensor {
 public:
  explicit KeptTensor(Tensor tensor) {
    while (const Batched* batched = tensor.defined() ? find_batched(tensor) : nullptr) {
      batches_.push_back({batched->dim, batched->depth});
      tensor = Tensor(batched->whole);
    }
    saved_ = SavedTensor::argument(tensor);
    requires_grad_ = tensor.defined() && tensor.requires_grad();
  }

  /// Returns a new leaf with the same elements.
  Tensor unpack() const {
    const NoGradGuard no_grad;
    const Tensor tensor = saved_.unpack("checkpoint", nullptr);
    if (!tensor.defined()) return tensor;
    const Tensor fresh = detached(tensor);
    if (requires_grad_) fresh.set_requires_grad();
    return fresh;
  }
  /// Returns `fresh` batched at the levels of the original input; the vmaps of forward must run.
  Tensor batched(Tensor fresh) const {
    for (size_t i = batches_.size(); i > 0; --i) {
      fresh = batched_tensor(fresh, batches_[i - 1].dim, batches_[i - 1].depth);
    }
    return fresh;
  }

 private:
  struct Batch {
    int64_t dim;
    size_t depth;
  };
  SavedTensor saved_;
  bool requires_grad_ = false;
  SmallVector<Batch, 1> batches_;  ///< innermost vmap first
};

}  // namespace

bool is_recomputing() noexcept { return t_recomputing; }

namespace detail {

/// Placeholder in the graph for a tensor that forward saved.
struct CheckpointedTensor {
  explicit CheckpointedTensor(std::shared_ptr<CheckpointFrame> of, const Tensor& tensor)
      : frame(std::move(of)),
        sizes(tensor.sizes()),
        dtype(tensor.dtype()),
        device(tensor.device()) {}

  std::shared_ptr<CheckpointFrame> frame;
  Dims sizes;
  DType dtype;
  Device device;
  // Set by recomputation until it is used; guarded by the frame's lock.
  Tensor value;
  uint32_t version = 0;
};

/// State of one call of checkpoint(). Owned by the graph's saved tensors, to which it holds weak
/// references.
class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  CheckpointFrame(const CheckpointOptions& options, TensorList inputs,
                  std::function<void(TensorList)> function)
      : options_(options), function_(std::move(function)) {
    for (const Tensor& input : inputs) inputs_.emplace_back(input);
  }

  /// In forward: returns the placeholder to save instead of `tensor`.
  std::shared_ptr<CheckpointedTensor> pack(const Tensor& tensor) {
    auto packed = std::make_shared<CheckpointedTensor>(shared_from_this(), tensor);
    const MutexLock lock(mutex_);
    saved_.push_back(packed);
    return packed;
  }
  void finish() { finished_ = true; }
  /// The mode that keeps results of products in forward; null if they are not to be kept.
  std::unique_ptr<DispatchMode> keeping_mode() {
    if (!options_.keep_products) return nullptr;
    return std::make_unique<KeptResults::Recording>(products_, options_.recompute_gelu);
  }

  /// Returns the tensor that was packed. If it is not available, recomputes it together with all
  /// others that may still be requested.
  Tensor unpack(CheckpointedTensor& wanted);

 private:
  class Recomputation;

  void recompute() LS_REQUIRES(mutex_);
  /// Frees what was computed again and not asked for.
  void forget();

  CheckpointOptions options_;
  std::function<void(TensorList)> function_;
  std::vector<KeptTensor> inputs_;
  KeptResults products_;
  ForwardState state_;
  // Threads may run backward through one graph at once; one recomputation may unpack inputs that
  // another checkpoint computes, but never leads back to this one on another thread.
  RecursiveMutex mutex_;
  std::vector<std::weak_ptr<CheckpointedTensor>> saved_
      LS_GUARDED_BY(mutex_);  ///< in the order of forward
  bool finished_ = false;
};

/// Receives the tensors that the function saves when it runs again.
class CheckpointFrame::Recomputation {
 public:
  explicit Recomputation(const CheckpointFrame& frame) : frame_(frame) {
    for (size_t i = 0; i < frame.saved_.size(); ++i) {
      if (!frame.saved_[i].expired()) needed_ = i + 1;
    }
  }

  void take(const Tensor& tensor) {
    frame_.mutex_.assert_held();  // by unpack(), during the whole recomputation
    const size_t i = next_++;
    if (i < needed_) {
      if (const auto packed = frame_.saved_[i].lock()) fill(*packed, tensor, i);
    }
    if (next_ == needed_ && frame_.options_.early_stop) {
      stopped_ = true;
      throw EarlyStop();
    }
  }
  bool stopped() const { return stopped_; }

  void check_complete() const {
    frame_.mutex_.assert_held();
    if (stopped_) return;
    const size_t expected = frame_.saved_.size();
    const bool more = next_ > expected && frame_.finished_ && frame_.options_.determinism_check;
    LS_CHECK(next_ >= needed_ && !more, AutogradError,
             "[checkpoint] recomputation did not do what forward did: expected it to save {} "
             "tensors, got {}. The function must compute the same when it is called again.",
             expected, next_);
  }

 private:
  void fill(CheckpointedTensor& packed, const Tensor& tensor, size_t i) const {
    const bool alike = same(tensor.sizes(), packed.sizes) && tensor.dtype() == packed.dtype &&
                       tensor.device() == packed.device;
    LS_CHECK(alike || !frame_.options_.determinism_check, AutogradError,
             "[checkpoint] recomputation did not do what forward did: expected {}{} on {} as the "
             "{}. tensor that it saves, got {}. The function must compute the same when it is "
             "called again.",
             to_string(packed.dtype), to_string(packed.sizes), to_string(packed.device), i + 1,
             to_string(tensor));
    packed.value = detached(tensor);
    packed.version = packed.value.version();  // a parameter that was moved counts from elsewhere
  }

  const CheckpointFrame& frame_;
  size_t needed_ = 0;  ///< 1 + index of the last saved tensor that is still referenced
  size_t next_ = 0;
  bool stopped_ = false;
};

void CheckpointFrame::recompute() {
  std::vector<Tensor> inputs;
  for (const KeptTensor& kept : inputs_) inputs.push_back(kept.unpack());
  Recomputation recomputation(*this);
  const RecomputingGuard state(state_, options_.preserve_rng_state);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = inputs_[i].batched(inputs[i]);
  const SavedTensorHooksGuard hooks(
      {.pack = [&](const Tensor& tensor) -> std::any {
         recomputation.take(tensor);
         return tensor;
       },
       .unpack = [](const std::any& packed) { return std::any_cast<const Tensor&>(packed); }});
  KeptResults::Replay products(products_);
  std::optional<ModeGuard> instead_of_products;
  if (options_.keep_products) instead_of_products.emplace(products);
  try {
    function_(inputs);
  } catch (...) {
    // Not only EarlyStop: a plug-in's C interface, for example, may have converted the exception.
    if (!recomputation.stopped()) throw;
  }
  recomputation.check_complete();
}

void CheckpointFrame::forget() {
  const MutexLock lock(mutex_);
  for (const std::weak_ptr<CheckpointedTensor>& saved : saved_) {
    if (const auto packed = saved.lock()) packed->value = {};
  }
}

Tensor CheckpointFrame::unpack(CheckpointedTensor& wanted) {
  const MutexLock lock(mutex_);
  if (!wanted.value.defined() || wanted.value.version() != wanted.version) {
    recompute();
    if (GraphRun::node_of_this_thread()) {
      queue_callback([weak = weak_from_this()] {
        if (const auto frame = weak.lock()) frame->forget();
      });
    }
    LS_CHECK(wanted.value.version() == wanted.version, AutogradError,
             "[checkpoint] a tensor needed for a gradient was changed in place after it was used: "
             "{}, expected at version {}, got version {}. Change a clone() instead.",
             to_string(wanted.value), wanted.version, wanted.value.version());
  }
  return std::exchange(wanted.value, {});
}

namespace {

using Packed = std::shared_ptr<CheckpointedTensor>;

SavedTensorHooks hooks_of(const std::shared_ptr<CheckpointFrame>& frame) {
  return {.pack = [frame](const Tensor& tensor) -> std::any { return frame->pack(tensor); },
          .unpack =
              [](const std::any& any) {
                const Packed& packed = std::any_cast<const Packed&>(any);
                return packed->frame->unpack(*packed);
              }};
}

}  // namespace

CheckpointedForward::CheckpointedForward(const CheckpointOptions& options, TensorList inputs,
                                         std::function<void(TensorList inputs)> again)
    : frame_(std::make_shared<CheckpointFrame>(options, inputs, std::move(again))),
      keeping_(frame_->keeping_mode()),
      hooks_(hooks_of(frame_)) {
  if (keeping_) keeping_guard_.emplace(*keeping_);
}

CheckpointedForward::~CheckpointedForward() { frame_->finish(); }

}  // namespace detail

}  // namespace lockstep

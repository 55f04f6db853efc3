#include "autograd/autocast.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "autograd/cast_source.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/dispatch/dispatcher.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/copy.h"

namespace lockstep {

namespace {

/// Number of autocast regions that are open on this thread.
thread_local constinit int t_depth = 0;

bool is_anywhere_enabled(const AutocastState& state) {
  for (const AutocastState::OnDevice& device : state.devices) {
    if (device.enabled) return true;
  }
  return false;
}

/// Turns dispatch to the kernel below on or off for this thread. Clears the included key instead of
/// excluding it, because exclusion would also disable a region opened inside an operator's body.
void include_key(bool on) {
  KeySet& included = detail::thread_keys.included;
  included = on ? included | Key::kAutocast : included - Key::kAutocast;
}

/// While alive, operators called on this thread do not cast.
class Suspension {
 public:
  Suspension() { include_key(false); }
  ~Suspension() { include_key(true); }
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;
};

/// Key of a cached cast. Includes the grad and inference mode, which decide on the result's
/// history.
struct CastKey {
  const TensorImpl* weight;
  DType dtype;
  bool grad_mode;
  bool inference_mode;
  friend bool operator==(const CastKey&, const CastKey&) = default;
};
struct CastKeyHash {
  size_t operator()(const CastKey& key) const noexcept {
    const size_t modes = (key.grad_mode ? 1u : 0u) + (key.inference_mode ? 2u : 0u);
    return std::hash<const void*>()(key.weight) * 31 + static_cast<size_t>(key.dtype) * 4 + modes;
  }
};
struct KeptCast {
  Tensor weight;  ///< keeps the weight alive, so that no other tensor gets the address in the key
  Tensor result;
  uint32_t version;  ///< version of the weight when it was cast
};
using CastCache = std::unordered_map<CastKey, KeptCast, CastKeyHash>;

CastCache& cast_cache() {
  // On the heap, because thread-locals of the library share a few hundred bytes where a running
  // program loads it (tests/core/base/thread_locals_test.cc).
  thread_local std::unique_ptr<CastCache> cache;
  if (!cache) cache = std::make_unique<CastCache>();
  return *cache;
}

bool is_worth_keeping(const Tensor& tensor) {
  return detail::autocast_state.cache_enabled && tensor.dtype() == DType::kF32 &&
         tensor.requires_grad() && tensor.is_leaf() && !tensor.is_view();
}

/// Takes the place of the kernel of one cast: gives the values that were prepared.
class PreparedValues final : public DispatchMode {
 public:
  explicit PreparedValues(const Tensor& values) : values_(values) {}

  void call(const Operator&, KeySet, Stack& stack) override {
    // A tensor of its own for each call, with the history of that call.
    Tensor result(make_ref<TensorImpl>(values_.storage(), values_.sizes(), values_.strides(),
                                       values_.storage_offset(), values_.dtype()));
    stack.results().push_back(Value(std::move(result)));
  }

 private:
  const Tensor& values_;
};

/// Whether the storage has not been left without memory; on meta, whether it would not be.
bool has_memory(const Storage& storage) {
  return storage.owns_memory() || storage.parent() != nullptr || storage.data() != nullptr;
}

/// Whether a kept cast has the values of the leaf.
bool is_current(const Meta& meta, const Tensor& leaf) {
  return !meta.keeps_cast || meta.cast_version == leaf.version();
}

/// Memory for the cast of a leaf in its row. The first leaf that is cast again takes a new row, to
/// which the others follow: graphs that saved `old`, its last cast, keep the old values.
Tensor place_of_cast(const CastPlace& place, const Tensor& old, const Tensor& leaf, DType dtype) {
  CastRow& row = *place.row;
  const bool was_here = old.defined() && old.storage()->parent() == row.memory.get();
  if (!row.memory || row.dtype != dtype || was_here) {
    row.dtype = dtype;
    row.memory = make_ref<Storage>(row.elements * size_of(dtype), leaf.device());
  }
  const size_t bytes = static_cast<size_t>(leaf.numel()) * size_of(dtype);
  auto window = make_ref<Storage>(row.memory, place.first * size_of(dtype), bytes);
  return Tensor(make_ref<TensorImpl>(std::move(window), leaf.sizes(),
                                     contiguous_strides(leaf.sizes()), int64_t{0}, dtype));
}

/// Casts a leaf whose casts are kept, unless that was done since it last changed.
void update_kept_cast(Meta& meta, const Tensor& leaf, DType dtype) {
  Tensor& kept = meta.prepared_cast;
  if (kept.defined() && kept.dtype() == dtype && is_current(meta, leaf)) return;
  const NoGradGuard no_grad;
  if (meta.cast_place) {
    kept = place_of_cast(*meta.cast_place, kept, leaf, dtype);
    copy_(kept, leaf);
  } else {
    kept = {};  // its memory may serve the new one; graphs that saved it keep the old values
    kept = to(leaf, dtype);
  }
  meta.cast_version = leaf.version();
}

Tensor converted(const Tensor& tensor, DType dtype) {
  Meta* const meta = find_meta(tensor);
  // A cast made in inference mode could not be saved for backward.
  if (meta != nullptr && meta->keeps_cast && !is_inference_mode_enabled()) {
    update_kept_cast(*meta, tensor, dtype);
  }
  const Tensor prepared = meta == nullptr ? Tensor() : meta->prepared_cast;
  if (!prepared.defined() || prepared.dtype() != dtype || !has_memory(*prepared.storage()) ||
      !is_current(*meta, tensor)) {
    return to(tensor, dtype);
  }
  PreparedValues values(prepared);
  const ModeGuard instead_of_the_kernel(values);
  return to(tensor, dtype);
}

/// Casts to another dtype than the tensor's.
Tensor cast(const Tensor& tensor, DType dtype) {
  if (detail::cast_source != nullptr) [[unlikely]] {
    if (Tensor given = detail::cast_source->cast(tensor, dtype); given.defined()) return given;
  }
  if (is_recording()) return to(tensor, dtype);  // of the elements that it has in each run
  if (!is_worth_keeping(tensor)) return converted(tensor, dtype);
  const CastKey key{tensor.impl(), dtype, is_grad_enabled(), is_inference_mode_enabled()};
  CastCache& cache = cast_cache();
  const auto found = cache.find(key);
  if (found != cache.end() && found->second.version == tensor.version()) {
    return found->second.result;
  }
  Tensor result = converted(tensor, dtype);
  cache.insert_or_assign(key, KeptCast{tensor, result, tensor.version()});
  return result;
}

/// The casts of one call's arguments.
class Casting {
 public:
  Casting(Autocast kind, std::span<const Value> arguments) : kind_(kind) {
    if (kind != Autocast::kPromote) return;
    for (const Value& value : arguments) {
      each_tensor(value, [&](const Tensor& tensor) { widen(tensor); });
    }
  }

  bool changes(const Tensor& tensor) const {
    return is_eligible(tensor) && target(tensor) != tensor.dtype();
  }
  bool changes(const Value& value) const {
    bool changes_one = false;
    each_tensor(value, [&](const Tensor& tensor) { changes_one |= changes(tensor); });
    return changes_one;
  }
  /// Returns the cast argument for one that `changes`.
  Value apply(const Value& value) const {
    return map_tensors(value, [&](const Tensor& tensor) { return apply(tensor); });
  }

 private:
  static bool is_eligible(const Tensor& tensor) {
    return tensor.defined() && is_floating(tensor.dtype()) && tensor.dtype() != DType::kF64 &&
           is_autocast_enabled(tensor.device().type);
  }
  DType target(const Tensor& tensor) const {
    switch (kind_) {
      case Autocast::kLowerPrecision:
        return autocast_dtype(tensor.device().type);
      case Autocast::kF32:
        return DType::kF32;
      case Autocast::kPromote:
        return *widest_;
      case Autocast::kNone:
        break;
    }
    return tensor.dtype();
  }
  Tensor apply(const Tensor& tensor) const {
    return changes(tensor) ? cast(tensor, target(tensor)) : tensor;
  }
  void widen(const Tensor& tensor) {
    if (!is_eligible(tensor)) return;
    widest_ = widest_ ? promote(*widest_, tensor.dtype()) : tensor.dtype();
  }

  Autocast kind_;
  std::optional<DType> widest_;  ///< widest dtype of the eligible tensors, for kPromote
};

/// The kernel at Key::kAutocast of every operator with an autocast class.
void autocast_kernel(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet below = keys & KeySet::below(Key::kAutocast);
  if (below.empty()) op.throw_missing(below);
  const Suspension inside;
  const std::span<Value> given = stack.arguments();
  const Casting casting(op.autocast(), given);
  // The caller's values are not changed: outer modes may read them after the call.
  SmallVector<Value, 10> arguments;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!casting.changes(given[i])) continue;
    if (arguments.empty()) {
      for (const Value& value : given) arguments.push_back(value);
    }
    arguments[i] = casting.apply(given[i]);
  }
  if (arguments.empty()) return op.redispatch_boxed(below, stack);
  Stack cast_stack({arguments.data(), arguments.size()});
  op.redispatch_boxed(below, cast_stack);
  stack.results() = std::move(cast_stack.results());
}

const Registration kAutocast =
    dispatcher().register_fallback(Key::kAutocast, {&autocast_kernel, {__FILE__, __LINE__}});

AutocastState with(DeviceType type, bool enabled, DType dtype, bool cache_enabled) {
  LS_CHECK(dtype == DType::kBF16 || dtype == DType::kF16, DTypeError,
           "[autocast] expected bfloat16 or float16, got {}.", to_string(dtype));
  AutocastState state = autocast_state();
  state.on(type) = {enabled, dtype};
  state.cache_enabled = cache_enabled;
  return state;
}

}  // namespace

AutocastStateGuard::AutocastStateGuard(const AutocastState& state) noexcept
    : state_(detail::autocast_state, state),
      was_included_(detail::thread_keys.included.has(Key::kAutocast)) {
  ++t_depth;
  include_key(is_anywhere_enabled(state));
}

AutocastStateGuard::~AutocastStateGuard() {
  include_key(was_included_);
  if (--t_depth == 0) clear_autocast_cache();
}

AutocastGuard::AutocastGuard(DeviceType type, bool enabled, DType dtype, bool cache_enabled)
    : state_(with(type, enabled, dtype, cache_enabled)) {}

Tensor autocast_cast(const Tensor& tensor, DType dtype) { return cast(tensor, dtype); }

void set_prepared_cast(const Tensor& weight, const Tensor& cast) {
  if (cast.defined()) {
    LS_CHECK(same(cast.sizes(), weight.sizes()) && cast.is_contiguous(), ShapeError,
             "[autocast] a prepared cast: expected a dense tensor of sizes {}, got {}.",
             weight.shape(), cast.shape());
    LS_CHECK(is_floating(cast.dtype()) && cast.device() == weight.device(), DTypeError,
             "[autocast] a prepared cast: expected a floating dtype on {}, got {}.",
             to_string(weight.device()), to_string(cast));
  }
  Meta& meta = meta_of(*weight.impl());
  meta.prepared_cast = cast;
  meta.keeps_cast = false;
}

void keep_cast(const Tensor& weight, bool keep) {
  Meta& meta = meta_of(*weight.impl());
  if (meta.keeps_cast == keep) return;
  meta.prepared_cast = {};
  if (meta.cast_place) meta.cast_place->row->memory = {};
  meta.keeps_cast = keep;
}

void keep_casts_side_by_side(TensorList weights) {
  const auto row = std::make_shared<CastRow>();
  for (const Tensor& weight : weights) {
    meta_of(*weight.impl()).cast_place = std::make_unique<CastPlace>(CastPlace{row, row->elements});
    row->elements += static_cast<size_t>(weight.numel());
  }
}

Tensor kept_cast(const Tensor& weight) {
  const Meta* const meta = find_meta(weight);
  return meta != nullptr && meta->keeps_cast && is_current(*meta, weight) ? meta->prepared_cast
                                                                          : Tensor();
}

void renew_kept_cast(const Tensor& weight) {
  meta_of(*weight.impl()).cast_version = weight.version();
}

bool is_cached_cast(const Storage& storage) noexcept {
  return std::ranges::any_of(cast_cache(), [&](const auto& kept) {
    return kept.second.result.storage().get() == &storage;
  });
}

void clear_autocast_cache() noexcept { cast_cache().clear(); }

}  // namespace lockstep

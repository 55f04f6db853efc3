#include "autograd/host_activations.h"

#include <deque>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/pinned.h"
#include "core/tensor/event.h"
#include "core/tensor/stream.h"

namespace lockstep {

namespace {

/// A storage as bytes.
Tensor bytes_of(const Ref<Storage>& storage) {
  const auto bytes = static_cast<int64_t>(storage->bytes());
  return Tensor(make_ref<TensorImpl>(storage, IntList({bytes}), IntList({1}), 0, DType::kU8));
}

/// One storage that a forward saved.
struct Moved {
  int64_t bytes = 0;
  uint32_t version = 0;
  size_t place = 0;      ///< in the order in which storages were saved
  Tensor on_device;      ///< undefined while the bytes are on the host alone
  Stream memory_of;      ///< the stream that on_device was allocated for
  Tensor on_host;        ///< undefined on meta
  Event copied;          ///< to the host
  Event arrived;         ///< back on the device
  bool left = false;     ///< has been away from the device
  bool changed = false;  ///< in place, before it left
};

/// What is kept of a saved tensor.
struct Part {
  std::shared_ptr<Moved> storage;
  Dims sizes;
  Dims strides;
  int64_t offset = 0;
  DType dtype = DType::kF32;
};

}  // namespace

class HostActivations::State {
 public:
  State(Device device, TensorList parameters, const HostActivationsOptions& options)
      : device_(device), options_(options) {
    LS_CHECK(copies() || device.type == DeviceType::kMeta, DeviceError,
             "[host_activations] expected a device with memory of its own, got {}, whose memory is "
             "the host's.",
             to_string(device));
    for (const Tensor& each : parameters) {
      parameters_.push_back(each);
      stays_.insert(each.storage().get());
    }
    if (!copies()) return;
    // None of the pool's, which others may use, too.
    out_.emplace(device);
    back_.emplace(device);
  }

  std::any pack(const Tensor& tensor) {
    if (stays(tensor)) return tensor;
    const MutexLock lock(mutex_);
    std::shared_ptr<Moved> storage = find_on_device(*tensor.storage());
    if (storage == nullptr) storage = take(tensor.storage());
    const TensorImpl& impl = *tensor.impl();
    return Part{std::move(storage), impl.sizes, impl.strides, impl.offset, impl.dtype};
  }

  Tensor unpack(const std::any& packed) {
    if (const Tensor* const tensor = std::any_cast<Tensor>(&packed)) return *tensor;
    const Part& part = std::any_cast<const Part&>(packed);
    const MutexLock lock(mutex_);
    Moved& storage = *part.storage;
    const Stream here = current_stream(device_);
    note_change(storage);
    LS_CHECK(!storage.changed, AutogradError,
             "[host_activations] a tensor of shape {} that was saved for its gradient was changed "
             "in place after it was used. Change a clone() instead.",
             to_string(part.sizes));
    bring_back(storage);
    if (storage.arrived.is_recorded()) here.wait_event(storage.arrived);
    if (!(storage.memory_of == here)) storage.on_device.record_stream(here);
    bring_earlier_ones(storage.place);
    return Tensor(make_ref<TensorImpl>(storage.on_device.storage(), IntList(part.sizes),
                                       IntList(part.strides), part.offset, part.dtype));
  }

  int64_t copied_bytes() {
    const MutexLock lock(mutex_);
    return copied_bytes_;
  }

 private:
  bool copies() const { return is_asynchronous(device_.type); }

  bool stays(const Tensor& tensor) const {
    const Storage& storage = *tensor.storage();
    return !(tensor.device() == device_) || !storage.owns_memory() ||
           static_cast<int64_t>(storage.bytes()) < options_.least_bytes ||
           stays_.contains(&storage) || is_cached_cast(storage);
  }

  std::shared_ptr<Moved> find_on_device(const Storage& storage) const LS_REQUIRES(mutex_) {
    for (const std::weak_ptr<Moved>& each : leaving_) {
      std::shared_ptr<Moved> found = each.lock();
      if (found != nullptr && found->on_device.storage().get() == &storage &&
          found->version == storage.version()) {
        return found;
      }
    }
    return nullptr;
  }

  /// Begins to copy a storage to the host, and lets go of those before it.
  std::shared_ptr<Moved> take(const Ref<Storage>& storage) LS_REQUIRES(mutex_) {
    // Those of the last backward are gone.
    while (!in_order_.empty() && in_order_.back().expired()) in_order_.pop_back();
    auto moved = std::make_shared<Moved>();
    moved->bytes = static_cast<int64_t>(storage->bytes());
    moved->version = storage->version();
    moved->place = in_order_.size();
    moved->on_device = bytes_of(storage);
    moved->memory_of = current_stream(device_);
    copied_bytes_ += moved->bytes;
    if (copies()) {
      moved->on_host = empty_pinned({moved->bytes}, DType::kU8, device_);
      out_->get().wait_stream(current_stream(device_));
      const StreamGuard on_out(out_->get());
      copy_(moved->on_host, moved->on_device, /*non_blocking=*/true);
      moved->copied.record(out_->get());
      moved->on_device.record_stream(out_->get());
    }
    in_order_.push_back(moved);
    leaving_.push_back(moved);
    leaving_bytes_ += moved->bytes;
    leaving_sizes_.push_back(moved->bytes);
    while (leaving_bytes_ > options_.bytes_on_the_way && leaving_.size() > 1) let_go();
    return moved;
  }

  /// Lets the device reuse the memory of the oldest storage that it still holds.
  void let_go() LS_REQUIRES(mutex_) {
    const std::shared_ptr<Moved> oldest = leaving_.front().lock();
    leaving_.pop_front();
    leaving_bytes_ -= leaving_sizes_.front();
    leaving_sizes_.pop_front();
    if (oldest == nullptr || !oldest->on_device.defined() || oldest->left) return;
    note_change(*oldest);
    // The memory serves this stream's next operators, which must come after the copy. This keeps
    // the device from running ahead of the copies, too.
    if (oldest->copied.is_recorded()) current_stream(device_).wait_event(oldest->copied);
    oldest->on_device = {};
    oldest->left = true;
  }

  static void note_change(Moved& moved) {
    if (moved.left || !moved.on_device.defined()) return;
    moved.changed |= moved.on_device.version() != moved.version;
  }

  /// Begins to copy a storage back, unless it is on the device or on its way.
  void bring_back(Moved& moved) LS_REQUIRES(mutex_) {
    if (moved.on_device.defined()) return;
    const NoGradGuard no_grad;
    const Stream here = current_stream(device_);
    moved.on_device = empty({moved.bytes}, {DType::kU8, device_});
    moved.memory_of = here;
    if (!copies()) return;
    back_->get().wait_stream(here);  // work on the memory's last contents
    back_->get().wait_event(moved.copied);
    const StreamGuard on_back(back_->get());
    copy_(moved.on_device, moved.on_host, /*non_blocking=*/true);
    moved.arrived.record(back_->get());
    moved.on_device.record_stream(back_->get());
  }

  /// Backward reads what was saved last first.
  void bring_earlier_ones(size_t place) LS_REQUIRES(mutex_) {
    int64_t ahead = 0;
    while (place-- > 0) {
      const std::shared_ptr<Moved> earlier = in_order_[place].lock();
      if (earlier == nullptr) continue;
      ahead += earlier->bytes;
      if (ahead > options_.bytes_on_the_way) return;
      bring_back(*earlier);
    }
  }

  Device device_;
  HostActivationsOptions options_;
  std::vector<Tensor> parameters_;  ///< alive, so that nothing else has the addresses in stays_
  std::unordered_set<const Storage*> stays_;
  std::optional<OwnedStream> out_, back_;
  Mutex mutex_;
  std::vector<std::weak_ptr<Moved>> in_order_ LS_GUARDED_BY(mutex_);
  std::deque<std::weak_ptr<Moved>> leaving_ LS_GUARDED_BY(mutex_);
  std::deque<int64_t> leaving_sizes_ LS_GUARDED_BY(mutex_);
  int64_t leaving_bytes_ LS_GUARDED_BY(mutex_) = 0;
  int64_t copied_bytes_ LS_GUARDED_BY(mutex_) = 0;
};

HostActivations::HostActivations(Device device, TensorList parameters,
                                 const HostActivationsOptions& options)
    : state_(std::make_shared<State>(device, parameters, options)) {}

HostActivations::~HostActivations() = default;

SavedTensorHooks HostActivations::hooks() const {
  return {.pack = [state = state_](const Tensor& tensor) { return state->pack(tensor); },
          .unpack = [state = state_](const std::any& packed) { return state->unpack(packed); }};
}

int64_t HostActivations::copied_bytes() const { return state_->copied_bytes(); }

}  // namespace lockstep

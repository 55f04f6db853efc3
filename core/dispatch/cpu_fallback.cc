#include "core/dispatch/cpu_fallback.h"

#include <algorithm>
#include <string>

#include "core/base/check.h"
#include "core/base/current_scope.h"
#include "core/base/mutex.h"
#include "core/device/copies.h"
#include "core/device/device_runtime.h"
#include "core/device/slow_paths.h"
#include "core/device/transfer.h"
#include "core/device/waits.h"
#include "core/dispatch/parameters.h"
#include "core/dispatch/value_tensors.h"
#include "core/tensor/byte_range.h"

namespace lockstep {

namespace {

constexpr std::string_view kWhy = "the operator runs on the cpu";
// A multiple of every element size, so that the offset of an element from the start of a window
// aligned to it is a whole number of elements for every dtype.
constexpr int64_t kAlignment = 64;

struct Calls {
  Mutex lock;
  std::map<std::string, int64_t> by_operator LS_GUARDED_BY(lock);
};
Calls& calls() {
  // Never freed: destructors of static objects may call operators.
  static auto* const instance = new Calls;
  return *instance;
}

void count_call(const Operator& op) {
  const MutexLock guard(calls().lock);
  ++calls().by_operator[std::string(op.name())];
}

int64_t element_size(const Tensor& tensor) { return static_cast<int64_t>(size_of(tensor.dtype())); }

std::byte* place(const Storage& storage, int64_t offset) {
  return static_cast<std::byte*>(storage.data()) + offset;
}

/// Whether cpu kernels may access the device's memory once its stream has been waited for.
bool cpu_can_use(Device device) {
  const DeviceRuntime* const runtime = device_runtime(device.type);
  return runtime != nullptr && runtime->runs_cpu_kernels();
}

bool is_foreign(const Tensor& tensor) {
  return tensor.defined() && tensor.device() != kCPU && tensor.device() != kMeta;
}

/// The tensors of one call and their counterparts on the cpu. Tensors that share a storage share
/// one on the cpu as well, so that they overlap as the originals do; only the byte range of the
/// storage that they cover is copied. Where the cpu can use the device's memory, nothing is copied.
class Mirror {
 public:
  Mirror(const Operator& op, Device device) : op_(op), shares_memory_(cpu_can_use(device)) {}

  /// Registers a tensor of the call. Call it for all tensors before the first `counterpart`.
  void add(const Tensor& tensor);
  /// Returns a tensor with the same elements on the cpu; `tensor` itself if it is there already, is
  /// undefined or is on meta.
  Tensor counterpart(const Tensor& tensor);
  /// Copies the contents of `counterpart` back, after resizing `tensor` if an out= form resized it.
  void write_back(const Tensor& tensor, const Tensor& counterpart);
  /// Returns a result of the call on `device`: a view of the argument that `computed` is a view of
  /// on the cpu, else a copy.
  Tensor result(const Tensor& computed, Device device);

 private:
  struct Window {
    Tensor sample;  ///< one of the tensors in the window
    ByteRange range;
    Ref<Storage> storage;  ///< on the cpu; null until the first `counterpart` of the window
  };
  Window* find(const Tensor& tensor);
  void fill(Window& window);

  const Operator& op_;
  bool shares_memory_;
  SmallVector<Window, 4> windows_;
};

Mirror::Window* Mirror::find(const Tensor& tensor) {
  for (Window& window : windows_) {
    if (window.sample.storage() == tensor.storage()) return &window;
  }
  return nullptr;
}

void Mirror::add(const Tensor& tensor) {
  if (!is_foreign(tensor)) return;
  ByteRange range = byte_range(*tensor.impl());
  range.begin -= range.begin % kAlignment;
  Window* window = find(tensor);
  if (window == nullptr) {
    windows_.push_back({tensor, range, {}});
  } else if (window->range.empty()) {
    window->range = range;
  } else if (!range.empty()) {
    window->range.begin = std::min(window->range.begin, range.begin);
    window->range.end = std::max(window->range.end, range.end);
  }
}

void Mirror::fill(Window& window) {
  const size_t bytes = static_cast<size_t>(window.range.end - window.range.begin);
  if (bytes == 0) {
    window.storage = make_ref<Storage>(0, kCPU);
    return;
  }
  std::byte* const memory = place(*window.sample.storage(), window.range.begin);
  if (shares_memory_) {
    window.storage = make_ref<Storage>(memory, bytes, kCPU);
  } else {
    window.storage = make_ref<Storage>(bytes, kCPU);
    transfer_bytes(window.storage->data(), kCPU, memory, window.sample.device(), bytes);
  }
}

Tensor Mirror::counterpart(const Tensor& tensor) {
  if (!is_foreign(tensor)) return tensor;
  Window& window = *find(tensor);
  if (!window.storage) fill(window);
  if (tensor.numel() != 0 && !shares_memory_) count_hidden_copy(op_.name(), tensor, kWhy);
  const int64_t offset =
      tensor.numel() == 0 ? 0 : tensor.storage_offset() - window.range.begin / element_size(tensor);
  const Tensor copy(make_ref<TensorImpl>(window.storage, tensor.sizes(), tensor.strides(), offset,
                                         tensor.dtype()));
  // The counterpart of a view is a view too: out= forms must not resize either.
  return tensor.is_view() ? alias_tensor(copy, copy.sizes(), copy.strides(), offset, copy.dtype(),
                                         /*relate=*/true)
                          : copy;
}

void Mirror::write_back(const Tensor& tensor, const Tensor& counterpart) {
  if (!is_foreign(tensor)) return;
  TensorImpl& impl = *tensor.impl();
  if (!same(impl.sizes, counterpart.sizes())) {
    if (counterpart.nbytes() > impl.storage->bytes()) impl.storage->resize(counterpart.nbytes());
    impl.sizes = to_dims(counterpart.sizes());
    impl.strides = to_dims(counterpart.strides());
    impl.offset = 0;
    impl.refresh();
  }
  const ByteRange to = byte_range(*tensor.impl());
  const ByteRange from = byte_range(*counterpart.impl());
  if (!to.empty() && counterpart.data() != tensor.data()) {
    transfer_bytes(place(*impl.storage, to.begin), tensor.device(),
                   place(*counterpart.storage(), from.begin), kCPU,
                   static_cast<size_t>(to.end - to.begin));
    count_hidden_copy(op_.name(), tensor, kWhy);
  }
  impl.storage->bump_version();
}

Tensor Mirror::result(const Tensor& computed, Device device) {
  if (!computed.defined() || computed.device() == device) return computed;
  for (const Window& window : windows_) {
    if (!(window.storage == computed.storage())) continue;
    const ViewOrigin origin = detail::thread_keys.excluded.has(Key::kAutograd)
                                  ? ViewOrigin::kNoGrad
                                  : ViewOrigin::kRecorded;
    return alias_tensor(window.sample, computed.sizes(), computed.strides(),
                        computed.storage_offset() + window.range.begin / element_size(computed),
                        computed.dtype(), /*relate=*/true, origin);
  }
  if (computed.numel() != 0) count_hidden_copy(op_.name(), computed, kWhy);
  return transferred(computed, device);
}

/// Returns the device of the results: the device option, else the device of the tensors. Throws
/// DeviceError if the tensors are on several devices.
Device result_device(const Operator& op, std::span<const Value> arguments) {
  std::optional<Device> found;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool names_device = op.schema().arguments[i].type.base == BaseType::kDevice;
    if (names_device && !arguments[i].is_none()) return arguments[i].to_device();
  }
  for (const Value& value : arguments) {
    each_tensor(value, [&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      if (!found) found = tensor.device();
      if (tensor.device() != *found) structured::throw_other_device(op, *found, tensor);
    });
  }
  return found.value_or(default_device());
}

Value on_cpu(Mirror& mirror, const Value& value) {
  if (value.tag() == Value::Tag::kDevice) return Value(kCPU);
  return map_tensors(value, [&](const Tensor& tensor) { return mirror.counterpart(tensor); });
}

Value on_device(Mirror& mirror, Value computed, Device device) {
  if (computed.is_tensor()) return Value(mirror.result(computed.take_tensor(), device));
  if (!computed.is_tensor_list()) return computed;
  std::vector<Tensor> list = computed.take_tensors();
  for (Tensor& tensor : list) tensor = mirror.result(tensor, device);
  return Value(std::move(list));
}

void write_back(Mirror& mirror, const Value& value, const Value& counterpart) {
  if (value.is_tensor()) {
    mirror.write_back(value.tensor(), counterpart.tensor());
  } else if (value.is_tensor_list()) {
    for (size_t i = 0; i < value.tensors().size(); ++i) {
      mirror.write_back(value.tensors()[i], counterpart.tensors()[i]);
    }
  }
}

}  // namespace

void cpu_fallback(const Operator& op, KeySet, Stack& stack) {
  count_call(op);
  const std::span<const Value> arguments = stack.arguments();
  const Device device = result_device(op, arguments);
  if (device.type == DeviceType::kCUDA) {
    count_slow_path(fmt::format("[{}] on cuda", op.name()), [] {
      return std::string(
          "it has no kernel for GPUs: each call waits for the GPU and runs on the cpu");
    });
  }
  const OperatorScope scope(op);
  if (cpu_can_use(device)) wait_hidden(op.name(), current_stream(device), kWhy);
  Mirror mirror(op, device);
  for (const Value& value : arguments) {
    each_tensor(value, [&](const Tensor& tensor) { mirror.add(tensor); });
  }
  std::vector<Value> values;
  values.reserve(arguments.size());
  for (const Value& value : arguments) values.push_back(on_cpu(mirror, value));

  Stack cpu_stack(values);
  {
    // Otherwise a factory without a device option would call this fallback again.
    const DefaultDeviceGuard guard(kCPU);
    op.redispatch_boxed(Key::kCPU, cpu_stack);
  }

  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema().arguments[i].written) write_back(mirror, arguments[i], values[i]);
  }
  for (size_t i = 0; i < cpu_stack.results().size(); ++i) {
    const int written = op.schema().written_alias(i);
    if (written >= 0) {
      const Value& argument = arguments[static_cast<size_t>(written)];
      stack.results().push_back(argument.is_tensor() ? Value(argument.tensor())
                                                     : Value(argument.tensors()));
    } else {
      stack.results().push_back(on_device(mirror, std::move(cpu_stack.results()[i]), device));
    }
  }
}

std::map<std::string, int64_t> cpu_fallback_calls() {
  const MutexLock guard(calls().lock);
  return calls().by_operator;
}

Registration register_cpu_fallback(Key key, std::source_location where) {
  LS_CHECK(KeySet::backends().has(key) && key != Key::kCPU && key != Key::kMeta, DispatchError,
           "[cpu_fallback] {} cannot fall back to the cpu: expected the key of another backend.",
           name(key));
  return dispatcher().register_fallback(key, {&cpu_fallback, {where.file_name(), where.line()}});
}

}  // namespace lockstep

// Host functions for kernels on devices with streams: the stream, scratch memory and launches.

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/cuda/launch.h"
#include "core/device/device_runtime.h"
#include "core/device/kernel_scope.h"
#include "core/plugin/plugin_call.h"

namespace lockstep {

namespace {

// The table of version 2 ended here.
static_assert(offsetof(ls_host, cuda_stream) ==
              offsetof(ls_host, parallel_for) + sizeof(ls_host::parallel_for));

constexpr size_t kMostParameterBytes = 4096;

void check_in_kernel(const ls_call* call, const char* function) {
  LS_CHECK(call->packed != nullptr, DispatchError, "[{}] {} is for kernels alone.", call->op.name(),
           function);
}

/// The stream that the kernel must queue its work on.
Stream cuda_stream_of(const ls_call* call, const char* function) {
  check_in_kernel(call, function);
  LS_CHECK(call->packed->device.type == DeviceType::kCUDA, DeviceError,
           "[{}] {} is for kernels of LS_BACKEND_CUDA: this call is on {}.", call->op.name(),
           function, to_string(call->packed->device));
  return kernel_stream();
}

int cuda_stream(ls_call* call, int32_t* device, void** stream) {
  return guarded([&] {
    const Stream on = cuda_stream_of(call, "cuda_stream");
    if (device != nullptr) *device = on.device.index;
    if (stream != nullptr) *stream = require_runtime(on.device).native(on);
  });
}

int allocate(ls_call* call, size_t bytes, void** memory) {
  return guarded([&] {
    check_in_kernel(call, "allocate");
    // Kernels of other devices run synchronously, on memory of the cpu.
    const Stream on =
        call->packed->device.type == DeviceType::kCUDA ? kernel_stream() : default_stream(kCPU);
    const Block block = allocator(on.device).allocate(bytes, on);
    if (block.owner != nullptr) call->memory.blocks.push_back(block);
    *memory = block.data;
  });
}

int deallocate(ls_call* call, void* memory) {
  return guarded([&] {
    check_in_kernel(call, "deallocate");
    if (memory == nullptr) return;
    auto& blocks = call->memory.blocks;
    const auto found = std::ranges::find(blocks, memory, &Block::data);
    LS_CHECK(found != blocks.end(), DeviceError,
             "[{}] deallocate: {} is not on loan: expected what allocate gave in this call.",
             call->op.name(), memory);
    found->owner->free(*found);
    blocks.erase(found);
  });
}

int launch(ls_call* call, const void* image, const char* kernel, const ls_launch_shape* shape,
           const void* parameters, size_t parameter_bytes) {
  return guarded([&] {
    const Stream on = cuda_stream_of(call, "launch");
    const std::string& op = call->op.name();
    LS_CHECK(image != nullptr && kernel != nullptr && parameters != nullptr, DispatchError,
             "[{}] launch: expected a module, a kernel's name and parameters, got NULL.", op);
    LS_CHECK(shape != nullptr && shape->size >= sizeof(ls_launch_shape), DispatchError,
             "[{}] launch: the shape's size is not set: expected {}.", op, sizeof(ls_launch_shape));
    LS_CHECK(parameter_bytes <= kMostParameterBytes, DispatchError,
             "[{}] launch: expected at most {} bytes of parameters, got {}.", op,
             kMostParameterBytes, parameter_bytes);
    static_cast<const PluginFunction*>(call->packed->data)->images->note(image);
    try {
      cuda::launch(on, image, kernel,
                   {.blocks = {shape->blocks[0], shape->blocks[1], shape->blocks[2]},
                    .threads = shape->threads[0],
                    .shared_bytes = shape->shared_bytes,
                    .threads_y = shape->threads[1],
                    .threads_z = shape->threads[2]},
                   {static_cast<const std::byte*>(parameters), parameter_bytes});
    } catch (const DeviceError& error) {
      throw DeviceError(fmt::format("[{}] cannot launch \"{}\": {}", op, kernel, error.what()));
    }
  });
}

}  // namespace

PluginMemory::~PluginMemory() {
  for (const Block& block : blocks) block.owner->free(block);
}

PluginImages::~PluginImages() {
  const std::vector<const void*> images(seen_.begin(), seen_.end());
  cuda::unload(images);
}

void PluginImages::note(const void* image) {
  const MutexLock lock(mutex_);
  seen_.insert(image);
}

void add_device_functions(ls_host& host) {
  host.cuda_stream = &cuda_stream;
  host.allocate = &allocate;
  host.deallocate = &deallocate;
  host.launch = &launch;
}

}  // namespace lockstep

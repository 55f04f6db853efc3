// The functions of FakeDriver's table for devices, streams, events and kernels; those for graphs
// are in fake_driver_graphs.cc, those for memory in fake_driver_memory.cc.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "tests/emulation/block.h"
#include "tests/emulation/fake_cupti.h"
#include "tests/emulation/fake_driver.h"
#include "tests/emulation/fake_driver_entry.h"
#include "tests/emulation/modules.h"
#include "tests/emulation/queued_work.h"

namespace lockstep::cuda {

namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

}  // namespace

/// Implementations of the table's functions; each takes the lock on entry.
struct FakeDriver::Calls {
  static CUresult init(unsigned) {
    LS_FAKE("cuInit");
    return CUDA_SUCCESS;
  }
  static CUresult version(int* version) {
    *version = the_one_->version_;
    return CUDA_SUCCESS;
  }
  static CUresult error_name(CUresult error, const char** name) {
    switch (error) {
#define LS_NAMED(code) \
  case code:           \
    *name = #code;     \
    return CUDA_SUCCESS
      LS_NAMED(CUDA_ERROR_OUT_OF_MEMORY);
      LS_NAMED(CUDA_ERROR_ILLEGAL_ADDRESS);
      LS_NAMED(CUDA_ERROR_INVALID_CONTEXT);
      LS_NAMED(CUDA_ERROR_INVALID_VALUE);
      LS_NAMED(CUDA_ERROR_LAUNCH_FAILED);
      LS_NAMED(CUDA_ERROR_NOT_FOUND);
      LS_NAMED(CUDA_ERROR_NOT_PERMITTED);
      LS_NAMED(CUDA_ERROR_SYSTEM_NOT_READY);
      LS_NAMED(CUDA_ERROR_CAPTURED_EVENT);
      LS_NAMED(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      LS_NAMED(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
      LS_NAMED(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
      LS_NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
#undef LS_NAMED
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  static CUresult error_text(CUresult error, const char** text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "what the driver says";
    const std::string& found = the_one_->kernel_error_;
    if (error == CUDA_ERROR_LAUNCH_FAILED && !found.empty()) *text = found.c_str();
    return CUDA_SUCCESS;
  }
  static CUresult device_count(int* count) {
    LS_FAKE("cuDeviceGetCount");
    *count = static_cast<int>(fake.contexts_.size());
    return CUDA_SUCCESS;
  }
  static CUresult device(CUdevice* device, int index) {
    LS_FAKE("cuDeviceGet");
    *device = index;
    return CUDA_SUCCESS;
  }
  static CUresult device_name(char* name, int length, CUdevice device) {
    // One name for all stand-in devices: results have the same bits on each.
    const std::string text =
        the_one_->stands_in_ ? "Emulated GPU" : "Fake " + std::to_string(device);
    std::strncpy(name, text.c_str(), static_cast<size_t>(length));
    return CUDA_SUCCESS;
  }
  static CUresult bus(char* text, int length, CUdevice device) {
    std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", 0xe0 + device);
    return CUDA_SUCCESS;
  }
  static CUresult uuid(CUuuid* uuid, CUdevice device) {
    *uuid = {};
    uuid->bytes[0] = static_cast<char>(0xe0);
    uuid->bytes[15] = static_cast<char>(device);
    return CUDA_SUCCESS;
  }
  static CUresult can_access(int* can, CUdevice device, CUdevice peer) {
    *can = static_cast<int>(device != peer && the_one_->has_peers_);
    return CUDA_SUCCESS;
  }
  static CUresult enable_access(CUcontext peer, unsigned flags) {
    LS_FAKE_DEVICE("cuCtxEnablePeerAccess");
    if (flags != 0 || peer == current_) return fake.refuse("peer access of a device to itself");
    if (!fake.has_peers_) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    const bool is_new = fake.peers_.emplace(current_, peer).second;
    return is_new ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  }
  static CUresult attribute(int* value, CUdevice_attribute attribute, CUdevice) {
    switch (attribute) {
#define LS_GIVES(name, number)         \
  case CU_DEVICE_ATTRIBUTE_##name:     \
    *value = static_cast<int>(number); \
    return CUDA_SUCCESS
      LS_GIVES(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, the_one_->has_granules_);
      LS_GIVES(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, the_one_->is_exportable_);
      LS_GIVES(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, the_one_->is_rdma_capable_);
      LS_GIVES(MULTICAST_SUPPORTED, 1);
      LS_GIVES(COMPUTE_CAPABILITY_MAJOR, 9);
      LS_GIVES(COMPUTE_CAPABILITY_MINOR, 0);
      LS_GIVES(MULTIPROCESSOR_COUNT, 4);
      LS_GIVES(WARP_SIZE, emulation::kWarp);
      LS_GIVES(MAX_THREADS_PER_BLOCK, emulation::kMostThreads);
      LS_GIVES(MAX_THREADS_PER_MULTIPROCESSOR, 2048);
      LS_GIVES(MAX_BLOCKS_PER_MULTIPROCESSOR, 32);
      LS_GIVES(MAX_REGISTERS_PER_BLOCK, 65536);
      LS_GIVES(MAX_BLOCK_DIM_X, 1024);
      LS_GIVES(MAX_BLOCK_DIM_Y, 1024);
      LS_GIVES(MAX_BLOCK_DIM_Z, 64);
      LS_GIVES(MAX_GRID_DIM_X, 0x7fffffff);
      LS_GIVES(MAX_GRID_DIM_Y, 65535);
      LS_GIVES(MAX_GRID_DIM_Z, 65535);
      LS_GIVES(MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10);
      LS_GIVES(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, emulation::kMostSharedBytes);
      LS_GIVES(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10);
      LS_GIVES(RESERVED_SHARED_MEMORY_PER_BLOCK, 1 << 10);
      LS_GIVES(L2_CACHE_SIZE, 50 << 20);
      LS_GIVES(CLOCK_RATE, 1'000'000);
      LS_GIVES(MEMORY_CLOCK_RATE, 1'000'000);
      LS_GIVES(GLOBAL_MEMORY_BUS_WIDTH, 4096);
#undef LS_GIVES
      default:
        return the_one_->refuse("asks for an attribute of the device that is not kept here");
    }
  }
  static CUresult total(size_t* bytes, CUdevice) {
    LS_FAKE("cuDeviceTotalMem");
    *bytes = fake.memory_;
    return CUDA_SUCCESS;
  }
  static CUresult retain(CUcontext* context, CUdevice device) {
    LS_FAKE("cuDevicePrimaryCtxRetain");
    ++fake.contexts_[static_cast<size_t>(device)];
    *context = primary(device);
    return CUDA_SUCCESS;
  }
  static CUresult release_context(CUdevice device) {
    LS_FAKE("cuDevicePrimaryCtxRelease");
    if (--fake.contexts_[static_cast<size_t>(device)] < 0) return fake.refuse("context released");
    return CUDA_SUCCESS;
  }
  static CUresult get_current(CUcontext* context) {
    *context = current_;
    return CUDA_SUCCESS;
  }
  static CUresult put_current(CUcontext context) {
    LS_FAKE("cuCtxSetCurrent");
    ++fake.context_switches_;
    current_ = context;
    return CUDA_SUCCESS;
  }
  static CUresult finish_context() {
    LS_FAKE_WAIT("cuCtxSynchronize");
    for (auto& [key, stream] : fake.streams_) {
      if (stream->device != fake.device_of(current_)) continue;
      if (stream->capture != nullptr) return unsupported(*stream);
      fake.run_to_the_end(lock, *stream, nullptr, [&] { return stream->tasks.empty(); });
    }
    return fake.poison_;
  }

  // Streams and events.
  static CUresult create_stream(CUstream* out, unsigned flags, int priority) {
    LS_FAKE_DEVICE("cuStreamCreateWithPriority");
    if (flags != CU_STREAM_NON_BLOCKING) return fake.refuse("a stream that waits for the null one");
    auto stream = std::make_unique<Stream>();
    stream->device = fake.device_of(current_);
    stream->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    *out = reinterpret_cast<CUstream>(stream.get());
    fake.streams_.emplace(stream.get(), std::move(stream));
    ++fake.streams_made_;
    return CUDA_SUCCESS;
  }
  static CUresult destroy_stream(CUstream handle) {
    LS_FAKE_DEVICE("cuStreamDestroy");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr || stream->foreign) return fake.refuse("destroys a stream not its own");
    if (!stream->tasks.empty()) fake.refuse("destroys a stream with work");
    if (stream->capture != nullptr) return unsupported(*stream);
    fake.streams_.erase(stream);
    return CUDA_SUCCESS;
  }
  static CUresult stream_device(CUstream handle, CUdevice* device) {
    LS_FAKE_DEVICE("cuStreamGetDevice");
    const Stream* const stream = fake.find(handle, /*of_current_device=*/false);
    if (stream == nullptr) return fake.refuse("asks for the device of no stream");
    *device = stream->device;
    return CUDA_SUCCESS;
  }
  static CUresult stream_priority(CUstream handle, int* priority) {
    LS_FAKE_DEVICE("cuStreamGetPriority");
    const Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("asks for the priority of no stream");
    *priority = stream->priority;
    return CUDA_SUCCESS;
  }
  static CUresult query_stream(CUstream handle) {
    LS_FAKE_DEVICE("cuStreamQuery");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("queries no stream");
    if (stream->capture != nullptr) return unsupported(*stream);
    if (!stream->tasks.empty() && fake.is_waited_for()) fake.run_until_done(*stream);
    return stream->tasks.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult finish_stream(CUstream handle) {
    LS_FAKE_WAIT("cuStreamSynchronize");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("waits for no stream");
    if (stream->capture != nullptr) return unsupported(*stream);
    fake.run_to_the_end(lock, *stream, nullptr, [&] { return stream->tasks.empty(); });
    return fake.poison_;
  }
  static CUresult wait_event(CUstream handle, CUevent event_handle, unsigned) {
    LS_FAKE_DEVICE("cuStreamWaitEvent");
    Stream* const stream = fake.find(handle);
    const Event* const event = fake.find(event_handle);
    if (stream == nullptr || event == nullptr) return fake.refuse("a wait of nothing for nothing");
    if (event->capture != nullptr || (stream->capture != nullptr && event->mark != nullptr)) {
      return fake.wait_captured(*stream, *event);
    }
    if (event->mark != nullptr) stream->tasks.push_back({.run = nullptr, .wait_for = event->mark});
    return CUDA_SUCCESS;
  }
  static CUresult create_event(CUevent* out, unsigned flags) {
    LS_FAKE_DEVICE("cuEventCreate");
    auto event = std::make_unique<Event>();
    event->device = fake.device_of(current_);
    event->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *out = reinterpret_cast<CUevent>(event.get());
    fake.events_.emplace(event.get(), std::move(event));
    ++fake.events_made_;
    return CUDA_SUCCESS;
  }
  static CUresult destroy_event(CUevent event) {
    LS_FAKE("cuEventDestroy");
    if (fake.events_.erase(fake.find(event)) == 0) return fake.refuse("destroys no event");
    return CUDA_SUCCESS;
  }
  static CUresult record(CUevent event_handle, CUstream handle) {
    LS_FAKE_DEVICE("cuEventRecord");
    Stream* const stream = fake.find(handle);
    Event* const event = fake.find(event_handle);
    if (stream == nullptr || event == nullptr) return fake.refuse("records nothing");
    if (stream->device != event->device) return fake.refuse("event and stream of two devices");
    event->capture = stream->capture;
    event->after = stream->after;
    event->mark = nullptr;
    if (stream->capture != nullptr) return CUDA_SUCCESS;
    auto mark = std::make_shared<Mark>();
    mark->stream = stream;
    event->mark = mark;
    stream->tasks.push_back({[mark, &fake] {
                               mark->done = true;
                               mark->time = fake.time_;
                             },
                             nullptr, false});
    return CUDA_SUCCESS;
  }
  static CUresult query_event(CUevent handle) {
    LS_FAKE_DEVICE("cuEventQuery");
    const Event* const event = fake.find(handle);
    if (event == nullptr) return fake.refuse("queries no event");
    if (event->capture != nullptr) return captured(*event);
    if (event->mark != nullptr && !event->mark->done && fake.is_waited_for()) {
      fake.run_until_done(*event->mark->stream, event->mark.get());
    }
    return event->mark == nullptr || event->mark->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult finish_event(CUevent handle) {
    LS_FAKE_WAIT("cuEventSynchronize");
    const Event* const event = fake.find(handle);
    if (event == nullptr) return fake.refuse("waits for no event");
    if (event->capture != nullptr) return captured(*event);
    if (const std::shared_ptr<Mark> mark = event->mark) {
      fake.run_to_the_end(lock, *mark->stream, mark.get(), [&] { return mark->done; });
    }
    return fake.poison_;
  }
  static CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
    LS_FAKE_DEVICE("cuEventElapsedTime");
    const Event* const from = fake.find(start);
    const Event* const to = fake.find(end);
    if (!from->timing || !to->timing || !from->mark || !to->mark) {
      return fake.refuse("time of an event without");
    }
    if (!from->mark->done || !to->mark->done) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(to->mark->time - from->mark->time);
    return CUDA_SUCCESS;
  }

  // Copies, launches and other work.
  static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
    LS_FAKE_DEVICE("cuMemcpyAsync");
    emulation::note_queued("copy");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("copies on no stream");
    if (!fake.may_use(stream->device, to, bytes) || !fake.may_use(stream->device, from, bytes)) {
      return fake.refuse("copies mapped memory to which the device has no access");
    }
    const emulation::NotedCall call("cuMemcpyAsync");
    const emulation::QueuedPiece piece{.kind = emulation::WorkKind::kCopyOnDevice,
                                       .bytes = bytes,
                                       .device = stream->device,
                                       .call = call.number()};
    put(*stream, [=] {
      const emulation::NotedWork noted(piece);
      std::memcpy(pointer_to(to), pointer_to(from), bytes);
    });
    return CUDA_SUCCESS;
  }
  static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                            CUcontext from_context, size_t bytes, CUstream handle) {
    LS_FAKE_DEVICE("cuMemcpyPeerAsync");
    emulation::note_queued("copy");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("copies on no stream");
    if (!fake.is_own(fake.device_of(to_context), to, bytes) ||
        !fake.is_own(fake.device_of(from_context), from, bytes)) {
      return fake.refuse("copies between devices what is not their memory");
    }
    put(*stream, [=] { std::memcpy(pointer_to(to), pointer_to(from), bytes); });
    return CUDA_SUCCESS;
  }
  static CUresult set_bytes(CUdeviceptr address, unsigned char value, size_t bytes,
                            CUstream handle) {
    LS_FAKE_DEVICE("cuMemsetD8Async");
    emulation::note_queued("fill");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("sets bytes on no stream");
    put(*stream, [=] { std::memset(pointer_to(address), value, bytes); });
    return CUDA_SUCCESS;
  }
  static CUresult host_function(CUstream handle, CUhostFn function, void* data) {
    LS_FAKE_DEVICE("cuLaunchHostFunc");
    Stream* const stream = fake.find(handle);
    if (stream == nullptr) return fake.refuse("calls back on no stream");
    put(*stream, [=] { function(data); });
    return CUDA_SUCCESS;
  }
  static CUresult load_module(CUmodule* module, const void* image) {
    LS_FAKE_DEVICE("cuModuleLoadData");
    // Of what NVRTC's stand-in makes, or magic number of nvcc's fatbins.
    std::shared_ptr<void> library = emulation::load_module(image);
    if (library == nullptr && *static_cast<const uint32_t*>(image) != 0xba55ed50u) {
      return fake.refuse("no fatbin");
    }
    *module = reinterpret_cast<CUmodule>(fake.next_++);
    fake.modules_.emplace(*module, std::move(library));
    return CUDA_SUCCESS;
  }
  static CUresult unload_module(CUmodule module) {
    LS_FAKE_DEVICE("cuModuleUnload");
    if (fake.modules_.erase(module) == 0) return fake.refuse("unloads no module");
    return CUDA_SUCCESS;
  }
  static CUresult find_function(CUfunction* function, CUmodule module, const char* name) {
    LS_FAKE_DEVICE("cuModuleGetFunction");
    const auto place = fake.modules_.find(module);
    if (place == fake.modules_.end()) return fake.refuse("looks for a kernel in no module");
    void* const own = place->second.get();
    Function& found = fake.kernels_[{own, name}];
    found.kernel = own ? emulation::find_kernel(own, name) : emulation::find_kernel(name);
    if (found.kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(&found);
    return CUDA_SUCCESS;
  }
  static CUresult set_function_attribute(CUfunction function, CUfunction_attribute attribute,
                                         int value) {
    LS_FAKE_DEVICE("cuFuncSetAttribute");
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      return fake.refuse("sets an attribute of a kernel that is not kept here");
    }
    if (value < 0 || static_cast<size_t>(value) > emulation::kMostSharedBytes) {
      return fake.refuse("wants more shared memory than a block can have");
    }
    reinterpret_cast<Function*>(function)->most_shared_bytes = value;
    return CUDA_SUCCESS;
  }
  static CUresult function_attribute(int* value, CUfunction_attribute attribute,
                                     CUfunction function) {
    LS_FAKE_DEVICE("cuFuncGetAttribute");
    const auto& asked = *reinterpret_cast<const Function*>(function);
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(asked.kernel->most_threads);
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = asked.most_shared_bytes;
        return CUDA_SUCCESS;
      default:
        return fake.refuse("asks for an attribute of a kernel that is not kept here");
    }
  }
  static CUresult parameter_info(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    LS_FAKE_DEVICE("cuFuncGetParamInfo");
    if (index != 0) return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    *bytes = reinterpret_cast<const Function*>(function)->kernel->parameter_bytes;
    return CUDA_SUCCESS;
  }
  static CUresult launch(CUfunction handle, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                         unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                         CUstream stream_handle, void** arguments, void**) {
    LS_FAKE_DEVICE("cuLaunchKernel");
    Stream* const stream = fake.find(stream_handle);
    if (stream == nullptr) return fake.refuse("launches on no stream");
    const auto& function = *reinterpret_cast<const Function*>(handle);
    const auto* const given = static_cast<const std::byte*>(arguments[0]);
    // Copies the arguments, as the caller's memory is only valid during the call.
    std::vector<std::byte> parameters(given, given + function.kernel->parameter_bytes);
    emulation::Launch launch{.kernel = function.kernel,
                             .parameters = nullptr,
                             .blocks = {x, y, z},
                             .threads = {threads_x, threads_y, threads_z},
                             .shared_bytes = shared_bytes};
    if (const std::string why = refusal(function, launch); !why.empty()) return fake.refuse(why);
    emulation::note_queued(function.kernel->name);
    const emulation::NotedCall call("cuLaunchKernel");
    const emulation::QueuedPiece piece{.kind = emulation::WorkKind::kKernel,
                                       .name = function.kernel->name,
                                       .device = stream->device,
                                       .call = call.number()};
    put(
        *stream,
        [&fake, launch, piece, parameters = std::move(parameters)]() mutable {
          const emulation::NotedWork noted(piece);
          launch.parameters = parameters.data();
          fake.run_kernel(launch);
        },
        true);
    return CUDA_SUCCESS;
  }

  static CUresult unsupported(Stream& stream) {
    return the_one_->break_capture(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                   "waits for, or asks about, work that is only recorded");
  }
  static CUresult captured(const Event& event) {
    return the_one_->break_capture(*event.capture, CUDA_ERROR_CAPTURED_EVENT,
                                   "waits for, or asks about, an event that is only recorded");
  }
};

Driver FakeDriver::functions() const {
  Driver driver;
  driver.cuInit = &Calls::init;
  driver.cuDriverGetVersion = &Calls::version;
  driver.cuGetErrorName = &Calls::error_name;
  driver.cuGetErrorString = &Calls::error_text;
  driver.cuDeviceGetCount = &Calls::device_count;
  driver.cuDeviceGet = &Calls::device;
  driver.cuDeviceGetName = &Calls::device_name;
  driver.cuDeviceGetAttribute = &Calls::attribute;
  driver.cuDeviceGetPCIBusId = &Calls::bus;
  driver.cuDeviceGetUuid = &Calls::uuid;
  driver.cuDeviceCanAccessPeer = &Calls::can_access;
  driver.cuDeviceTotalMem = &Calls::total;
  driver.cuDevicePrimaryCtxRetain = &Calls::retain;
  driver.cuDevicePrimaryCtxRelease = &Calls::release_context;
  driver.cuCtxEnablePeerAccess = &Calls::enable_access;
  driver.cuCtxGetCurrent = &Calls::get_current;
  driver.cuCtxSetCurrent = &Calls::put_current;
  driver.cuCtxSynchronize = &Calls::finish_context;
  driver.cuStreamCreateWithPriority = &Calls::create_stream;
  driver.cuStreamDestroy = &Calls::destroy_stream;
  driver.cuStreamGetDevice = &Calls::stream_device;
  driver.cuStreamGetPriority = &Calls::stream_priority;
  driver.cuStreamQuery = &Calls::query_stream;
  driver.cuStreamSynchronize = &Calls::finish_stream;
  driver.cuStreamWaitEvent = &Calls::wait_event;
  driver.cuEventCreate = &Calls::create_event;
  driver.cuEventDestroy = &Calls::destroy_event;
  driver.cuEventElapsedTime = &Calls::elapsed;
  driver.cuEventQuery = &Calls::query_event;
  driver.cuEventRecord = &Calls::record;
  driver.cuEventSynchronize = &Calls::finish_event;
  driver.cuMemcpyAsync = &Calls::copy;
  driver.cuMemcpyPeerAsync = &Calls::copy_peer;
  driver.cuMemsetD8Async = &Calls::set_bytes;
  driver.cuLaunchHostFunc = &Calls::host_function;
  driver.cuFuncGetAttribute = &Calls::function_attribute;
  driver.cuFuncGetParamInfo = &Calls::parameter_info;
  driver.cuFuncSetAttribute = &Calls::set_function_attribute;
  driver.cuLaunchKernel = &Calls::launch;
  driver.cuModuleGetFunction = &Calls::find_function;
  driver.cuModuleLoadData = &Calls::load_module;
  driver.cuModuleUnload = &Calls::unload_module;
  add_graphs_to(driver);
  add_memory_to(driver);
  return driver;
}

}  // namespace lockstep::cuda

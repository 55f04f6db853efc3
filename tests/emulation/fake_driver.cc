#include "tests/emulation/fake_driver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "tests/emulation/block.h"
#include "tests/emulation/fake_driver_entry.h"
#include "tests/emulation/shared_memory.h"

namespace lockstep::cuda {

namespace {

constexpr uint64_t kPrimary = 0x1000;  ///< context of device 0
constexpr uint64_t kForeign = 0x2000;

bool takes(const std::string& function) {
  static const std::set<std::string> kTaking = {
      "cuMemAddressReserve", "cuMemAlloc", "cuMemCreate",
      "cuMemHostAlloc",      "cuMemMap",   "cuMemSetAccess"};
  return kTaking.contains(function);
}

bool only_asks(const std::string& function) {
  return function.find("Get") != std::string::npos || function.find("Query") != std::string::npos ||
         function == "cuStreamIsCapturing" || function == "cuDeviceTotalMem" ||
         function == "cuInit" || function == "cuCtxSetCurrent";
}

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

}  // namespace

constinit FakeDriver* FakeDriver::the_one_ = nullptr;
constinit thread_local CUcontext FakeDriver::current_ = nullptr;

FakeDriver::FakeDriver(int devices, size_t memory)
    : contexts_(static_cast<size_t>(devices)),
      before_(the_one_),
      memory_(memory),
      file_(memfd_create("fake_driver", 0)) {
  the_one_ = this;
  current_ = nullptr;
}

FakeDriver::~FakeDriver() {
  for (const auto& [address, block] : plain_) std::free(pointer_to(address - pointer_offset_));
  for (void* const address : pinned_) std::free(address);
  for (const auto& [address, bytes] : ranges_) munmap(pointer_to(address), bytes);
  close(file_);
  the_one_ = before_;
}

void FakeDriver::fail(const std::string& function, CUresult result, int later) {
  const std::lock_guard lock(mutex_);
  failures_[function] = {later, result};
}

void FakeDriver::fail_taking(int call, CUresult result) {
  const std::lock_guard lock(mutex_);
  until_failure_ = call;
  taking_failure_ = result;
}

void FakeDriver::stand_in() {
  stands_in_ = true;
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  runs_at_once_ = blocking != nullptr && std::string_view(blocking) == "1";
}

std::vector<std::string> FakeDriver::take_calls() {
  const std::lock_guard lock(mutex_);
  return std::exchange(calls_, {});
}

std::string FakeDriver::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> parts;
  const auto add = [&](auto count, const char* what) {
    if (count != 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  add(std::ranges::count_if(contexts_, [](int count) { return count != 0; }), "contexts");
  add(std::ranges::count_if(streams_, [](const auto& s) { return !s.second->foreign; }), "streams");
  add(events_.size(), "events");
  add(granules_.size(), "granules");
  add(ranges_.size(), "ranges");
  add(std::ranges::count_if(mapped_, [](const auto& unit) { return unit.second.unit == 0; }),
      "mappings");
  add(plain_.size(), "allocations");
  add(pinned_.size(), "pinned");
  add(graphs_.size() + executables_.size(), "graphs");
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

int FakeDriver::priority_of(CUstream stream) const {
  return reinterpret_cast<const Stream*>(stream)->priority;
}

CUstream FakeDriver::foreign_stream(int device) {
  auto stream = std::make_unique<Stream>();
  stream->device = device;
  stream->foreign = true;
  Stream* const key = stream.get();
  streams_.emplace(key, std::move(stream));
  return reinterpret_cast<CUstream>(key);
}

void FakeDriver::destroy_foreign_stream(CUstream stream) {
  streams_.erase(reinterpret_cast<Stream*>(stream));
}

CUcontext FakeDriver::primary(int device) {
  return reinterpret_cast<CUcontext>(kPrimary + static_cast<uint64_t>(device));
}
CUcontext FakeDriver::foreign_context() { return reinterpret_cast<CUcontext>(kForeign); }
void FakeDriver::set_current(CUcontext context) { current_ = context; }
CUcontext FakeDriver::current() { return current_; }

CUresult FakeDriver::enter(const char* function) {
  if (!only_asks(function)) calls_.push_back(function);
  if (const auto found = failures_.find(function); found != failures_.end()) {
    if (found->second.first-- == 0) {
      const CUresult result = found->second.second;
      failures_.erase(found);
      return result;
    }
  }
  if (takes(function) && until_failure_ >= 0 && until_failure_-- == 0) return taking_failure_;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::enter_device(const char* function) {
  if (const CUresult failed = enter(function); failed != CUDA_SUCCESS) return failed;
  if (device_of(current_) < 0) {
    (void)refuse(std::string(function) + " without the device's context");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return poison_;
}

CUresult FakeDriver::refuse(const std::string& why) {
  if (stands_in_) std::fprintf(stderr, "[emulated GPU] refused: %s\n", why.c_str());
  misuse_.push_back(why);
  return CUDA_ERROR_INVALID_VALUE;
}

int FakeDriver::device_of(CUcontext context) const {
  const auto number = reinterpret_cast<uint64_t>(context);
  if (number < kPrimary || number >= kPrimary + contexts_.size()) return -1;
  const auto device = static_cast<int>(number - kPrimary);
  return contexts_[static_cast<size_t>(device)] > 0 ? device : -1;
}

FakeDriver::Stream* FakeDriver::find(CUstream stream, bool of_current_device) {
  if (stream == CU_STREAM_LEGACY) {
    Stream& null = null_streams_[device_of(current_)];
    null.device = device_of(current_);
    return &null;
  }
  const auto found = streams_.find(reinterpret_cast<Stream*>(stream));
  if (found == streams_.end()) return nullptr;
  if (of_current_device && found->second->device != device_of(current_)) {
    misuse_.push_back("uses a stream of another device");
  }
  return found->second.get();
}

bool FakeDriver::may_use(int device, CUdeviceptr address, size_t bytes) const {
  const auto end = mapped_.lower_bound(address + bytes);
  return std::all_of(mapped_.lower_bound(address / kGranule * kGranule), end,
                     [&](const auto& mapping) { return mapping.second.users.contains(device); });
}

bool FakeDriver::is_own(int device, CUdeviceptr address, size_t bytes) const {
  if (const auto plain = plain_.upper_bound(address); plain != plain_.begin()) {
    const auto& [begin, block] = *std::prev(plain);
    if (address + bytes <= begin + block.bytes) return block.device == device;
  }
  for (CUdeviceptr at = address / kGranule * kGranule; at < address + bytes; at += kGranule) {
    const auto found = mapped_.find(at);
    if (found == mapped_.end() ||
        granules_.at(found->second.granule).properties.location.id != device)
      return false;
  }
  return may_use(device, address, bytes);
}

FakeDriver::Event* FakeDriver::find(CUevent event) {
  const auto found = events_.find(reinterpret_cast<Event*>(event));
  return found == events_.end() ? nullptr : found->second.get();
}

std::string FakeDriver::refusal(const Function& function, const emulation::Launch& launch) {
  const dim3& blocks = launch.blocks;
  const dim3& threads = launch.threads;
  const auto must = [&](bool holds, const char* what, uint64_t most) {
    return holds ? ""
                 : fmt::format("a launch of {}: expected {} {}", launch.kernel->name, what, most);
  };
  const uint64_t in_block = uint64_t{threads.x} * threads.y * threads.z;
  const uint64_t most_threads = std::min(launch.kernel->most_threads, emulation::kMostThreads);
  const auto shared = static_cast<uint64_t>(function.most_shared_bytes);
  for (const std::string& why :
       {must(blocks.x != 0 && blocks.y != 0 && blocks.z != 0, "blocks in each direction, at least",
             1),
        must(blocks.x <= 0x7fffffff, "blocks in x of at most", 0x7fffffff),
        must(blocks.y <= 65535 && blocks.z <= 65535, "blocks in y and z of at most", 65535),
        must(in_block != 0, "threads in a block, at least", 1),
        must(in_block <= most_threads, "threads in a block of at most", most_threads),
        must(threads.z <= 64, "threads in z of at most", 64),
        must(launch.shared_bytes <= shared, "bytes of dynamic shared memory of at most", shared)}) {
    if (!why.empty()) return why;
  }
  return "";
}

void FakeDriver::unwrite(const Made& made) const {
  const std::vector<unsigned char> unwritten(made.units * kGranule, emulation::kUnwritten);
  for (size_t done = 0; done < unwritten.size();) {
    const ssize_t wrote = pwrite(file_, unwritten.data() + done, unwritten.size() - done,
                                 static_cast<off_t>(made.place * kGranule + done));
    if (wrote <= 0) return;
    done += static_cast<size_t>(wrote);
  }
}

void FakeDriver::run_kernel(const emulation::Launch& launch) {
  if (coming_poison_ != CUDA_SUCCESS && access(poison_file_.c_str(), F_OK) == 0) {
    poison_ = coming_poison_;
  }
  if (poison_ != CUDA_SUCCESS) return;
  try {
    emulation::run(launch);
  } catch (const emulation::LaunchError& error) {
    std::fprintf(stderr, "[emulated GPU] %s\n", error.what());
    if (kernel_error_.empty()) kernel_error_ = error.what();
    poison_ = CUDA_ERROR_LAUNCH_FAILED;
  }
}

int FakeDriver::reach() const {
  return stands_in_ && running_ == 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
}

void FakeDriver::set_reach() const {
  if (!stands_in_) return;
  for (auto mapping = mapped_.begin(); mapping != mapped_.end();) {
    const CUdeviceptr begin = mapping->first;
    CUdeviceptr end = begin;
    // Handles adjacent mappings with one call.
    while (mapping != mapped_.end() && mapping->first == end && !mapping->second.users.empty()) {
      end += kGranule;
      ++mapping;
    }
    if (end == begin) {
      ++mapping;
    } else {
      mprotect(pointer_to(begin), end - begin, reach());
    }
  }
  for (const auto& [address, block] : plain_) {
    mprotect(pointer_to(address), block.bytes, reach());
  }
}

void FakeDriver::run_until_done(Stream& stream, const Mark* last) {
  if (running_++ == 0) set_reach();
  run_tasks(stream, last);
  if (--running_ == 0) set_reach();
}

bool FakeDriver::begins_to_hang() {
  const bool is_time = !hang_file_.empty() && access(hang_file_.c_str(), F_OK) == 0;
  if (is_time) hang_file_.clear();
  return std::exchange(hangs_at_once_, false) || is_time;
}

void FakeDriver::hang() {
  const std::lock_guard lock(mutex_);
  hangs_at_once_ = true;
}

void FakeDriver::release() {
  const std::lock_guard lock(mutex_);
  hangs_at_once_ = false;
  hang_file_.clear();
  for (auto& [key, stream] : streams_) stream->hangs = false;
  for (auto& [device, stream] : null_streams_) stream.hangs = false;
  released_.notify_all();
}

void FakeDriver::run_tasks(Stream& stream, const Mark* last) {
  while (!stream.hangs && !stream.tasks.empty() && (last == nullptr || !last->done)) {
    if (const std::shared_ptr<Mark> mark = stream.tasks.front().wait_for) {
      if (!mark->done) run_until_done(*mark->stream, mark.get());
      if (!mark->done) return;
      stream.tasks.pop_front();
      continue;
    }
    stream.hangs = stream.tasks.front().may_hang && begins_to_hang();
    if (stream.hangs) return;
    const Task task = std::move(stream.tasks.front());
    stream.tasks.pop_front();
    time_ = stands_in_ ? now_ms() : time_ + 1;
    task.run();
  }
}

void FakeDriver::put(Stream& stream, std::function<void()> work, bool may_hang) {
  if (stream.capture == nullptr) {
    stream.tasks.push_back({std::move(work), nullptr, may_hang});
    if (the_one_->runs_at_once_) the_one_->run_until_done(stream);
    return;
  }
  stream.capture->work.push_back(std::move(work));
  stream.after[&stream] = ++stream.capture->done_by[&stream];
}

CUresult FakeDriver::break_capture(Capture& capture, CUresult why, const char* what) {
  capture.failed = true;
  (void)refuse(what);
  return why;
}

CUresult FakeDriver::wait_captured(Stream& stream, const Event& event) {
  if (event.capture == nullptr || event.capture->over || event.capture->failed) {
    if (stream.capture == nullptr) return refuse("waits for an event of a capture that is over");
    return break_capture(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                         "a capture waits for what is not captured");
  }
  if (stream.capture != nullptr && stream.capture != event.capture) {
    return break_capture(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                         "two captures wait for each other");
  }
  stream.capture = event.capture;
  stream.capture->done_by.try_emplace(&stream);
  for (const auto& [other, position] : event.after) {
    stream.after[other] = std::max(stream.after[other], position);
  }
  return CUDA_SUCCESS;
}

}  // namespace lockstep::cuda

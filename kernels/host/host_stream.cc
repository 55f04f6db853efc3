#include "kernels/host/host_stream.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/adaptive_wait.h"
#include "core/base/blocked_signals.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/base/service_thread.h"
#include "core/base/spans/span.h"
#include "core/dispatch/operator.h"
#include "kernels/host/host_runtime.h"

namespace lockstep::host {

namespace {

constinit std::atomic<bool> g_ended = false;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string origin(const HostStream& stream, uint64_t sequence, const KernelTask& task) {
  std::string note = fmt::format("It ran on {} as task {}, queued by {}", to_string(stream.name()),
                                 sequence, task.kernel->op().name());
  if (!task.module.empty()) note += fmt::format(" in module {}", task.module);
  if (task.stack != nullptr) {
    return note + fmt::format(" called at {}\n{}", task.stack->call_site(), task.stack->describe());
  }
  return note +
         ". LOCKSTEP_HOST=call_stacks:1 tells where it was called, LOCKSTEP_LAUNCH_BLOCKING=1 "
         "throws there.";
}

}  // namespace

struct HostStream::Chunk {
  static constexpr size_t kTasks = 64;  // one heap allocation serves this many tasks
  std::array<Task, kTasks> tasks;
  Chunk* next = nullptr;
};

HostStream::HostStream(const Stream& name, int priority, KernelGate& gate)
    : name_(name), priority_(priority), gate_(gate), tail_(new Chunk()), head_(tail_) {}

HostStream::~HostStream() {
  delete spare_.load();
  for (Chunk* chunk = head_; chunk != nullptr;) delete std::exchange(chunk, chunk->next);
}

uint64_t HostStream::push(Task task) {
  if (!started_.load(std::memory_order_acquire)) [[unlikely]] {
    start();
  }
  uint64_t sequence = 0;
  {
    const MutexLock lock(queue_lock_);
    check_open();
    if (tail_used_ == Chunk::kTasks) {
      Chunk* fresh = spare_.exchange(nullptr, std::memory_order_acquire);
      if (fresh == nullptr) fresh = new Chunk();
      fresh->next = nullptr;
      tail_->next = fresh;
      tail_ = fresh;
      tail_used_ = 0;
    }
    stopped_ = std::holds_alternative<StopTask>(task);
    tail_->tasks[tail_used_++] = std::move(task);
    sequence = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(sequence, std::memory_order_seq_cst);
  }
  if (asleep_.load(std::memory_order_seq_cst) != 0 && asleep_.exchange(0) != 0) wake_one(asleep_);
  return sequence;
}

void HostStream::check_open() const {
  LS_CHECK(!stopped_, DeviceError, "[stream] {} was destroyed: make another one.",
           to_string(name_));
}

void HostStream::stop() {
  {
    const MutexLock lock(mutex_);
    if (!started_) {
      const MutexLock queue_lock(queue_lock_);
      stopped_ = true;
      return;
    }
  }
  (void)push(StopTask());
}

bool HostStream::reached(uint64_t sequence) const {
  return done_.load(std::memory_order_acquire) >= sequence ||
         g_ended.load(std::memory_order_relaxed);
}

void HostStream::wait(uint64_t sequence) {
  thread_local AdaptiveWait wait;
  wait.until([&] { return reached(sequence); },
             [&] {
               // Either this thread sees that it is done, or the worker sees the waiter.
               waiters_.fetch_add(1, std::memory_order_seq_cst);
               UniqueLock lock(mutex_);
               reached_.wait(lock, [&] {
                 return done_.load(std::memory_order_seq_cst) >= sequence || g_ended.load();
               });
               waiters_.fetch_sub(1, std::memory_order_relaxed);
             });
}

void HostStream::publish(uint64_t sequence) {
  done_.store(sequence, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  const MutexLock lock(mutex_);
  reached_.notify_all();
}

std::exception_ptr HostStream::take_error(uint64_t sequence) {
  if (!has_error_.load(std::memory_order_acquire)) return nullptr;
  const MutexLock lock(mutex_);
  if (error_sequence_ > sequence) return nullptr;
  has_error_ = false;
  return std::exchange(error_, nullptr);
}

void HostStream::keep_error(uint64_t sequence, const std::string& note) {
  std::exception_ptr error = std::current_exception();
  try {
    throw;
  } catch (Error& known) {
    known.add_note(note);
  } catch (...) {
    // An exception of another library: a note cannot be added.
  }
  const MutexLock lock(mutex_);
  if (error_ != nullptr) return;
  error_ = std::move(error);
  error_sequence_ = sequence;
  has_error_.store(true, std::memory_order_release);
}

void HostStream::start() {
  const MutexLock lock(mutex_);
  if (started_) return;
  {
    const MutexLock queue_lock(queue_lock_);
    check_open();
  }
  retain();
  pthread_t thread{};
  const int failure = [&] {
    const BlockedSignals signals;
    return pthread_create(&thread, nullptr, main, this);
  }();
  if (failure != 0) {
    (void)release();
    refuse_thread(fmt::format("of {}", to_string(name_)).c_str(), failure);
  }
  (void)pthread_detach(thread);
  started_.store(true, std::memory_order_release);
}

void* HostStream::main(void* self) {
  const Ref<HostStream> stream = Ref<HostStream>::adopt(static_cast<HostStream*>(self));
  const Stream& name = stream->name_;
  (void)pthread_setname_np(pthread_self(),
                           fmt::format("ls-host{}-{}", name.device.index, name.id).c_str());
  (void)std::fesetenv(FE_DFL_ENV);
  const LibraryOnOneThread one_thread;
  stream->work();
  return nullptr;
}

void HostStream::work() {
  AdaptiveWait wait;
  size_t used = 0;
  for (uint64_t sequence = 1;; ++sequence) {
    wait.until([&] { return submitted() >= sequence; },
               [&] {
                 asleep_.store(1, std::memory_order_seq_cst);
                 if (submitted_.load(std::memory_order_seq_cst) < sequence) {
                   sleep_while(asleep_, 1);
                 }
                 asleep_.store(0, std::memory_order_relaxed);
               });
    if (used == Chunk::kTasks) {
      Chunk* const old = std::exchange(head_, head_->next);
      delete spare_.exchange(old, std::memory_order_acq_rel);
      used = 0;
    }
    Task& task = head_->tasks[used++];
    // The process may end while this worker waits for another stream.
    running_.store(!std::holds_alternative<WaitTask>(task), std::memory_order_seq_cst);
    if (g_ended.load(std::memory_order_seq_cst)) {
      running_.store(false);
      while (true) pause();
    }
    const bool goes_on = run(task, sequence);
    task = std::monostate();
    running_.store(false, std::memory_order_release);
    publish(sequence);
    if (!goes_on) return;
  }
}

bool HostStream::run(Task& task, uint64_t sequence) {
  if (KernelTask* const kernel = std::get_if<KernelTask>(&task)) {
    try {
      run(*kernel);
    } catch (...) {
      keep_error(sequence, origin(*this, sequence, *kernel));
    }
  } else if (const CopyTask* const copy = std::get_if<CopyTask>(&task)) {
    try {
      run(*copy);
    } catch (...) {
      keep_error(sequence, fmt::format("It ran on {} as task {}, a copy of {} bytes.",
                                       to_string(name_), sequence, copy->bytes));
    }
  } else if (const WaitTask* const wait = std::get_if<WaitTask>(&task)) {
    wait->mark.stream->wait(wait->mark.sequence);
  } else if (const TimeTask* const mark = std::get_if<TimeTask>(&task)) {
    mark->time->nanoseconds.store(now_ns(), std::memory_order_relaxed);
  } else if (const CallbackTask* const callback = std::get_if<CallbackTask>(&task)) {
    try {
      callback->call();
    } catch (...) {
      keep_error(sequence,
                 fmt::format("A callback threw it on {} as task {}.", to_string(name_), sequence));
    }
  }
  return !std::holds_alternative<StopTask>(task);
}

void HostStream::run(KernelTask& task) {
  QueuedKernel& kernel = *task.kernel;
  LS_CHECK(!task.fails, DeviceError, "[{}] the kernel failed: a HostFaultGuard made it fail.",
           kernel.op().name());
  const KernelGate::Pass pass(gate_, priority_);
  const Span span(SpanKind::kKernel, kernel.op().name(), task.launch);
  set_num_threads(kernel_threads());
  if (kernel.random()) default_generator().set_state(*kernel.random());
  kernel.run();
}

void HostStream::run(const CopyTask& task) {
  LS_CHECK(!task.fails, DeviceError, "[copy] the copy failed: a HostFaultGuard made it fail.");
  const Span span(SpanKind::kKernel, "copy", 0, static_cast<int64_t>(task.bytes));
  const auto start = std::chrono::steady_clock::now();
  std::memcpy(task.to, task.from, task.bytes);
  if (task.least_seconds > 0) {
    std::this_thread::sleep_until(start + std::chrono::duration<double>(task.least_seconds));
  }
}

void HostStream::end_all() { g_ended = true; }

}  // namespace lockstep::host

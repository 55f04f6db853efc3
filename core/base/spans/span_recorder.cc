#include "core/base/spans/span_recorder.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "core/base/check.h"
#include "core/base/current_scope.h"
#include "core/base/phase.h"

namespace lockstep {

namespace detail {

/// The buffers of a recorder. Arenas are never freed: a thread may hold one's buffer for as long as
/// it lives. A later recorder of the same limits uses the same arena.
class SpanArena {
 public:
  explicit SpanArena(const SpanLimits& limits)
      : limits(limits), buffers(std::make_unique<SpanBuffer[]>(limits.threads)) {
    for (uint32_t i = 0; i < limits.threads; ++i) buffers[i].reserve(limits);
  }

  const SpanLimits limits;
  const std::unique_ptr<SpanBuffer[]> buffers;
  std::atomic<uint64_t> recording{0};
  std::atomic<uint64_t> refused{0};
  SpanArena* next = nullptr;

  std::span<SpanBuffer> all() { return {buffers.get(), limits.threads}; }
  /// Takes a buffer that no thread uses and that holds nothing of the running recording.
  SpanBuffer* take() noexcept {
    for (SpanBuffer& buffer : all()) {
      if (buffer.recording() == recording.load(std::memory_order_relaxed)) continue;
      if (!buffer.taken_.exchange(true, std::memory_order_acquire)) return &buffer;
    }
    return nullptr;
  }
  static void give_back(SpanBuffer& buffer) noexcept {
    buffer.taken_.store(false, std::memory_order_release);
  }
};

}  // namespace detail

namespace {

using detail::SpanArena;

/// A thread's buffer. Trivially destructible, so that spans of destructors that run at the thread's
/// end find it.
struct ThreadPlace {
  SpanArena* arena = nullptr;
  SpanBuffer* buffer = nullptr;
  uint64_t refused = 0;  ///< the recording in which no buffer was left
};
thread_local constinit ThreadPlace t_place{};

/// Gives the buffer back when the thread ends. A key, because a thread_local object with a
/// destructor takes memory from the heap when a thread first uses it.
pthread_key_t key_of_buffers() {
  pthread_key_t key = 0;
  (void)pthread_key_create(&key, [](void*) {
    if (SpanBuffer* const buffer = std::exchange(t_place.buffer, nullptr)) {
      SpanArena::give_back(*buffer);
    }
  });
  return key;
}
const pthread_key_t kBufferKey = key_of_buffers();

// Both are changed while a recorder is made or destroyed, by one thread at a time: `g_in_use` says
// so.
constinit std::atomic<bool> g_in_use{false};
constinit SpanArena* g_arenas = nullptr;
constinit std::atomic<uint64_t> g_recordings{0};

SpanArena& arena_of(const SpanLimits& limits) {
  for (SpanArena* arena = g_arenas; arena != nullptr; arena = arena->next) {
    if (arena->limits == limits) return *arena;
  }
  // Memory that is reserved costs nothing until it is written to.
  auto* const made = new SpanArena(limits);
  made->next = std::exchange(g_arenas, made);
  return *made;
}

[[maybe_unused]] const bool kStopsInForks =
    pthread_atfork(nullptr, nullptr, [] { detail::active_spans = nullptr; }) == 0;

/// Takes a buffer for this thread; null where none is left.
[[gnu::noinline]] SpanBuffer* take_buffer(SpanArena& arena, uint64_t recording) noexcept {
  if (t_place.refused == recording) return nullptr;
  if (t_place.buffer != nullptr) SpanArena::give_back(*t_place.buffer);
  t_place = {&arena, arena.take(), 0};
  if (t_place.buffer == nullptr) {
    t_place.refused = recording;
    arena.refused.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  (void)pthread_setspecific(kBufferKey, t_place.buffer);
  return t_place.buffer;
}

constinit std::atomic<const SpanMirror*> g_mirror{nullptr};

void mirror_begin(SpanKind kind, std::string_view name) noexcept {
  const SpanMirror* const mirror = g_mirror.load(std::memory_order_acquire);
  if (mirror == nullptr || kind == SpanKind::kMemory) return;
  char text[256];
  text[name.copy(text, sizeof text - 1)] = '\0';
  mirror->begin(text);
}
void mirror_end(SpanKind kind) noexcept {
  const SpanMirror* const mirror = g_mirror.load(std::memory_order_acquire);
  if (mirror != nullptr && kind != SpanKind::kMemory) mirror->end();
}

uint16_t cut(size_t bytes, size_t most) { return static_cast<uint16_t>(std::min(bytes, most)); }

}  // namespace

void set_span_mirror(const SpanMirror* mirror) noexcept {
  g_mirror.store(mirror, std::memory_order_release);
}

// --- recording -----------------------------------------------------------------------------------

SpanBuffer* SpanBuffer::of_this_thread() noexcept {
  SpanArena* const arena = detail::active_spans.load(std::memory_order_acquire);
  if (arena == nullptr) return nullptr;
  // Acquired, because `active_spans` may still be seen as the recording before this one set it: who
  // empties a buffer for this recording must do so after that one was read.
  const uint64_t recording = arena->recording.load(std::memory_order_acquire);
  SpanBuffer* buffer = t_place.buffer;
  if (buffer == nullptr || t_place.arena != arena) [[unlikely]] {
    buffer = take_buffer(*arena, recording);
    if (buffer == nullptr) return nullptr;
  }
  if (buffer->recording() != recording) [[unlikely]]
    buffer->restart(recording);
  return buffer;
}

SpanBuffer* SpanBuffer::last_of_this_thread() noexcept { return t_place.buffer; }

void SpanBuffer::reserve(const SpanLimits& limits) {
  const size_t records = sizeof(SpanRecord) * limits.spans;
  // Mapped, because a heap may touch what it gives.
  void* const memory = mmap(nullptr, records + limits.text, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LS_CHECK(memory != MAP_FAILED, OutOfMemoryError,
           "[profiler] the system refuses {} bytes of address space for the spans of a thread, of "
           "{}: {}. Ask for fewer spans or threads.",
           records + limits.text, limits.threads, std::strerror(errno));
  records_ = static_cast<SpanRecord*>(memory);
  text_ = static_cast<char*>(memory) + records;
  most_records_ = limits.spans;
  most_text_ = limits.text;
}

void SpanBuffer::restart(uint64_t recording) noexcept {
  // Spans that are open since an older recording end in none.
  for (; innermost_ != SpanRecord::kNone; innermost_ = records_[innermost_].parent) {
    mirror_end(records_[innermost_].kind);
  }
  used_.store(0, std::memory_order_relaxed);
  lost_.store(0, std::memory_order_relaxed);
  text_used_ = 0;
  lost_depth_ = 0;
  thread_ = static_cast<uint64_t>(gettid());
  pthread_getname_np(pthread_self(), thread_name_, sizeof thread_name_);
  recording_.store(recording, std::memory_order_release);
}

SpanRecord* SpanBuffer::begin(SpanKind kind, std::string_view name,
                              std::string_view details) noexcept {
  const std::string_view module = current_module();
  const uint16_t name_bytes = cut(name.size(), 255);
  const uint16_t module_bytes = cut(module.size(), 255);
  const uint16_t detail_bytes = cut(details.size(), 65535);
  const uint32_t bytes = uint32_t{name_bytes} + module_bytes + detail_bytes;
  const uint32_t at = used_.load(std::memory_order_relaxed);
  if (lost_depth_ > 0 || at == most_records_ || most_text_ - text_used_ < bytes) [[unlikely]] {
    ++lost_depth_;
    lost_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  char* const text = text_ + text_used_;
  name.copy(text, name_bytes);
  module.copy(text + name_bytes, module_bytes);
  details.copy(text + name_bytes + module_bytes, detail_bytes);
  SpanRecord& record =
      *new (&records_[at]) SpanRecord{.begin = 0,
                                      .end = 0,
                                      .sequence = 0,
                                      .flops = 0,
                                      .bytes = 0,
                                      .parent = innermost_,
                                      .text = text_used_,
                                      .name_bytes = name_bytes,
                                      .module_bytes = module_bytes,
                                      .detail_bytes = detail_bytes,
                                      .kind = kind,
                                      .phase = static_cast<uint8_t>(current_phase()),
                                      .dtype = 0};
  text_used_ += bytes;
  innermost_ = at;
  mirror_begin(kind, name);
  record.begin = now_ticks();  // last: the work above is not the span's
  used_.store(at + 1, std::memory_order_release);
  return &record;
}

void SpanBuffer::end() noexcept {
  if (lost_depth_ > 0) [[unlikely]] {
    --lost_depth_;
    return;
  }
  if (innermost_ == SpanRecord::kNone) return;  // it began before the recording
  SpanRecord& record = records_[innermost_];
  innermost_ = record.parent;
  const SpanKind kind = record.kind;
  // What was filled in before is visible to whoever sees the end.
  std::atomic_ref(record.end).store(now_ticks(), std::memory_order_release);
  mirror_end(kind);
}

// --- the recorder --------------------------------------------------------------------------------

SpanRecorder::SpanRecorder(const SpanLimits& limits) : arena_(nullptr) {
  LS_CHECK(!g_in_use.exchange(true), Error,
           "[profiler] another profiler exists in this process: expected one at a time. Destroy it "
           "first.");
  try {
    LS_CHECK(limits.threads > 0 && limits.spans > 0, Error,
             "[profiler] the buffers hold nothing: expected at least one thread and one span, got "
             "{} and {}.",
             limits.threads, limits.spans);
    arena_ = &arena_of(limits);
  } catch (...) {
    g_in_use = false;
    throw;
  }
}

SpanRecorder::~SpanRecorder() {
  if (running_) detail::active_spans = nullptr;
  g_in_use = false;
}

void SpanRecorder::start() noexcept {
  arena_->refused = 0;
  arena_->recording = ++g_recordings;
  begin_ = TickClock::Moment::now();
  running_ = true;
  detail::active_spans.store(arena_, std::memory_order_release);
}

SpanRecording SpanRecorder::stop() {
  detail::active_spans = nullptr;
  running_ = false;
  SpanRecording result;
  result.begin = begin_;
  result.end = TickClock::Moment::now();
  result.clock = TickClock(result.begin, result.end);
  result.threads_without_buffer = arena_->refused;
  for (SpanBuffer& buffer : arena_->all()) {
    if (buffer.recording_.load(std::memory_order_acquire) != arena_->recording) continue;
    const uint32_t used = buffer.used_.load(std::memory_order_acquire);
    ThreadSpans& thread = result.threads.emplace_back();
    thread.thread = buffer.thread_;
    thread.thread_name = buffer.thread_name_;
    thread.lost = buffer.lost_;
    thread.spans.resize(used);
    size_t text = 0;
    for (uint32_t i = 0; i < used; ++i) {
      SpanRecord& from = buffer.records_[i];
      SpanRecord& to = thread.spans[i];
      const uint64_t end = std::atomic_ref(from.end).load(std::memory_order_acquire);
      // An open span's thread may be filling in what is known at its end.
      to.begin = from.begin;
      to.parent = from.parent;
      to.text = from.text;
      to.name_bytes = from.name_bytes;
      to.module_bytes = from.module_bytes;
      to.detail_bytes = from.detail_bytes;
      to.kind = from.kind;
      to.phase = from.phase;
      if (end != 0) to = from;
      to.end = end;
      text = to.text + to.name_bytes + to.module_bytes + to.detail_bytes;
    }
    thread.text.assign(buffer.text_, text);
  }
  return result;
}

}  // namespace lockstep

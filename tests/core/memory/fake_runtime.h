#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/device_runtime.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {

/// A device whose streams run only when the test runs them or when code waits for them, by
/// synchronizing or by polling. Serves DeviceType::kPrivate1 while alive.
class FakeRuntime final : public DeviceRuntime {
 public:
  static constexpr Device kDevice{DeviceType::kPrivate1, 0};
  static constexpr int32_t kStreams = 16;  ///< streams that exist from the start

  explicit FakeRuntime(size_t memory_bytes, bool has_granules = true)
      : memory_(memory_bytes, has_granules) {
    set_device_runtime(DeviceType::kPrivate1, this);
  }
  ~FakeRuntime() override { set_device_runtime(DeviceType::kPrivate1, nullptr); }

  std::string unavailable;    ///< the reason why there is no device; "" if there is one
  bool needs_pinned = false;  ///< what needs_pinned_memory() returns
  int failing_queries = 0;    ///< number of next queries of events that throw

  static Stream stream(int32_t id) { return {kDevice, id}; }
  FakeMemory& memory() { return memory_; }

  /// Queues `work`.
  void launch(const Stream& stream, std::function<void()> work) {
    questions_ = 0;
    queue(stream).push_back({Task::kWork, std::move(work), nullptr});
  }
  /// Runs the next task of a stream, unless it waits for another stream. False when nothing ran.
  bool run_one(const Stream& stream) {
    std::deque<Task>& tasks = queue(stream);
    if (tasks.empty()) return false;
    Task& task = tasks.front();
    if (task.kind == Task::kWait && !*task.reached) return false;
    if (task.kind == Task::kRecord) *task.reached = true;
    if (task.kind == Task::kWork) task.work();
    tasks.pop_front();
    return true;
  }
  /// Runs a stream to its end, and others as far as it waits for them.
  void run(const Stream& stream) {
    while (!queue(stream).empty()) {
      if (run_one(stream)) continue;
      run_until(queue(stream).front().reached);
    }
  }
  size_t queued(const Stream& stream) { return queue(stream).size(); }
  size_t events_made() const { return events_.size(); }
  /// Marks the stream as destroyed, as if by code outside the runtime.
  void forget(const Stream& stream) { gone_.push_back(stream.id); }

  int device_count() override { return unavailable.empty() ? 1 : 0; }
  std::string why_unavailable() override { return unavailable; }
  bool needs_pinned_memory() const override { return needs_pinned; }
  DeviceMemory& memory(int) override { return memory_; }
  Stream create_stream(int, int) override { return stream(made_++); }
  Stream adopt_stream(int, void*) override { throw DeviceError("[fake] no such thing"); }
  void destroy_stream(const Stream& stream) noexcept override {
    if (is_gone(stream.id)) return;
    run(stream);
    forget(stream);
  }
  int priority(const Stream&) override { return 0; }
  void* native(const Stream&) override { return nullptr; }
  bool query(const Stream& stream) override {
    if (!queue(stream).empty() && is_waiting()) run(stream);
    return queue(stream).empty();
  }
  void synchronize(const Stream& stream) override { run(stream); }
  void synchronize(int) override {
    for (int32_t id = 0; id < made_; ++id) {
      if (!is_gone(id)) run(stream(id));
    }
  }
  void* create_event(int, bool) override {
    events_.push_back(std::make_unique<Mark>());
    return events_.back().get();
  }
  void destroy_event(void*) noexcept override {}
  void record(void* event, const Stream& stream) override {
    Mark& mark = *static_cast<Mark*>(event);
    mark = std::make_shared<bool>(false);
    queue(stream).push_back({Task::kRecord, {}, mark});
    questions_ = 0;
  }
  void wait(const Stream& stream, void* event) override {
    queue(stream).push_back({Task::kWait, {}, *static_cast<Mark*>(event)});
  }
  bool query(void* event) override {
    if (failing_queries > 0) {
      --failing_queries;
      throw DeviceError("[fake] an earlier kernel has failed");
    }
    const Mark& mark = *static_cast<Mark*>(event);
    if (!*mark && is_waiting()) run_until(mark);
    return *mark;
  }
  void synchronize(void* event) override { run_until(*static_cast<Mark*>(event)); }
  double elapsed_ms(void*, void*) override { return 0; }
  void copy(const Stream&, void*, const void*, size_t, Transfer) override {}
  void add_callback(const Stream& stream, std::function<void()> callback) override {
    launch(stream, std::move(callback));
  }
  using DeviceRuntime::launch;

 private:
  /// True once the stream has reached the record. Recording again makes a new one; earlier waiters
  /// keep theirs.
  using Mark = std::shared_ptr<bool>;
  struct Task {
    enum Kind { kWork, kRecord, kWait } kind;
    std::function<void()> work;
    Mark reached;
  };

  bool is_gone(int32_t id) const { return id < 0 || std::ranges::find(gone_, id) != gone_.end(); }
  std::deque<Task>& queue(const Stream& stream) {
    if (is_gone(stream.id)) throw DeviceError("[fake] the stream was destroyed");
    return queues_[stream.id];
  }
  /// Repeated queries with no other call between them count as waiting: the streams then advance.
  bool is_waiting() { return ++questions_ > 8; }
  void run_until(const Mark& mark) {
    const Mark wanted = mark;  // keeps it alive when its task is popped
    while (!*wanted) {
      for (int32_t id = 0; id < made_ && !*wanted; ++id) {
        if (!is_gone(id)) run_one(stream(id));
      }
    }
  }

  FakeMemory memory_;
  int questions_ = 0;
  std::map<int32_t, std::deque<Task>> queues_;
  std::vector<std::unique_ptr<Mark>> events_;
  int32_t made_ = kStreams;
  std::vector<int32_t> gone_;
};

}  // namespace lockstep

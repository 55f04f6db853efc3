#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/cuda/driver.h"
#include "tests/emulation/block.h"

namespace lockstep::cuda {

/// A driver without a GPU: it keeps a driver's books, refuses what a driver refuses, and its memory
/// is the cpu's. What is queued runs when somebody waits for it, and then no more than he waits
/// for, so that an order that nobody asked for is not there by chance. Kernels are those compiled
/// for the emulated GPU (device.h), run by the thread that waits. The newest is the one whose
/// functions work; when it goes, the one before is again. Thread-safe.
class FakeDriver {
 public:
  static constexpr size_t kGranule = size_t{2} << 20;

  explicit FakeDriver(int devices = 1, size_t memory = 64 * kGranule);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  Driver functions() const;
  /// As `load_driver` would give it.
  LoadedDriver load() const { return initialise(functions()); }

  /// The next call of `function`, or the one `later` calls after it, fails.
  void fail(const std::string& function, CUresult result, int later = 0);
  /// The call number `call` from now on that takes memory or addresses fails; 0 is the next.
  void fail_taking(int call, CUresult result);
  /// A kernel has failed: from now on every call that needs the device gives `result`.
  void poison(CUresult result) { poison_ = result; }
  void disable_granules() { has_granules_ = false; }
  /// Of CUDA, as cuda.h counts: 12040 is 12.4.
  void set_version(int version) { version_ = version; }
  void set_pointer_offset(size_t bytes) { pointer_offset_ = bytes; }
  /// For programs that do not know that this is not a GPU: memory begins as NaN and is out of the
  /// cpu's reach while no work runs, whatever is refused is printed, with CUDA_LAUNCH_BLOCKING=1
  /// all work is done when it is queued, and events keep the cpu's time, not the number of tasks
  /// that were run.
  void stand_in();

  /// Names of the functions called since the last time, but for those that only ask.
  std::vector<std::string> take_calls();
  /// What a driver would have refused, or what would have made it crash.
  const std::vector<std::string>& misuse() const { return misuse_; }
  /// What the first kernel that failed did, as printed; "" while none has.
  const std::string& kernel_error() const { return kernel_error_; }
  /// What the program holds: "2 granules, 1 mapping, 1 stream"; "nothing".
  std::string held() const;
  size_t used() const { return used_; }
  int streams_made() const { return streams_made_; }
  int events_made() const { return events_made_; }
  int context_switches() const { return context_switches_; }
  int priority_of(CUstream stream) const;
  /// A stream that another library made.
  CUstream foreign_stream(int device);
  void destroy_foreign_stream(CUstream stream);
  /// A context that is nobody's primary one.
  CUcontext foreign_context();
  static void set_current(CUcontext context);
  static CUcontext current();

 private:
  struct Stream;
  struct Mark {
    bool done = false;
    Stream* stream = nullptr;
    double time = 0;
  };
  using Work = std::vector<std::function<void()>>;
  /// What streams of a capture were given, in that order. Each knows how far into the others' work
  /// it comes after.
  struct Capture {
    Stream* origin = nullptr;
    bool over = false;
    bool failed = false;
    Work work;
    std::map<Stream*, size_t> done_by;  ///< how much each was given
  };
  struct Event {
    int device = 0;
    bool timing = false;
    std::shared_ptr<Mark> mark;        ///< or
    std::shared_ptr<Capture> capture;  ///< recorded in it, after
    std::map<Stream*, size_t> after;
  };
  struct Task {
    std::function<void()> run;       ///< or
    std::shared_ptr<Mark> wait_for;  ///< nothing until this is done
  };
  struct Stream {
    int device = 0;
    int priority = 0;
    bool foreign = false;
    std::deque<Task> tasks;
    std::shared_ptr<Capture> capture;  ///< its work goes there
    std::map<Stream*, size_t> after;
  };
  struct Function {
    const emulation::Kernel* kernel = nullptr;
    int most_shared_bytes = 48 << 10;
  };
  struct Calls;        ///< the table's functions
  struct MemoryCalls;  ///< those for memory
  friend struct Calls;
  friend struct MemoryCalls;
  static void add_memory_to(Driver& driver);

  static FakeDriver* the_one_;
  static thread_local CUcontext current_;
  static CUcontext primary(int device);

  CUresult enter(const char* function);
  CUresult enter_device(const char* function);
  CUresult refuse(const std::string& why);
  int device_of(CUcontext context) const;
  Stream* find(CUstream stream, bool of_current_device = true);
  Event* find(CUevent event);
  /// Why a GPU would not launch this, or "".
  static std::string refusal(const Function& function, const emulation::Launch& launch);
  /// Fills a granule's place in the file.
  void unwrite(size_t place) const;
  void run_kernel(const emulation::Launch& launch);
  void run_until_done(Stream& stream, const Mark* last = nullptr);
  void run_tasks(Stream& stream, const Mark* last);
  /// How the cpu may use the memory of the devices: not, while no work runs.
  int reach() const;
  void set_reach() const;
  /// Queues work, or records it.
  static void put(Stream& stream, std::function<void()> work);
  /// A call that nothing that is recorded may make: the capture is lost.
  CUresult break_capture(Capture& capture, CUresult why, const char* what);
  CUresult wait_captured(Stream& stream, const Event& event);
  /// Work goes on while somebody asks again and again whether it is done.
  bool is_waited_for() { return ++unanswered_ % kPatience == 0; }

  mutable std::recursive_mutex mutex_;
  std::vector<int> contexts_;  ///< how often each device's was retained
  FakeDriver* const before_;
  size_t memory_;
  size_t used_ = 0;
  int version_ = CUDA_VERSION;
  bool has_granules_ = true;
  bool stands_in_ = false;
  bool runs_at_once_ = false;
  int running_ = 0;  ///< calls of `run_until_done`, one in the other
  size_t pointer_offset_ = 0;
  CUresult poison_ = CUDA_SUCCESS;
  static constexpr int kPatience = 16;
  int unanswered_ = 0;  ///< questions so far whose answer was no
  int file_ = -1;

  std::map<std::string, std::pair<int, CUresult>> failures_;
  int until_failure_ = -1;
  CUresult taking_failure_ = CUDA_SUCCESS;
  std::vector<std::string> calls_;
  std::vector<std::string> misuse_;

  std::map<Stream*, std::unique_ptr<Stream>> streams_;
  std::map<int, Stream> null_streams_;  ///< by device
  std::map<Event*, std::unique_ptr<Event>> events_;
  std::map<uint64_t, size_t> granules_;  ///< place in the file
  std::vector<size_t> free_places_;
  std::map<CUdeviceptr, size_t> ranges_;                     ///< reserved
  std::map<CUdeviceptr, std::pair<uint64_t, bool>> mapped_;  ///< granule, accessible?
  std::map<CUdeviceptr, size_t> plain_;
  std::set<void*> pinned_;
  std::set<CUmodule> modules_;
  std::map<Work*, std::unique_ptr<Work>> graphs_;
  std::map<Work*, std::shared_ptr<Work>> executables_;
  std::map<std::string, Function> kernels_;  ///< that were asked for
  std::string kernel_error_;
  std::set<uint64_t> foreign_contexts_;
  uint64_t next_ = 1;
  double time_ = 0;
  int streams_made_ = 0;
  int events_made_ = 0;
  int context_switches_ = 0;
};

}  // namespace lockstep::cuda

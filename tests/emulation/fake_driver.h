#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/driver.h"
#include "tests/emulation/kernels.h"

namespace lockstep::emulation {
// Defined in block.h, whose vector types conflict with those of headers that tests of CUDA include.
struct Launch;
}  // namespace lockstep::emulation

namespace lockstep::cuda {

/// A CUDA driver without a GPU: it keeps a driver's state, refuses what a driver refuses, and uses
/// CPU memory. Queued work runs only when a call waits for it, and only as far as needed, so that
/// missing synchronization shows. Kernels are those compiled for the emulated GPU (device.h), run
/// by the waiting thread. Only the newest instance is active; destroying it reactivates the one
/// before. Thread-safe.
class FakeDriver {
 public:
  static constexpr size_t kGranule = size_t{2} << 20;

  explicit FakeDriver(int devices = 1, size_t memory = 64 * kGranule);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  Driver functions() const;
  /// Returns the driver as `load_driver` would.
  LoadedDriver load() const { return initialise(functions()); }

  /// Makes the next call of `function` fail, or the one `later` calls after it.
  void fail(const std::string& function, CUresult result, int later = 0);
  /// Makes call number `call` from now on that takes memory or addresses fail; 0 is the next.
  void fail_taking(int call, CUresult result);
  /// Simulates a failed kernel: from now on every call that needs the device returns `result`.
  void poison(CUresult result) { poison_ = result; }
  /// Does that with the first kernel that runs once there is a file of this name.
  void poison_at(CUresult result, std::string file) {
    coming_poison_ = result;
    poison_file_ = std::move(file);
  }
  /// Makes the next kernel that runs hang: it, and what waits for it, does not end until `release`,
  /// nor do calls that wait for it.
  void hang();
  /// Does that with the first kernel that runs once there is a file of this name.
  void hang_at(std::string file) { hang_file_ = std::move(file); }
  void release();
  void disable_granules() { has_granules_ = false; }
  /// What the devices' attributes say of exportable memory, and of memory that network cards reach.
  void set_exportable(bool is) { is_exportable_ = is; }
  void set_rdma_capable(bool is) { is_rdma_capable_ = is; }
  /// Makes cuMemCreate fail for memory that is to be exportable, or reached by network cards.
  void refuse_exportable(CUresult result) { exportable_result_ = result; }
  void refuse_rdma(CUresult result) { rdma_result_ = result; }
  /// The properties that a granule was made with.
  CUmemAllocationProp properties_of(CUmemGenericAllocationHandle granule) const {
    return granules_.at(granule).properties;
  }
  /// Makes a machine whose devices do not reach each other's memory.
  void disable_peers() { has_peers_ = false; }
  /// CUDA version in cuda.h's encoding: 12040 is 12.4.
  void set_version(int version) { version_ = version; }
  void set_pointer_offset(size_t bytes) { pointer_offset_ = bytes; }
  /// For programs that expect a real GPU: memory starts as NaN and cannot be accessed by the CPU
  /// while no work runs, refused calls are printed, CUDA_LAUNCH_BLOCKING=1 runs work when it is
  /// queued, and events use the CPU's clock instead of the number of executed tasks.
  void stand_in();

  /// Returns the names of the functions called since the last call, without pure queries.
  std::vector<std::string> take_calls();
  /// Calls that a driver would have refused or crashed on.
  const std::vector<std::string>& misuse() const { return misuse_; }
  /// Description of the first kernel's failure, as printed; "" if none has failed.
  const std::string& kernel_error() const { return kernel_error_; }
  /// Resources that the program holds: "2 granules, 1 mapping, 1 stream", or "nothing".
  std::string held() const;
  size_t used() const { return used_; }
  int streams_made() const { return streams_made_; }
  int events_made() const { return events_made_; }
  int context_switches() const { return context_switches_; }
  int priority_of(CUstream stream) const;
  /// Makes a stream as if by another library.
  CUstream foreign_stream(int device);
  void destroy_foreign_stream(CUstream stream);
  /// Makes a context that is no device's primary context.
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
  /// Work of the streams of a capture, in the order of queuing. `after` of a stream or event has,
  /// for each stream, the number of its items that come before.
  struct Capture {
    Stream* origin = nullptr;
    bool over = false;
    bool failed = false;
    Work work;
    std::map<Stream*, size_t> done_by;  ///< number of items queued on each stream
  };
  struct Event {
    int device = 0;
    bool timing = false;
    std::shared_ptr<Mark> mark;        ///< set unless captured
    std::shared_ptr<Capture> capture;  ///< capture it was recorded in
    std::map<Stream*, size_t> after;
  };
  struct Task {
    std::function<void()> run;       ///< null for a wait
    std::shared_ptr<Mark> wait_for;  ///< mark to wait for, if any
    bool may_hang = false;           ///< a kernel, or a graph of them
  };
  struct Stream {
    int device = 0;
    int priority = 0;
    bool foreign = false;
    bool hangs = false;  ///< in its first task
    std::deque<Task> tasks;
    std::shared_ptr<Capture> capture;  ///< records its work, if not null
    std::map<Stream*, size_t> after;
  };
  /// Memory of cuMemCreate: a run of units of kGranule bytes.
  struct Made {
    size_t place = 0;  ///< of the first unit in the file, in units
    size_t units = 0;
    CUmemAllocationProp properties{};
  };
  struct Mapping {  ///< of one unit
    uint64_t granule = 0;
    size_t unit = 0;      ///< which of the granule's
    std::set<int> users;  ///< devices that have access
  };
  struct Plain {
    size_t bytes = 0;
    int device = 0;
  };
  struct Function {
    const emulation::Kernel* kernel = nullptr;
    int most_shared_bytes = 48 << 10;
  };
  struct Calls;        ///< implementations of the table's functions
  struct GraphCalls;   ///< those for graphs
  struct MemoryCalls;  ///< those for memory
  friend struct Calls;
  friend struct GraphCalls;
  friend struct MemoryCalls;
  static void add_graphs_to(Driver& driver);
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
  /// Whether a device has access to those of these bytes that are mapped memory.
  bool may_use(int device, CUdeviceptr address, size_t bytes) const;
  /// Whether all these bytes are memory of the device, and accessible to it.
  bool is_own(int device, CUdeviceptr address, size_t bytes) const;
  /// Why a GPU would refuse the launch, or "".
  static std::string refusal(const Function& function, const emulation::Launch& launch);
  /// Fills a granule's units in the file with kUnwritten.
  void unwrite(const Made& made) const;
  void run_kernel(const emulation::Launch& launch);
  void run_until_done(Stream& stream, const Mark* last = nullptr);
  void run_tasks(Stream& stream, const Mark* last);
  /// Runs the stream's work until `is_done`, and waits while it hangs. `lock` is that of the call,
  /// the only one.
  template <class Done>
  void run_to_the_end(std::unique_lock<std::recursive_mutex>& lock, Stream& stream,
                      const Mark* last, const Done& is_done) {
    while (!is_done()) {
      run_until_done(stream, last);
      if (!is_done()) released_.wait(lock);
    }
  }
  bool begins_to_hang();
  /// mprotect flags of device memory: none while no work runs in stand-in mode.
  int reach() const;
  void set_reach() const;
  /// Queues work on the stream, or records it in its capture.
  static void put(Stream& stream, std::function<void()> work, bool may_hang = false);
  /// Invalidates a capture after a call that must not be captured.
  CUresult break_capture(Capture& capture, CUresult why, const char* what);
  CUresult wait_captured(Stream& stream, const Event& event);
  /// Repeated queries of unfinished work make the work advance.
  bool is_waited_for() { return ++unanswered_ % kPatience == 0; }

  mutable std::recursive_mutex mutex_;
  std::vector<int> contexts_;  ///< number of retains of each device's context
  FakeDriver* const before_;
  size_t memory_;
  size_t used_ = 0;
  int version_ = CUDA_VERSION;
  bool has_granules_ = true;
  bool has_peers_ = true;
  bool is_exportable_ = true;
  bool is_rdma_capable_ = true;
  CUresult exportable_result_ = CUDA_SUCCESS;
  CUresult rdma_result_ = CUDA_SUCCESS;
  bool stands_in_ = false;
  bool runs_at_once_ = false;
  int running_ = 0;  ///< nesting depth of `run_until_done`
  size_t pointer_offset_ = 0;
  CUresult poison_ = CUDA_SUCCESS;
  CUresult coming_poison_ = CUDA_SUCCESS;
  std::string poison_file_;
  bool hangs_at_once_ = false;
  std::string hang_file_;
  std::condition_variable_any released_;
  static constexpr int kPatience = 16;
  int unanswered_ = 0;  ///< number of queries answered "not ready"
  int file_ = -1;

  std::map<std::string, std::pair<int, CUresult>> failures_;
  int until_failure_ = -1;
  CUresult taking_failure_ = CUDA_SUCCESS;
  std::vector<std::string> calls_;
  std::vector<std::string> misuse_;

  std::map<Stream*, std::unique_ptr<Stream>> streams_;
  std::map<int, Stream> null_streams_;  ///< by device
  std::map<Event*, std::unique_ptr<Event>> events_;
  std::map<uint64_t, Made> granules_;
  std::vector<std::pair<size_t, size_t>> free_places_;  ///< place and units
  size_t end_place_ = 0;
  std::map<CUdeviceptr, size_t> ranges_;  ///< reserved ranges and their sizes
  std::map<CUdeviceptr, Mapping> mapped_;
  std::map<CUdeviceptr, Plain> plain_;
  std::set<void*> pinned_;
  std::set<std::pair<CUcontext, CUcontext>> peers_;    ///< each with one whose memory it reaches
  std::map<CUmodule, std::shared_ptr<void>> modules_;  ///< with those libraries that are modules
  std::map<Work*, std::unique_ptr<Work>> graphs_;
  std::map<Work*, std::shared_ptr<Work>> executables_;
  /// Kernels looked up so far, by the library that is their module, if any, and name.
  std::map<std::pair<void*, std::string>, Function> kernels_;
  std::string kernel_error_;
  std::set<uint64_t> foreign_contexts_;
  uint64_t next_ = 1;
  double time_ = 0;
  int streams_made_ = 0;
  int events_made_ = 0;
  int context_switches_ = 0;
};

}  // namespace lockstep::cuda

#include "tests/emulation/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulation/fiber.h"
#include "tests/emulation/races.h"
#include "tests/emulation/shared_memory.h"

// NOLINTBEGIN: the names are CUDA's.
uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;
// NOLINTEND

namespace lockstep::emulation {

namespace {

enum class State : uint8_t { kUnstarted, kReady, kRunning, kAtBarrier, kInWarp, kReturned };

struct Thread {
  State state = State::kUnstarted;
  uint3 index{};
  Fiber* fiber = nullptr;
  // Arguments and result of the barrier or warp function that it waits in.
  Operation operation{};
  uint32_t mask = 0;
  int source = 0;
  uint64_t value = 0;
  uint64_t result = 0;
  Site site{};
  unsigned meetings = 0;  ///< warp functions whose first lane it was
};

/// Threads in the order in which they were woken. It asks for no memory: what GPU threads allocate
/// and free would be part of their races.
class ReadyThreads {
 public:
  bool empty() const { return count_ == 0; }
  void clear() { count_ = 0; }
  void push(unsigned thread) { threads_[(first_ + count_++) % kMostThreads] = thread; }
  unsigned pop() {
    const unsigned thread = threads_[first_];
    first_ = (first_ + 1) % kMostThreads;
    --count_;
    return thread;
  }

 private:
  std::array<unsigned, kMostThreads> threads_{};
  unsigned first_ = 0;
  unsigned count_ = 0;
};

/// Addresses that stand for what orders GPU threads, of one block (races.h). Two of each: a thread
/// may come to the next barrier, or meeting of its warp, before others have left the last.
struct Order {
  uint64_t barriers[2];
  uint64_t meetings[kMostThreads][2];  ///< by the first thread of those that meet
};
Order g_order;
uint64_t g_begin, g_end;  ///< of the launch

/// The threads of the current block.
class Block {
 public:
  /// The only instance; never destroyed, and its stacks are reused.
  static Block& the_one() {
    static auto* const block = [] {
      if constexpr (races::kAreFound) prepare_forgetting(&g_order, sizeof(g_order));
      return new Block;
    }();
    return *block;
  }

  void run(const Launch& launch);

  Arrivals barrier(bool yes, const Site& site);
  uint64_t exchange(Operation operation, uint32_t mask, uint64_t value, int source,
                    const Site& site);
  int lane() const { return static_cast<int>(running_ % kWarp); }

 private:
  void run_block();
  static void fiber_entry();
  void run_threads();

  void begin_next();
  void suspend();
  Fiber& next_fiber();
  void returned();

  bool finish_barrier();
  bool finish_exchange(unsigned warp, unsigned lane);
  void wake(unsigned thread);

  std::string place() const;
  std::string who_waits() const;

  const Launch* launch_ = nullptr;
  bool descending_ = false;
  unsigned count_ = 0;    ///< threads of the block
  unsigned started_ = 0;  ///< threads that have started
  unsigned returned_ = 0;
  unsigned running_ = 0;
  std::array<Thread, kMostThreads> threads_;
  ReadyThreads ready_;

  unsigned at_barrier_ = 0;
  unsigned barriers_ = 0;  ///< that all threads have come to
  Site barrier_site_{};    ///< of the first thread there
  int yes_ = 0;            ///< votes of the threads at the barrier
  int result_ = 0;         ///< votes at the last barrier

  Fiber main_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_;
  /// Where races are found, a thread has a fiber of its own, and other threads than the same ones
  /// of the block before.
  std::array<std::vector<std::unique_ptr<Fiber>>, 2> fiber_sets_;
  unsigned blocks_ = 0;  ///< that have begun
  Fiber* current_ = nullptr;
  std::exception_ptr error_;
};

void Block::run(const Launch& launch) {
  launch_ = &launch;
  const char* const order = std::getenv("LOCKSTEP_EMULATED_ORDER");
  descending_ = order != nullptr && std::string_view(order) == "descending";
  gridDim = launch.blocks;
  blockDim = launch.threads;
  count_ = launch.threads.x * launch.threads.y * launch.threads.z;
  Fiber::enter_from_here();
  if constexpr (races::kAreFound) {
    for (auto& set : fiber_sets_) {
      while (set.size() < count_) set.push_back(std::make_unique<Fiber>(&Block::fiber_entry));
    }
  }
  const bool are_ordered =
      races::kAreFound && !is_own_code(reinterpret_cast<const void*>(launch.kernel->run));
  const uint64_t row = launch.blocks.x;
  const uint64_t plane = row * launch.blocks.y;
  const uint64_t all = plane * launch.blocks.z;
  for (uint64_t i = 0; i < all; ++i) {
    const uint64_t block = descending_ ? all - 1 - i : i;
    blockIdx = {static_cast<unsigned>(block % row), static_cast<unsigned>(block % plane / row),
                static_cast<unsigned>(block / plane)};
    if (i == 0 || races::kAreFound) {
      fill_static_shared_memory(reinterpret_cast<const void*>(launch.kernel->run));
    }
    if (i == 0 || are_ordered) races::release(&g_begin);
    run_block();
    if (are_ordered) races::acquire(&g_end);
  }
  races::acquire(&g_end);
}

void Block::run_block() {
  ++blocks_;
  started_ = 0;
  returned_ = 0;
  at_barrier_ = 0;
  yes_ = 0;
  error_ = nullptr;
  ready_.clear();
  free_.clear();
  for (const auto& fiber : fibers_) free_.push_back(fiber.get());
  for (unsigned i = 0; i < count_; ++i) threads_[i].state = State::kUnstarted;
  fill_dynamic_shared_memory(launch_->shared_bytes);
  races::forget(&g_order, sizeof(g_order));
  Fiber& first = next_fiber();
  current_ = &first;
  main_.switch_to(first);
  if (error_ != nullptr) {
    races::acquire(&g_end);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  if (returned_ != count_) {
    throw LaunchError(
        fmt::format("{}: threads wait for others that never come. {}", place(), who_waits()));
  }
  if (!nothing_behind_dynamic_shared_memory(launch_->shared_bytes)) {
    throw LaunchError(fmt::format(
        "{}: something was written behind the {} bytes of dynamic shared memory of the launch.",
        place(), launch_->shared_bytes));
  }
}

void Block::fiber_entry() {
  Fiber::arrived();
  the_one().run_threads();
}

/// Does not return: at the end this fiber switches to another one for good.
void Block::run_threads() {
  try {
    while (true) {
      begin_next();
      races::acquire(&g_begin);
      launch_->kernel->run(launch_->parameters);
      returned();
      if (races::kAreFound || !ready_.empty() || started_ == count_) break;
    }
  } catch (...) {
    error_ = std::current_exception();
  }
  races::release(&g_end);
  Fiber& mine = *current_;
  if (error_ == nullptr && !races::kAreFound) free_.push_back(&mine);
  Fiber& next = error_ != nullptr ? main_ : next_fiber();
  mine.leaves_for_good();
  current_ = &next;
  mine.switch_to(next);
  std::abort();
}

/// Starts the next thread on this fiber and makes it the running one.
void Block::begin_next() {
  const unsigned number = descending_ ? count_ - 1 - started_ : started_;
  ++started_;
  running_ = number;
  Thread& thread = threads_[number];
  const unsigned row = launch_->threads.x;
  const unsigned plane = row * launch_->threads.y;
  thread.state = State::kRunning;
  thread.index = number < row ? uint3{number, 0, 0}
                              : uint3{number % row, number % plane / row, number / plane};
  thread.fiber = current_;
  threadIdx = thread.index;
}

/// Chooses the fiber to run when the running thread waits: that of a woken thread, one for a thread
/// not yet started, or `run_block`'s when all threads wait or have returned.
Fiber& Block::next_fiber() {
  if (!ready_.empty()) {
    running_ = ready_.pop();
    Thread& thread = threads_[running_];
    thread.state = State::kRunning;
    threadIdx = thread.index;
    return *thread.fiber;
  }
  if (started_ == count_) return main_;
  if constexpr (races::kAreFound) {
    Fiber& fiber = *fiber_sets_[blocks_ % 2][started_];
    fiber.start();
    return fiber;
  }
  if (free_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&Block::fiber_entry));
    return *fibers_.back();
  }
  Fiber* const fiber = free_.back();
  free_.pop_back();
  fiber->start();
  return *fiber;
}

/// Waits until the running thread is woken.
void Block::suspend() {
  Fiber& mine = *current_;
  Fiber& next = next_fiber();
  current_ = &next;
  mine.switch_to(next);
}

void Block::wake(unsigned thread) {
  threads_[thread].state = State::kReady;
  ready_.push(thread);
}

void Block::returned() {
  threads_[running_].state = State::kReturned;
  ++returned_;
  // Other threads no longer wait for this one.
  if (at_barrier_ != 0) finish_barrier();
  const unsigned first = running_ - running_ % kWarp;
  for (unsigned i = first; i < std::min(first + kWarp, count_); ++i) {
    if (threads_[i].state == State::kInWarp) finish_exchange(first, i - first);
  }
}

Arrivals Block::barrier(bool yes, const Site& site) {
  Thread& me = threads_[running_];
  me.state = State::kAtBarrier;
  me.site = site;
  if (at_barrier_++ == 0) barrier_site_ = site;
  if (site.line != barrier_site_.line || std::string_view(site.file) != barrier_site_.file) {
    throw LaunchError(fmt::format("{}: threads of one block wait in different barriers. {}",
                                  place(), who_waits()));
  }
  yes_ += yes;
  const void* const order = &g_order.barriers[barriers_ % 2];
  races::release(order);
  if (!finish_barrier()) suspend();
  races::acquire(order);
  return {result_, result_ != 0};
}

/// If all threads are at the barrier, wakes them (except the running one) and returns true.
bool Block::finish_barrier() {
  if (at_barrier_ + returned_ != count_) return false;
  for (unsigned i = 0; i < count_; ++i) {
    if (threads_[i].state != State::kAtBarrier) continue;
    i == running_ ? void(threads_[i].state = State::kRunning) : wake(i);
  }
  at_barrier_ = 0;
  ++barriers_;
  result_ = std::exchange(yes_, 0);
  return true;
}

uint64_t Block::exchange(Operation operation, uint32_t mask, uint64_t value, int source,
                         const Site& site) {
  Thread& me = threads_[running_];
  const unsigned mine = running_ % kWarp;
  if ((mask >> mine & 1) == 0) {
    throw LaunchError(
        fmt::format("{}: thread {} calls {} ({}:{}) with a mask of lanes that is not its own: "
                    "expected bit {} in {:#010x}.",
                    place(), running_, site.function, site.file, site.line, mine, mask));
  }
  me.state = State::kInWarp;
  me.operation = operation;
  me.mask = mask;
  me.value = value;
  me.source = source;
  me.site = site;
  // Meetings of other lanes with the same first one are taken for the same: that hides races at
  // most.
  const unsigned leader = running_ - mine + static_cast<unsigned>(std::countr_zero(mask));
  const void* const order = &g_order.meetings[leader][threads_[leader].meetings % 2];
  races::release(order);
  if (!finish_exchange(running_ - mine, mine)) suspend();
  races::acquire(order);
  return me.result;
}

/// If all lanes that thread `lane` of the warp starting at `first` waits for are there, wakes them
/// (except the running one) and returns true.
bool Block::finish_exchange(unsigned first, unsigned lane) {
  const Thread& one = threads_[first + lane];
  const auto takes_part = [&](unsigned i) {
    return (one.mask >> i & 1) != 0 && first + i < count_ &&
           threads_[first + i].state != State::kReturned;
  };
  // Checks the neighbour first, as it is the most likely to be missing.
  for (unsigned step = 1; step < kWarp; ++step) {
    const unsigned i = (lane + (descending_ ? kWarp - step : step)) % kWarp;
    const Thread& other = threads_[first + i];
    if (takes_part(i) && (other.state != State::kInWarp || other.mask != one.mask ||
                          other.operation != one.operation)) {
      return false;
    }
  }
  uint64_t votes = 0;
  for (unsigned i = 0; i < kWarp; ++i) {
    if (takes_part(i) && threads_[first + i].value != 0) votes |= uint64_t{1} << i;
  }
  const uint32_t mask = one.mask;
  const Operation operation = one.operation;
  for (unsigned i = 0; i < kWarp; ++i) {
    if (!takes_part(i)) continue;
    Thread& thread = threads_[first + i];
    const auto source = static_cast<unsigned>(thread.source);
    if (operation == Operation::kShuffle) {
      const bool there = source < kWarp && takes_part(source);
      thread.result = there ? threads_[first + source].value : ~uint64_t{0};
    } else {
      thread.result = votes;
    }
  }
  ++threads_[first + static_cast<unsigned>(std::countr_zero(mask))].meetings;
  for (unsigned i = 0; i < kWarp; ++i) {
    if ((mask >> i & 1) == 0 || first + i >= count_) continue;
    Thread& thread = threads_[first + i];
    if (thread.state != State::kInWarp) continue;
    first + i == running_ ? void(thread.state = State::kRunning) : wake(first + i);
  }
  return true;
}

std::string Block::place() const {
  return fmt::format("kernel {}, block ({}, {}, {})", launch_->kernel->name, blockIdx.x, blockIdx.y,
                     blockIdx.z);
}

/// Describes where the threads wait, with equal neighbours merged into ranges.
std::string Block::who_waits() const {
  const auto does = [&](unsigned i) -> std::string {
    const Thread& thread = threads_[i];
    const Site& site = thread.site;
    switch (thread.state) {
      case State::kReturned:
        return "returned";
      case State::kAtBarrier:
        return fmt::format("in {} ({}:{})", site.function, site.file, site.line);
      case State::kInWarp:
        return fmt::format("in {} ({}:{}) for the lanes {:#010x}", site.function, site.file,
                           site.line, thread.mask);
      case State::kUnstarted:
      case State::kReady:
      case State::kRunning:
        return "running";
    }
    return "";
  };
  std::string text;
  for (unsigned begin = 0; begin < count_;) {
    const std::string what = does(begin);
    unsigned end = begin + 1;
    while (end < count_ && does(end) == what) ++end;
    text += text.empty() ? "Threads " : ", ";
    text += end == begin + 1 ? fmt::format("{}: {}", begin, what)
                             : fmt::format("{}-{}: {}", begin, end - 1, what);
    begin = end;
  }
  return text + ".";
}

}  // namespace

void run(const Launch& launch) { Block::the_one().run(launch); }
Arrivals barrier(bool yes, const Site& site) { return Block::the_one().barrier(yes, site); }
uint64_t exchange(Operation operation, uint32_t mask, uint64_t value, int source,
                  const Site& site) {
  return Block::the_one().exchange(operation, mask, value, source, site);
}
int lane() { return Block::the_one().lane(); }

}  // namespace lockstep::emulation

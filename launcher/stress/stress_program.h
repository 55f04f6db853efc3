#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/allocator.h"
#include "core/tensor/event.h"
#include "core/tensor/stream.h"
#include "launcher/stress/stress_work.h"

namespace lockstep {

/// The emphasis of a random program.
enum class StressKind : uint8_t {
  kAllocator,  ///< blocks of all sizes are allocated, used on several streams, and freed
  kStreams,    ///< blocks live long, and work moves from stream to stream
};

/// A mistake that a program makes on purpose, so that its findings show that it would be noticed.
enum class StressFault : uint8_t {
  kNone,
  kLostEvent,    ///< a use on another stream does not wait for the last write
  kEarlyReuse,   ///< a block is freed while another stream uses it, which the allocator is not told
  kFlippedByte,  ///< a byte of a block is written over
  kLateCopy,     ///< a copy is made on a stream for which nobody waits
};

/// A block of a random program, its contents once all queued work is done, and the streams that use
/// it.
struct StressBlock {
  /// How the program makes freeing safe for streams other than the block's own: it reports them to
  /// the allocator once (kRecordStream) or at every use (kRecordUse), or the block's stream waits
  /// for them before the block is freed (kJoin).
  enum class Promise : uint8_t { kRecordStream, kRecordUse, kJoin };

  uint64_t id = 0;
  Block block;
  size_t bytes = 0;
  Stream home;  ///< stream that the block was allocated for
  StressPattern pattern;
  Promise promise = Promise::kRecordStream;
  Stream writer;                   ///< stream of the last write
  std::unique_ptr<Event> written;  ///< recorded after that write; null: wait for all of `writer`
  std::vector<Stream> readers;     ///< streams that read since that write
  std::vector<Stream> foreign;     ///< streams other than home that used the block
};

/// A queue of blocks passed from one thread to another. Thread-safe.
class StressMail {
 public:
  void send(StressBlock block);
  /// Returns false if there is none.
  bool receive(StressBlock& block);

 private:
  Mutex mutex_;
  std::deque<StressBlock> blocks_ LS_GUARDED_BY(mutex_);
};

/// A correct random program on one thread: every use of a block on a stream is ordered by an event
/// or a wait after the uses that it depends on, and is reported to the allocator, or the block's
/// own stream waits for it before the block is freed. Contents are verified from time to time, and
/// when a block is freed. The program depends on seed and thread, and on other threads only through
/// the blocks that they send.
class StressProgram {
 public:
  struct Options {
    StressKind kind = StressKind::kAllocator;
    StressFault fault = StressFault::kNone;
    uint64_t seed = 0;
    int thread = 0;                        ///< number of the thread; part of the seed
    size_t live_bytes = size_t{64} << 20;  ///< limit of allocated bytes, exceeded by one block
    size_t largest_block = size_t{8} << 20;
  };
  struct Counts {
    int64_t operations = 0;
    int64_t blocks = 0;  ///< blocks verified and freed
    int64_t verified_bytes = 0;
    int64_t out_of_memory = 0;
    int64_t faults = 0;  ///< mistakes that were made on purpose
  };

  /// All arguments must outlive this object. `streams` must not be empty.
  StressProgram(Allocator& allocator, std::span<const Stream> streams, StressWork& work,
                StressMail& mail, const Options& options);
  /// Verifies and frees all blocks; after an exception frees them anyway.
  ~StressProgram();
  StressProgram(const StressProgram&) = delete;
  StressProgram& operator=(const StressProgram&) = delete;

  /// Performs `operations` random operations. Exceptions of the library pass through; they are
  /// findings.
  void run(int64_t operations);
  /// Verifies and frees all blocks, including those in the mail.
  void finish();
  const Counts& counts() const { return counts_; }

 private:
  void step();
  void allocate();
  void free(size_t at);
  void free(StressBlock& block);
  void rewrite(StressBlock& block);
  void add();
  void copy();
  void use_shortly(StressBlock& block);
  void receive();
  void look_around();

  /// Makes `stream` wait for the uses that a use of `block` on it depends on.
  void order(StressBlock& block, const Stream& stream, bool written);
  /// Records a use whose work has been queued.
  void used(StressBlock& block, const Stream& stream, bool written);
  void verify(StressBlock& block, const Stream& stream);

  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }
  bool one_in(size_t n) { return draw(n) == 0; }
  size_t draw_size();
  /// Draws a stream: mostly `home`, if given.
  Stream draw_stream(const Stream* home = nullptr);
  StressBlock& draw_block() { return blocks_[draw(blocks_.size())]; }
  int draw_delay();
  /// Whether to make the mistake `fault` now.
  bool fails(StressFault fault);
  /// Lets work that is queued on `stream` from now on begin late.
  void hold_up(const Stream& stream);
  std::string name(const StressBlock& block) const;

  Allocator& allocator_;
  std::span<const Stream> streams_;
  StressWork& work_;
  StressMail& mail_;
  Options options_;
  std::mt19937_64 random_;
  std::vector<StressBlock> blocks_;
  size_t live_bytes_ = 0;
  uint64_t next_id_ = 0;
  Counts counts_;
};

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/allocator.h"
#include "core/tensor/event.h"
#include "core/tensor/stream.h"
#include "launcher/stress/stress_work.h"

namespace lockstep {

/// What a random program does most.
enum class StressKind : uint8_t {
  kAllocator,  ///< blocks of all sizes come, are used on several streams, and go
  kStreams,    ///< blocks stay, and work goes from stream to stream
};

/// A block of a random program, what it holds once all queued work is done, and who uses it.
struct StressBlock {
  /// How the allocator is told of streams besides the block's own.
  enum class Promise : uint8_t { kRecordStream, kRecordUse, kJoin };

  uint64_t id = 0;
  Block block;
  size_t bytes = 0;
  Stream home;  ///< it was allocated for
  StressPattern pattern;
  Promise promise = Promise::kRecordStream;
  Stream writer;                   ///< of the last write
  std::unique_ptr<Event> written;  ///< after it; null: whatever `writer` has queued by now
  std::vector<Stream> readers;     ///< since it
  std::vector<Stream> foreign;     ///< streams besides home that used it
};

/// Blocks on their way from one thread to another. Thread-safe.
class StressMail {
 public:
  void send(StressBlock block);
  /// False when there is none.
  bool receive(StressBlock& block);

 private:
  std::mutex mutex_;
  std::deque<StressBlock> blocks_;
};

/// A correct random program on one thread: every use of a block on a stream is ordered after those
/// it depends on by an event or a wait, and the allocator is told of it, or the block's own stream
/// waits for it before the block is freed. Contents are verified now and then, and when a block is
/// freed. What it does depends on seed and thread, and on other threads only by the blocks that
/// they send.
class StressProgram {
 public:
  struct Options {
    StressKind kind = StressKind::kAllocator;
    uint64_t seed = 0;
    int thread = 0;                        ///< programs of one seed differ by it
    size_t live_bytes = size_t{64} << 20;  ///< on loan at most, but for one block
    size_t largest_block = size_t{8} << 20;
  };
  struct Counts {
    int64_t operations = 0;
    int64_t blocks = 0;  ///< freed, after their contents were verified
    int64_t verified_bytes = 0;
    int64_t out_of_memory = 0;
  };

  /// All must outlive it. `streams` must not be empty.
  StressProgram(Allocator& allocator, std::span<const Stream> streams, StressWork& work,
                StressMail& mail, const Options& options);
  /// Verifies and frees what is on loan, also after an exception.
  ~StressProgram();
  StressProgram(const StressProgram&) = delete;
  StressProgram& operator=(const StressProgram&) = delete;

  /// Does `operations` more things. Throws what the library throws, which is a finding.
  void run(int64_t operations);
  /// Verifies and frees all blocks, those in the mail, too.
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

  /// Has `stream` wait for what a use of `block` there must come after.
  void order(StressBlock& block, const Stream& stream, bool written);
  /// Notes the use, once its work is queued.
  void used(StressBlock& block, const Stream& stream, bool written);
  void verify(StressBlock& block, const Stream& stream);

  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }
  bool one_in(size_t n) { return draw(n) == 0; }
  size_t draw_size();
  /// Mostly `home`, where there is one.
  Stream draw_stream(const Stream* home = nullptr);
  StressBlock& draw_block() { return blocks_[draw(blocks_.size())]; }
  int draw_delay() { return one_in(200) ? 50 : 0; }
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

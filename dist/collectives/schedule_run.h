#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/collectives/schedule.h"
#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Executes one Schedule after another over a Transport. Nothing blocks: the communication thread
/// calls `advance` repeatedly. Buffers are kept for the next schedule, so that repeated operations
/// allocate nothing. Not thread-safe.
class ScheduleRun {
 public:
  enum class State : uint8_t { kIdle, kRunning, kDone, kFailed };

  /// Memory, ranks and tag of a run. Memory must stay valid until the run is done or cancelled.
  struct Target {
    const void* input = nullptr;
    void* output = nullptr;
    std::span<const int> ranks;  ///< transport's rank of each rank of the group; copied
    uint64_t tag = 0;            ///< tag of lane 0; lane i uses tag + i, i < kLanes
  };

  /// Why a run failed.
  struct Fault {
    int peer = 0;              ///< rank of the group at the other end of the failed message
    bool is_mismatch = false;  ///< a message had an unplanned length: the ranks' calls differ
    std::string text;          ///< "rank 2 sent 64 bytes where 128 were expected"
  };

  explicit ScheduleRun(Transport& transport);
  /// Cancels messages in flight.
  ~ScheduleRun();
  ScheduleRun(const ScheduleRun&) = delete;
  ScheduleRun& operator=(const ScheduleRun&) = delete;

  /// Starts a run and posts its first messages. No other run may be in progress. `schedule` must
  /// not change until the run is done or cancelled.
  void start(const Schedule& schedule, const Target& target);
  /// Handles finished messages, posts those they allow, and does about 20 us of the reductions and
  /// copies that are ready. Call after `Transport::progress`. Returns whether anything was done;
  /// then there may be more to do at once.
  bool advance();
  /// Cancels messages in flight, whose memory is not touched afterwards. The state is then kIdle.
  void cancel() noexcept;

  State state() const noexcept { return state_; }
  /// Fault of a failed run.
  const Fault& fault() const noexcept { return fault_; }
  /// Bit r is set if a message from rank r of the group is awaited; r < 64.
  uint64_t awaited() const noexcept { return posted_ranks(kReceive); }
  /// Bit r is set if a message to rank r of the group has not been sent; r < 64.
  uint64_t unsent() const noexcept { return posted_ranks(kSend); }

 private:
  enum Direction : uint8_t { kSend, kReceive };
  static constexpr uint32_t kNone = ~uint32_t{0};

  /// The messages of one lane to, or from, one rank. They are posted and completed in the order of
  /// their steps.
  struct Flow {
    uint32_t oldest = kNone;    ///< step of the oldest message in flight
    uint32_t unposted = kNone;  ///< first step whose message is not posted
    uint32_t last = kNone;
    uint32_t in_flight = 0;
    uint32_t first_message = 0;  ///< place of the message of `oldest` in the flow's ring
    int peer = 0;
    uint8_t lane = 0;
    Direction direction = kSend;
    bool is_listed = false;  ///< in busy_
  };

  size_t flow_of(const Step& step) const;
  Message& message(size_t flow, uint32_t place);
  std::byte* address(const Slice& slice) const;
  void prepare(const Target& target);
  void post(size_t flow, uint32_t most);
  void set_ready(uint32_t step);
  void complete(uint32_t step);
  bool collect(size_t flow);
  void compute(const Step& step);
  bool compute_some();
  void fail(int peer, bool is_mismatch, std::string text);
  void cancel_messages() noexcept;
  uint64_t posted_ranks(Direction direction) const noexcept;

  Transport& transport_;
  uint32_t window_;
  State state_ = State::kIdle;
  Fault fault_;

  const Schedule* schedule_ = nullptr;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  uint64_t tag_ = 0;
  std::vector<int> ranks_;
  size_t unfinished_ = 0;

  std::vector<uint32_t> waits_for_;  ///< by step: number of unfinished steps it waits for
  std::vector<uint32_t> follower_;   ///< by step of a message: the next step of its flow
  std::vector<Flow> flows_;
  std::vector<uint32_t> busy_;     ///< flows with messages in flight
  std::vector<Message> messages_;  ///< a ring of window_ for each flow
  std::vector<uint32_t> at_hand_;  ///< reductions and copies that are ready, oldest first
  size_t first_at_hand_ = 0;
  std::vector<const void*> sources_;

  struct Freed {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte[], Freed> scratch_;
  uint64_t scratch_bytes_ = 0;
};

}  // namespace lockstep::dist

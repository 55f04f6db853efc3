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

/// Carries out one Schedule after another over a Transport. Nothing blocks: the thread that
/// communicates calls `advance` again and again. What an operation needed beside its tensors is
/// kept for the next one, so that repeated operations allocate nothing. Not thread-safe.
class ScheduleRun {
 public:
  enum class State : uint8_t { kIdle, kRunning, kDone, kFailed };

  /// What a schedule is carried out on. All memory must stay until the run is done or cancelled.
  struct Target {
    const void* input = nullptr;
    void* output = nullptr;
    std::span<const int> ranks;  ///< the transport's rank of each of the group; copied
    uint64_t tag = 0;            ///< of lane 0; lane i has the i-th after it, up to kLanes
  };

  /// Why a run failed.
  struct Fault {
    int peer = 0;              ///< rank within the group whose message it was
    bool is_mismatch = false;  ///< it had another length than planned: the ranks' calls differ
    std::string text;          ///< "rank 2 sent 64 bytes where 128 were expected"
  };

  explicit ScheduleRun(Transport& transport);
  /// Cancels.
  ~ScheduleRun();
  ScheduleRun(const ScheduleRun&) = delete;
  ScheduleRun& operator=(const ScheduleRun&) = delete;

  /// Begins; posts the first messages. None may be running. `schedule` must stay as it is until the
  /// run is done or cancelled.
  void start(const Schedule& schedule, const Target& target);
  /// Goes on as far as messages that came to an end allow, and does some 20 us of the reductions
  /// and copies at hand. To be called after `Transport::progress`; whether anything was done, in
  /// which case there may be more to do at once.
  bool advance();
  /// Forgets what is in flight; its memory is not touched afterwards. Then idle.
  void cancel() noexcept;

  State state() const noexcept { return state_; }
  /// Of a failed run.
  const Fault& fault() const noexcept { return fault_; }
  /// Bit r: a message from rank r of the group is waited for; r < 64.
  uint64_t awaited() const noexcept { return posted_ranks(kReceive); }
  /// Bit r: a message to rank r of the group has not left; r < 64.
  uint64_t unsent() const noexcept { return posted_ranks(kSend); }

 private:
  enum Direction : uint8_t { kSend, kReceive };
  static constexpr uint32_t kNone = ~uint32_t{0};

  /// The messages of one lane to, or from, one rank. They are posted in the order of their steps,
  /// and come to an end in that order.
  struct Flow {
    uint32_t oldest = kNone;    ///< step whose message is in flight longest
    uint32_t unposted = kNone;  ///< first step whose message is not posted
    uint32_t last = kNone;
    uint32_t in_flight = 0;
    uint32_t first_message = 0;  ///< of `oldest`, in the flow's ring
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

  std::vector<uint32_t> waits_for_;  ///< of each step: how many more are to end before it
  std::vector<uint32_t> follower_;   ///< of each message's step: the next in its flow
  std::vector<Flow> flows_;
  std::vector<uint32_t> busy_;     ///< flows with messages in flight
  std::vector<Message> messages_;  ///< a ring of window_ for each flow
  std::vector<uint32_t> at_hand_;  ///< reductions and copies that wait for nothing, oldest first
  size_t first_at_hand_ = 0;
  std::vector<const void*> sources_;

  struct Freed {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte[], Freed> scratch_;
  uint64_t scratch_bytes_ = 0;
};

}  // namespace lockstep::dist
